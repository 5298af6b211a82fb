// Integers of eight bits use their whole range under each scale, and their low four bits are spread evenly.
#include <halfscope/io/layouts/detail/packed_bytes.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace halfscope {
namespace {

constexpr std::int64_t most_bytes = 1 << 20;  // the first rows tell enough

/// Shares of the sixteen values of four bits.
using Shares = std::array<double, 16>;

/// From 0, where both are the same, to 1.
double distance(const Shares& a, const Shares& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]) / 2;
  return sum;
}

/// Whether the two halves of the bytes are distributed alike, and not evenly, as two small numbers are: the
/// low half of a large number is even, and the high half of a small one is its sign.
bool have_like_halves(std::span<const std::byte> bytes) {
  constexpr double enough = 512, uneven = 0.15;
  Shares low{}, high{}, even{};
  double count = 0;
  for (const std::byte byte : bytes) {
    const auto bits = std::to_integer<std::size_t>(byte);
    if (bits == 0) continue;
    ++low[bits % 16];
    ++high[bits / 16];
    ++count;
  }
  if (count < enough) return false;
  even.fill(1.0 / 16);
  for (Shares* const shares : {&low, &high})
    for (double& share : *shares) share /= count;
  return distance(low, even) > uneven && distance(low, high) < distance(low, even) / 2;
}

struct Range {
  int least = 256, largest = -256;
};

/// Ranges of the integers under each scale of whole rows of blocks.
std::vector<Range> ranges_of(std::span<const std::byte> bytes, const BlockLayout& layout, bool is_signed) {
  const std::int64_t rows = std::ssize(bytes) / layout.columns;
  std::vector<Range> ranges;
  for (std::int64_t i = 0; i < rows * layout.columns; ++i) {
    const auto scale = static_cast<std::size_t>(layout.scale_of(i / layout.columns, i % layout.columns));
    const auto byte = std::to_integer<int>(bytes[static_cast<std::size_t>(i)]);
    const int code = is_signed && byte > 127 ? byte - 256 : byte;
    if (scale >= ranges.size()) ranges.resize(scale + 1);
    ranges[scale] = {std::min(ranges[scale].least, code), std::max(ranges[scale].largest, code)};
  }
  return ranges;
}

/// Whether a scale lets its integers reach the end of eight bits; that of zeros has none to reach.
bool is_full(const Range& range, ZeroPoints zeros) {
  constexpr int nearly = 126, nearly_all = 253;
  if (range.least >= range.largest) return true;
  if (zeros == ZeroPoints::own) return range.largest - range.least >= nearly_all;
  return std::max(range.largest, -range.least) >= nearly;
}

}  // namespace

std::string why_maybe_packed(const FileParts& parts, const StoredCodes& codes, const BlockLayout& layout,
                             ZeroPoints zeros) {
  if (!parts.reading().stated.bits.empty() || layout.columns == 0 || layout.columns > most_bytes) return "";
  const std::int64_t block = layout.block_rows * layout.columns;
  std::int64_t size = static_cast<std::int64_t>(codes.bytes);
  if (size > most_bytes) size = std::max<std::int64_t>(1, most_bytes / block) * block;
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(size, 4 * most_bytes)));
  parts.file().read_bytes(codes, 0, bytes);
  constexpr std::string_view remedy =
      "so that they may be two codes of four bits each; num_bits in the quantization_config of "
      "config.json tells";
  if (have_like_halves(bytes))
    return fmt::format("the low and the high four bits of its bytes are distributed alike, {}", remedy);
  const std::vector<Range> ranges = ranges_of(bytes, layout, codes.type == "I8");
  const bool are_small =
      std::ranges::all_of(ranges, [](const Range& range) { return range.least >= -8 && range.largest < 8; });
  const bool are_full =
      std::ranges::all_of(ranges, [&](const Range& range) { return is_full(range, zeros); });
  if (layout.scale_columns == 1 || are_small || are_full) return "";
  return fmt::format(
      "it has {} scales for a row, under which integers of eight bits reach the end of their range, "
      "and these do not, {}",
      layout.scale_columns, remedy);
}

}  // namespace halfscope
