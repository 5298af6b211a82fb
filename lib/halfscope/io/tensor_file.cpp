// Which reader opens which file.
#include <halfscope/io/tensor_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <halfscope/io/detail/element_order.hpp>
#include <halfscope/io/detail/flat_tensor_file.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/npz/detail/npz_file.hpp>
#include <halfscope/kernel/cast/widen.hpp>

namespace halfscope {
namespace {

constexpr std::size_t piece_elements = 4096;  // handed out at a time: 16 KiB of floats, in the fast caches

/// Hands out the elements of one step; floats as they lie, which saves a copy.
void deliver(DType type, std::span<const std::byte> bytes, const ElementSink& sink) {
  if (type == DType::f32) {
    return sink({reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)});
  }
  const std::size_t width = bytes_per_element(type);
  std::array<float, piece_elements> floats;
  for (std::size_t at = 0; at < bytes.size(); at += piece_elements * width) {
    const auto piece = std::span(floats).first(std::min(piece_elements, (bytes.size() - at) / width));
    widen(type, bytes.data() + at, piece);
    sink(piece);
  }
}

std::string in_lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

}  // namespace

void TensorFile::read(std::size_t index, std::int64_t first, std::int64_t count,
                      const ElementSink& sink) const {
  const DType type = tensors().at(index).type;
  read_stored(index, first, count, [&](std::span<const std::byte> bytes) { deliver(type, bytes, sink); });
}

void TensorFile::read_row_major(std::size_t index, std::span<float> values) const {
  const StoredTensor& tensor = tensors().at(index);
  if (tensor.axes.empty()) {
    auto next = values.begin();
    return read(index, 0, tensor.elements,
                [&](std::span<const float> piece) { next = std::ranges::copy(piece, next).out; });
  }
  RowMajorIndex place(tensor);
  read(index, 0, tensor.elements, [&](std::span<const float> piece) {
    for (const float x : piece) values[place.next()] = x;
  });
}

std::unique_ptr<TensorFile> open_tensor_file(const std::filesystem::path& path, std::optional<DType> raw_type,
                                             const NameFilter& wanted) {
  InputFile file(path);
  const std::string extension = in_lower_case(path.extension().string());
  const std::string name = path.stem().string();
  if (extension == ".safetensors") return open_safetensors(std::move(file));
  if (extension == ".npz") return open_npz(std::move(file), raw_type, wanted);
  if (extension == ".npy") return open_npy(std::move(file), name, raw_type);
  if (raw_type) return open_raw(std::move(file), name, *raw_type);
  reject(file.name(), "not .npy, .npz or .safetensors; --dtype says what the elements of a raw file are");
}

}  // namespace halfscope
