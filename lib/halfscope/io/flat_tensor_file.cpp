// A list of tensors and where each begins; every format that stores them plainly comes down to that.
#include <halfscope/io/detail/flat_tensor_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include <halfscope/io/detail/flat_places.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/detail/stored_codes.hpp>
#include <halfscope/io/npy/detail/npy_array.hpp>
#include <halfscope/io/safetensors/detail/safetensors_header.hpp>

namespace halfscope {
namespace {

SafetensorsHeader read_safetensors_header(const InputFile& file, std::uint64_t& data_begin) {
  std::string text(std::min<std::uint64_t>(file.size(), safetensors_length_bytes), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  text.resize(safetensors_header_length(text, file.size(), file.name()));
  file.read(safetensors_length_bytes, std::as_writable_bytes(std::span(text)));
  data_begin = safetensors_length_bytes + text.size();
  return parse_safetensors_header(text, file.size() - data_begin, file.name());
}

/// Integers of which quantized weights, their zero points and indices are made.
bool is_integer_type(std::string_view name) {
  constexpr std::array<std::string_view, 7> names{"U8", "I8", "I16", "U16", "I32", "U32", "I64"};
  return std::ranges::find(names, name) != names.end();
}

/// Whether the texts of a file with FP8 tensors speak of scales, which are no tensors then.
bool may_hold_scales(const SafetensorsHeader& header) {
  const auto is_fp8 = [](const SafetensorsEntry& entry) {
    return entry.type.stored == DType::f8_e4m3 || entry.type.stored == DType::f8_e5m2;
  };
  const auto speaks_of_scales = [](const std::string& text) {
    return text.find("scale") != std::string::npos || text.find("quant") != std::string::npos;
  };
  return std::ranges::any_of(header.metadata,
                             [&](const auto& entry) {
                               return speaks_of_scales(entry.first) || speaks_of_scales(entry.second);
                             }) &&
         std::ranges::any_of(header.tensors, is_fp8);
}

}  // namespace

std::unique_ptr<TensorFile> open_safetensors(InputFile file) {
  std::uint64_t data_begin = 0;
  SafetensorsHeader header = read_safetensors_header(file, data_begin);
  auto opened = std::make_unique<FlatTensorFile>(std::move(file));
  if (may_hold_scales(header))
    opened->skip({std::string(safetensors_metadata_key), "texts that speak of scales"});
  for (SafetensorsEntry& entry : header.tensors) {
    if (!entry.type.stored) {
      if (is_integer_type(entry.type.name) || find_code_type(entry.type.name) != nullptr) {
        opened->add_codes({entry.name, std::string(entry.type.name), entry.shape, data_begin + entry.begin,
                           entry.end - entry.begin});
      }
      opened->skip({std::move(entry.name), fmt::format("dtype {}", entry.type.name)});
      continue;
    }
    const DType type = *entry.type.stored;
    const auto elements = static_cast<std::int64_t>((entry.end - entry.begin) / bytes_per_element(type));
    opened->add({std::move(entry.name), type, std::move(entry.shape), elements},
                {data_begin + entry.begin, {type}});
  }
  return opened;
}

std::unique_ptr<TensorFile> open_npy(InputFile file, std::string name, const StatedType& void_type) {
  const NpyArray array = read_npy_array(bytes_from(file, 0), file.size(), file.name(), void_type);
  if (!array.encoding) refuse(file.name(), why_not_read(array.header.descr, void_type.option));
  auto opened = std::make_unique<FlatTensorFile>(std::move(file));
  opened->add(
      {std::move(name), array.encoding->type, array.header.shape, array.elements, Access::random, array.axes},
      {array.header.data_begin, *array.encoding});
  return opened;
}

std::unique_ptr<TensorFile> open_raw(InputFile file, std::string name, DType type) {
  const std::size_t width = bytes_per_element(type);
  if (file.size() == 0) refuse(file.name(), "the file is empty");
  if (file.size() % width != 0) {
    refuse(file.name(), fmt::format("{} bytes are not a whole number of {} elements, which take {} each",
                                    file.size(), name_of(type), width));
  }
  const auto elements = static_cast<std::int64_t>(file.size() / width);
  auto opened = std::make_unique<FlatTensorFile>(std::move(file));
  opened->add({std::move(name), type, {elements}, elements}, {0, {type}});
  return opened;
}

}  // namespace halfscope
