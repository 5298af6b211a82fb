// Which reader opens which file.
#include <halfscope/io/tensor_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <halfscope/io/detail/element_order.hpp>
#include <halfscope/io/detail/file_format.hpp>
#include <halfscope/io/detail/flat_tensor_file.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/gguf/detail/gguf_file.hpp>
#include <halfscope/io/npz/detail/npz_file.hpp>
#include <halfscope/io/torch/detail/torch_file.hpp>
#include <halfscope/kernel/cast/convert.hpp>

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

struct OpenOptions {
  std::string name;  ///< name of a tensor that is the whole file
  StatedType void_type;
  const NameFilter& wanted;
};

std::unique_ptr<TensorFile> open_as(TensorFileFormat format, InputFile file, const OpenOptions& options) {
  switch (format) {
    case TensorFileFormat::npz:
      return open_npz(std::move(file), options.void_type, options.wanted);
    case TensorFileFormat::safetensors:
      return open_safetensors(std::move(file));
    case TensorFileFormat::torch_zip:
      return open_torch_zip(std::move(file), options.name);
    case TensorFileFormat::torch_legacy:
      return open_torch_legacy(std::move(file), options.name);
    case TensorFileFormat::gguf:
      return open_gguf(std::move(file));
    case TensorFileFormat::npy:
      break;
  }
  return open_npy(std::move(file), options.name, options.void_type);
}

}  // namespace

void TensorFile::read(std::size_t index, std::int64_t first, std::int64_t count,
                      const ElementSink& sink) const {
  const DType type = tensors().at(index).type;
  read_stored(index, first, count, [&](std::span<const std::byte> bytes) { deliver(type, bytes, sink); });
}

void TensorFile::read_into(std::size_t index, std::int64_t first, std::span<float> to) const {
  const DType type = tensors().at(index).type;
  read_stored(index, first, std::ssize(to), [&](std::span<const std::byte> bytes) {
    const std::span<float> piece = to.first(bytes.size() / bytes_per_element(type));
    widen(type, bytes.data(), piece);
    to = to.subspan(piece.size());
  });
}

void TensorFile::read_row_major(std::size_t index, std::span<float> values) const {
  const StoredTensor& tensor = tensors().at(index);
  if (tensor.axes.empty())
    return read_into(index, 0, values.first(static_cast<std::size_t>(tensor.elements)));
  RowMajorIndex place(tensor);
  read(index, 0, tensor.elements, [&](std::span<const float> piece) {
    for (const float x : piece) values[place.next()] = x;
  });
}

std::unique_ptr<TensorFile> open_tensor_file(const std::filesystem::path& path, const StatedType& raw_type,
                                             const NameFilter& wanted) {
  InputFile file(path);
  const std::string name = path.stem().string();
  const auto [format, foreign] = recognise(file, path);
  if (format) return open_as(*format, std::move(file), {name, raw_type, wanted});
  if (foreign && (foreign->certainty == Certainty::certain || !raw_type.type))
    refuse(file.name(), foreign->description);
  if (raw_type.type) return open_raw(std::move(file), name, *raw_type.type);
  refuse(
      file.name(),
      fmt::format("not .npy, .npz, .safetensors, GGUF or a checkpoint of PyTorch's (.pt, .pth, .bin, .ckpt); "
                  "{} says what the elements of a raw file are",
                  raw_type.option));
}

}  // namespace halfscope
