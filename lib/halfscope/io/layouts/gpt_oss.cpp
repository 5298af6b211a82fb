// MXFP4 as gpt-oss has it: X_blocks, packed with the blocks as an axis of their own, and X_scales.
#include <fmt/format.h>

#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/layouts/detail/layouts.hpp>
#include <halfscope/io/layouts/detail/scaled_codes.hpp>

namespace halfscope {
namespace {

constexpr std::string_view blocks_end = "_blocks", scales_end = "_scales";

void add_blocks(FileParts& parts, const StoredCodes& codes, const std::string& base) {
  const std::string scales_name = base + std::string(scales_end);
  const auto scales = parts.find(scales_name, "F8_E8M0");
  if (!scales)
    return parts.refuse(codes.name, fmt::format("its scales are {}, which is {}", excerpt(scales_name),
                                                parts.place_of(scales_name, codes.name)));
  CodeSource payload = *source_of(codes, "F4");
  std::vector<std::int64_t> shape = payload.shape;
  if (shape.size() >= 2) {
    const std::int64_t block = shape.back();
    shape.pop_back();
    shape.back() *= block;
  }
  add_scaled_codes(parts, {base, std::move(shape), std::move(payload), *scales});
}

}  // namespace

void read_gpt_oss(FileParts& parts) {
  for (const StoredCodes& codes : parts.file().codes()) {
    if (parts.is_taken(codes.name)) continue;
    if (const auto base = without_ending(codes.name, blocks_end); base && codes.type == "U8")
      add_blocks(parts, codes, *base);
    const auto base = without_ending(codes.name, scales_end);
    const bool is_byte = codes.type == "U8" || codes.type == "F8_E8M0";
    if (!base || !is_byte || parts.is_taken(codes.name)) continue;
    const std::string payload = *base + std::string(blocks_end);
    if (!parts.holds(payload))
      parts.refuse(codes.name, fmt::format("its payload is {}, which is {}", excerpt(payload),
                                           parts.place_of(payload, codes.name)));
  }
}

}  // namespace halfscope
