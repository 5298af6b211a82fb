// Counts how often each bit pattern of a narrow stored type occurs: the same in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace halfscope {

/// Counts of the codes of elements of one or two bytes. A value: copyable, mergeable.
class CodeCounts {
 public:
  /// `bytes` is the width of a code, 1 or 2.
  explicit CodeCounts(std::size_t bytes);

  /// Adds little-endian codes, `elements.size()` a multiple of their width, on one thread.
  void add(std::span<const std::byte> elements);
  void merge(const CodeCounts& other);
  /// Moves all that was added to the totals, and frees what counting needs beside them.
  void settle();

  /// [code]: how often it was added before the last `settle`.
  [[nodiscard]] std::span<const std::int64_t> totals() const { return totals_; }

 private:
  std::size_t bytes_;
  std::vector<std::int64_t> totals_;
  std::vector<std::uint32_t> tables_;  ///< one after the other, so that few counts wait for the one before
  std::uint64_t most_ = 0;             ///< what a count in a table may have reached
};

}  // namespace halfscope
