// Blocks of GGUF: scales and codes of 32, 64 or 256 elements side by side.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <halfscope/io/layouts/detail/gguf_decoders.hpp>
#include <halfscope/io/layouts/detail/layouts.hpp>

namespace halfscope {
namespace {

class GgufBlocks : public QuantizedTensor {
 public:
  GgufBlocks(const StoredCodes& codes, const GgufDecoder& decoder)
      : QuantizedTensor(codes.name, codes.shape), codes_(codes), decoder_(decoder) {}

  void read(const TensorFile& file, std::int64_t first, std::span<float> values) const override {
    const std::int64_t size = decoder_.elements;
    std::array<float, largest_gguf_block> block;
    for_blocks(file, first / size, (first + std::ssize(values) - 1) / size + 1,
               [&](std::int64_t index, const std::byte* bytes) {
                 decoder_.decode(bytes, block.data());
                 const std::int64_t skip = std::max<std::int64_t>(first - index * size, 0);
                 const std::int64_t count = std::min(size - skip, std::ssize(values));
                 std::copy_n(block.begin() + skip, count, values.begin());
                 values = values.subspan(static_cast<std::size_t>(count));
               });
  }

  BlockFindings findings(const TensorFile& file) const override {
    const std::int64_t blocks = stored().elements / decoder_.elements;
    BlockFindings found{.layout = fmt::format("{} of GGUF in blocks of {}", decoder_.name, decoder_.elements),
                        .blocks = blocks,
                        .has_codes = false};
    std::array<float, largest_gguf_block> values;
    const auto block = std::span(values).first(static_cast<std::size_t>(decoder_.elements));
    for_blocks(file, 0, blocks, [&](std::int64_t index, const std::byte* bytes) {
      decoder_.decode(bytes, values.data());
      const bool is_finite = std::ranges::all_of(block, [](float x) { return std::isfinite(x); });
      if (!is_finite || decoder_.has_nan_scale(bytes)) found.nan_scales.add(index);
      if (std::ranges::all_of(block, [](float x) { return x == 0; })) found.zero_blocks.add(index);
    });
    return found;
  }

 private:
  /// take(index, bytes) for blocks [first, end).
  template <typename Take>
  void for_blocks(const TensorFile& file, std::int64_t first, std::int64_t end, Take&& take) const {
    constexpr std::int64_t at_once = 256;
    std::vector<std::byte> bytes;
    const auto size = static_cast<std::uint64_t>(decoder_.bytes);
    for (; first < end; first += at_once) {
      const std::int64_t count = std::min(at_once, end - first);
      bytes.resize(static_cast<std::size_t>(count) * size);
      file.read_bytes(codes_, static_cast<std::uint64_t>(first) * size, bytes);
      for (std::int64_t i = 0; i < count; ++i)
        take(first + i, bytes.data() + static_cast<std::uint64_t>(i) * size);
    }
  }

  const StoredCodes& codes_;
  const GgufDecoder& decoder_;
};

/// Types of blocks have a name like IQ2_XS; integers and packed codes have none of these.
bool is_gguf_type(std::string_view name) {
  return name.starts_with("IQ") || name.starts_with("TQ") || (name.starts_with('Q') && name.find('_') == 2);
}

}  // namespace

void read_gguf_blocks(FileParts& parts) {
  for (const StoredCodes& codes : parts.file().codes()) {
    const GgufDecoder* const decoder = find_gguf_decoder(codes.type);
    if (decoder == nullptr && is_gguf_type(codes.type)) parts.leave(codes.name);
    if (decoder == nullptr) continue;
    parts.take(codes.name);
    parts.add(std::make_unique<GgufBlocks>(codes, *decoder));
  }
}

}  // namespace halfscope
