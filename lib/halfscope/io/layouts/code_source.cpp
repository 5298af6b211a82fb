// Codes by their type; tensors by the file's own reader.
#include <halfscope/io/layouts/detail/code_source.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

#include <halfscope/format/encoding.hpp>
#include <halfscope/format/formats.hpp>

namespace halfscope {

void CodeSource::read(const TensorFile& file, std::int64_t first, std::span<float> values) const {
  if (type != nullptr) return read_codes(file, *codes, *type, first, values);
  auto next = values.begin();
  file.read(index, first, static_cast<std::int64_t>(values.size()),
            [&](std::span<const float> piece) { next = std::ranges::copy(piece, next).out; });
}

std::int64_t CodeSource::elements() const {
  return elements_of_shape(shape);
}

std::int64_t elements_of_shape(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

CodeSource source_of(const TensorFile& file, std::size_t index) {
  const StoredTensor& tensor = file.tensors()[index];
  std::string type(name_of(tensor.type));
  std::ranges::transform(type, type.begin(), [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  const FloatFormat format = tensor.type == DType::f64 ? fp32 : format_of(tensor.type);
  return {.name = tensor.name,
          .type_name = std::move(type),
          .shape = tensor.shape,
          .index = index,
          .largest = from_bits(format.max_finite_bits()),
          .limit = static_cast<float>(overflow_limit(format))};
}

std::optional<CodeSource> source_of(const StoredCodes& codes, std::string_view byte_type) {
  const bool is_byte = codes.type == "U8";
  const CodeType* type = find_code_type(is_byte ? byte_type : std::string_view(codes.type));
  if (type == nullptr) return std::nullopt;
  CodeSource source{.name = codes.name,
                    .type_name = std::string(type->name),
                    .shape = codes.shape,
                    .type = type,
                    .codes = &codes,
                    .largest = type->largest,
                    .limit = type->limit};
  if (is_byte && type->bits == 4 && !source.shape.empty()) source.shape.back() *= 2;
  return source;
}

NamesOfFile::NamesOfFile(const TensorFile& file) {
  const auto add = [](auto& places, const auto& list) {
    for (std::size_t i = 0; i < list.size(); ++i) places.emplace(list[i].name, i);
  };
  add(tensors, file.tensors());
  add(codes, file.codes());
  add(skipped, file.skipped());
}

}  // namespace halfscope
