// Counts what several formats, in blocks or without, do to one tensor.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <halfscope/format/tensor_format.hpp>
#include <halfscope/stats/detail/block_counter.hpp>

namespace halfscope {

/// Largest magnitude of a tensor without NaNs: with infinity, and without.
struct TensorMaximum {
  float any = 0, finite = 0;

  void add(std::span<const float> values);
  void merge(const TensorMaximum& other);
};

/// The formats' counters for one tensor. A format without blocks that has at most 8 bits gets one power of
/// two for the tensor, the least under which no finite element overflows. All elements saturate.
class FormatCounter {
 public:
  FormatCounter(std::span<const TensorFormat> formats, const TensorMaximum& maximum,
                ScaledExponents exponents);

  /// Sums of the part's rows, by format.
  using SumsByFormat = std::vector<std::vector<RowSums>>;
  /// Adds a part, see CountedPart, to the counts of each format; `found` is empty at first. `sums` gets those
  /// of the part's rows.
  void add(const CountedPart& part, std::vector<BlockCounts>& found, SumsByFormat& sums) const;
  /// Adds a part of whole rows to the sums of its columns, by format; `columns` is empty at first.
  void add_columns(const CountedPart& part, SumsByFormat& columns) const;
  /// The whole tensor's counts, once all its parts are in `found`.
  [[nodiscard]] std::vector<FormatCounts> finish(std::vector<BlockCounts> found) const;

 private:
  /// One format of the tensor.
  struct Entry {
    std::optional<BlockCounter> blocks;  ///< nothing of a cast without blocks
    Quantizer cast{};
    BlockScale scale{};
    std::optional<int> scale_log2{};
  };
  void count(const Entry& entry, const CountedPart& part, BlockCounts& found) const;

  std::vector<Entry> entries_;
  ScaledExponents exponents_;
};

}  // namespace halfscope
