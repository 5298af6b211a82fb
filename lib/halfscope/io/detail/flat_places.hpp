// A file of tensors that lie uncompressed in it, with the place of each.
#pragma once

#include <utility>
#include <vector>

#include <halfscope/io/detail/elements.hpp>
#include <halfscope/io/detail/strided_view.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// Where the elements of a tensor start, and how they are written.
struct ElementPlace {
  std::uint64_t begin = 0;
  ElementEncoding encoding;
  std::vector<StrideAxis> axes{};  ///< where they lie apart, see StridedView
};

class FlatTensorFile : public TensorFile {
 public:
  explicit FlatTensorFile(InputFile file) : file_(std::move(file)) {}

  void add(StoredTensor tensor, ElementPlace place) {
    tensors_.push_back(std::move(tensor));
    places_.push_back(std::move(place));
  }
  void skip(SkippedTensor tensor) { skipped_.push_back(std::move(tensor)); }

  void add_codes(StoredCodes tensor) { codes_.push_back(std::move(tensor)); }

  [[nodiscard]] const InputFile& file() const { return file_; }
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  [[nodiscard]] const std::vector<SkippedTensor>& skipped() const override { return skipped_; }

  [[nodiscard]] const std::vector<StoredCodes>& codes() const override { return codes_; }
  void read_bytes(const StoredCodes& tensor, std::uint64_t first, std::span<std::byte> to) const override {
    file_.read(tensor.begin + first, to);
  }

  void read_stored(std::size_t index, std::int64_t first, std::int64_t count,
                   const StoredSink& sink) const override {
    check_range(tensors_.at(index), first, count);
    const auto& [begin, encoding, axes] = places_[index];
    if (!axes.empty()) return read_strided(file_, begin, axes, {encoding, first, count}, sink);
    const std::uint64_t offset = static_cast<std::uint64_t>(first) * bytes_per_element(encoding.type);
    read_elements(encoding, count, bytes_from(file_, begin + offset), sink);
  }
  /// FP32 elements come from the file without a copy in between.
  void read_into(std::size_t index, std::int64_t first, std::span<float> to) const override {
    check_range(tensors_.at(index), first, std::ssize(to));
    const auto& [begin, encoding, axes] = places_[index];
    const bool is_plain = encoding.type == DType::f32 && encoding.order == std::endian::little;
    if (!is_plain || !axes.empty()) return TensorFile::read_into(index, first, to);
    file_.read(begin + static_cast<std::uint64_t>(first) * sizeof(float), std::as_writable_bytes(to));
  }

 private:
  InputFile file_;
  std::vector<StoredTensor> tensors_;
  std::vector<ElementPlace> places_;  ///< places of tensors_
  std::vector<SkippedTensor> skipped_;
  std::vector<StoredCodes> codes_;
};

}  // namespace halfscope
