// A file of tensors that lies in memory, and may be damaged at one element.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <halfscope/core/error.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

class FileInMemory : public TensorFile {
 public:
  void add(std::string name, const std::vector<float>& values, Access access = Access::random) {
    add_stored(std::move(name), DType::f32, std::as_bytes(std::span(values)), access);
  }
  void add_stored(std::string name, DType type, std::span<const std::byte> bytes,
                  Access access = Access::random) {
    const auto elements = static_cast<std::int64_t>(bytes.size() / bytes_per_element(type));
    tensors_.push_back({std::move(name), type, {elements}, elements, access});
    bytes_.emplace_back(bytes.begin(), bytes.end());
  }
  /// A tensor of this shape; `axes` as in StoredTensor.
  void add_shaped(std::string name, const std::vector<float>& values, std::vector<std::int64_t> shape,
                  std::vector<std::size_t> axes = {}) {
    add(std::move(name), values);
    tensors_.back().shape = std::move(shape);
    tensors_.back().axes = std::move(axes);
  }
  void damage(std::size_t index, std::int64_t element) { damaged_ = {index, element}; }

  [[nodiscard]] const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void read_stored(std::size_t index, std::int64_t first, std::int64_t count,
                   const StoredSink& sink) const override {
    const std::size_t width = bytes_per_element(tensors_[index].type);
    for (std::int64_t done = 0; done < count; done += piece) {
      const std::int64_t here = std::min(piece, count - done), at = first + done;
      if (damaged_.index == index && at <= damaged_.element && damaged_.element < at + here) {
        throw InvalidArgument("damaged at element " + std::to_string(damaged_.element));
      }
      sink(std::span(bytes_[index])
               .subspan(width * static_cast<std::size_t>(at), width * static_cast<std::size_t>(here)));
    }
  }

 private:
  static constexpr std::int64_t piece = 1000;
  struct Damage {
    std::size_t index = SIZE_MAX;
    std::int64_t element = 0;
  };
  std::vector<StoredTensor> tensors_;
  std::vector<std::vector<std::byte>> bytes_;  // bytes of tensors_
  Damage damaged_;
};

}  // namespace halfscope
