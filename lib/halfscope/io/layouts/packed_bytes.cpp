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

/// The two halves of the bytes, but for bytes of 0.
class Halves {
 public:
  explicit Halves(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      const auto bits = std::to_integer<std::size_t>(byte);
      if (bits == 0) continue;
      ++low[bits % 16];
      ++high[bits / 16];
      ++count;
    }
    even.fill(1.0 / 16);
    for (Shares* const shares : {&low, &high})
      for (double& share : *shares) share /= std::max(count, 1.0);
  }

  [[nodiscard]] bool are_enough() const { return count >= 512; }
  /// Not evenly, as two small numbers are: the low half of a large number is even, and the high half of a
  /// small one is its sign.
  [[nodiscard]] bool are_alike() const {
    constexpr double uneven = 0.15;
    return distance(low, even) > uneven && distance(low, high) < distance(low, even) / 2;
  }
  /// Both have the same values, and lack one, as codes from -7 to 7 have no -8.
  [[nodiscard]] bool lack_the_same() const {
    bool do_lack = false;
    for (std::size_t i = 0; i < even.size(); ++i) do_lack = do_lack || (low[i] == 0 && high[i] == 0);
    return do_lack && distance(low, high) < noise();
  }
  [[nodiscard]] bool are_even() const {
    return distance(low, even) < noise() && distance(high, even) < noise();
  }

 private:
  [[nodiscard]] double noise() const { return 0.05 + 2 / std::sqrt(count); }

  Shares low{}, high{}, even{};
  double count = 0;
};

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

/// Even bytes by what tells two codes of four bits from integers of eight.
struct EvenBytes {
  std::span<const std::byte> bytes;
  std::size_t scales = 1;
  bool is_signed = true;
  bool are_full = true;  ///< under each scale they reach the end of their range

  /// Integers of eight bits have no -128 where their scale is that of the largest magnitude, and reach 0 and
  /// 255 once under each scale; even pairs have each as often as any other value.
  [[nodiscard]] bool may_be_pairs() const {
    if (!are_full) return true;
    constexpr double deviations = 3, unlikely = 0.001;
    const double each = static_cast<double>(bytes.size()) / 256, ends = is_signed ? each : 2 * each;
    const double found = is_signed ? count(128) : count(0) + count(255);
    if (std::abs(found - ends) > deviations * std::sqrt(ends)) return false;
    const double reach = chance_of_full(each / static_cast<double>(scales));
    return std::pow(reach, static_cast<double>(scales)) > unlikely;
  }

 private:
  /// The chance that even pairs reach the end of a scale's range, as is_full has it, where each value is
  /// expected `times` under it.
  [[nodiscard]] double chance_of_full(double times) const {
    const double none = std::exp(-times), one = 1 - none;
    if (is_signed) return 1 - std::pow(none, 5);
    return one * (1 - std::pow(none, 3)) + none * one * (1 - none * none) + none * none * one * one;
  }

  [[nodiscard]] double count(int value) const {
    return static_cast<double>(std::ranges::count(bytes, static_cast<std::byte>(value)));
  }
};

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
  const bool is_signed = codes.type == "I8";
  const std::vector<Range> ranges = ranges_of(bytes, layout, is_signed);
  const bool are_small = std::ranges::all_of(ranges, [&](const Range& range) {
    return range.least >= (is_signed ? -8 : 0) && range.largest < (is_signed ? 8 : 16);
  });
  const bool are_full =
      std::ranges::all_of(ranges, [&](const Range& range) { return is_full(range, zeros); });
  const Halves halves(bytes);
  if (halves.are_enough() && (halves.are_alike() || (!are_small && halves.lack_the_same())))
    return fmt::format("the low and the high four bits of its bytes are distributed alike, {}", remedy);
  const EvenBytes even{bytes, ranges.size(), is_signed, are_full};
  if (halves.are_enough() && halves.are_even() && even.may_be_pairs())
    return fmt::format("its bytes are spread evenly over all values, {}", remedy);
  if (layout.scale_columns == 1 || are_small || are_full) return "";
  return fmt::format(
      "it has {} scales for a row, under which integers of eight bits reach the end of their range, "
      "and these do not, {}",
      layout.scale_columns, remedy);
}

}  // namespace halfscope
