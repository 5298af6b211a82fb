// Names and sizes of tensor formats.
#include <halfscope/format/tensor_format.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <halfscope/format/encoding.hpp>

namespace halfscope {

std::string to_string(const TensorFormat& format) {
  return std::visit([](const auto& one) { return to_string(one); }, format);
}

TensorFormat parse_tensor_format(std::string_view text) {
  if (is_block_format_name(text)) return parse_block_format(text);
  try {
    static_cast<void>(parse_format(text.substr(0, text.find('/'))));
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}, or a block format: {}, block(ELEMENT, ROWSxCOLUMNS, SCALE/RULE)",
                                      error.what(), fmt::join(table_names(block_formats), ", ")));
  }
  return parse_quantizer(text);
}

void append_new(const TensorFormat& format, std::vector<TensorFormat>& formats) {
  if (std::ranges::find(formats, format) == formats.end()) formats.push_back(format);
}

const FloatFormat& element_format(const TensorFormat& format) {
  if (const auto* block = std::get_if<BlockFormat>(&format)) return block->element.format;
  return std::get<Quantizer>(format).format;
}

float largest_element(const TensorFormat& format) {
  return from_bits(element_format(format).max_finite_bits());
}

std::int64_t stored_bits(const TensorFormat& format, std::int64_t elements, std::int64_t blocks) {
  const std::int64_t bits = elements * code_width(element_format(format));
  const auto* block = std::get_if<BlockFormat>(&format);
  if (block == nullptr) return bits;
  const int scale_bits = block->scale() == ScaleFormat::fp32 ? 32 : 8;
  return bits + blocks * scale_bits + (block->tensor_scale == TensorScale::fp32 ? 32 : 0);
}

}  // namespace halfscope
