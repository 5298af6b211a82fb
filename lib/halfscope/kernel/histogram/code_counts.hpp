// Counts how often each magnitude of a narrow stored type occurs: the same in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <halfscope/core/dtype.hpp>
#include <halfscope/kernel/histogram/histogram.hpp>

namespace halfscope {

/// Whether elements of `type` have few enough codes to count them one by one.
[[nodiscard]] constexpr bool has_few_codes(DType type) {
  return bytes_per_element(type) <= 2;
}
/// The codes of `bytes` bytes that are told apart: without their sign, and that of -0.
[[nodiscard]] constexpr std::size_t code_count(std::size_t bytes) {
  return (std::size_t{1} << (8 * bytes - 1)) + 1;
}

/// Words of 16 bits are counted by magnitude, and zeros in as many other places as there are numbers in a
/// vector: an increment waits for the one before where both are of one count, and zeros are the only number
/// that real tensors are full of.
struct WordPlaces {
  static constexpr std::size_t magnitudes = 1 << 15;
  static constexpr std::size_t zeros = 32;
};

/// Counts of the magnitudes of elements of one or two bytes. A value: copyable, mergeable.
class CodeCounts {
 public:
  /// `bytes` is the width of a code, 1 or 2.
  explicit CodeCounts(std::size_t bytes);

  /// Adds little-endian codes, `elements.size()` a multiple of their width, on one thread.
  void add(std::span<const std::byte> elements);
  void merge(const CodeCounts& other);
  /// Moves all that was added to the totals, and frees what counting needs beside them.
  void settle();

  /// [code]: how often it was added before the last `settle`, with or without a sign; the last is that of -0,
  /// the only negative number that is told from its opposite.
  [[nodiscard]] std::span<const std::int64_t> totals() const { return totals_; }

 private:
  [[nodiscard]] std::span<std::int64_t> totals_to_add_to();
  void add_table_to(std::span<std::int64_t> totals) const;

  std::size_t bytes_;
  std::vector<std::int64_t> totals_;
  std::vector<std::uint32_t> table_;  ///< counts of words, see `count_words_isa`; empty while all are 0
  std::int64_t negative_zeros_ = 0;   ///< among the zeros of the table
  std::uint64_t most_ = 0;            ///< most that a count in the table may have reached
};

/// Adds the elements that settled `codes` count to `counts`, as `histogram` adds their floats: numbers[code]
/// is the float of each code.
void add_codes(const CodeCounts& codes, std::span<const float> numbers, HistogramCounts& counts,
               const BinadeEdges& edges = binade_edges(fp16));

}  // namespace halfscope
