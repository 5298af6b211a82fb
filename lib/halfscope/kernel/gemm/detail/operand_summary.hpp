// Summary of a product's operands, by which a fast path is chosen before it starts; only for *_simd.cpp.
#pragma once

#include <span>

#include <halfscope/kernel/cast/detail/round_lanes.hpp>
#include <halfscope/kernel/detail/vector.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

/// The largest magnitude of some numbers, which is infinite if a `FastPath` that only takes FP16 numbers is
/// given others. NaNs count as larger than all numbers.
template <typename FastPath>
class OperandSummary {
 public:
  HALFSCOPE_HD void see(FloatVec x) {
    largest_ = larger(largest_, magnitude_of(x));
    if constexpr (FastPath::needs_fp16) other_ |= as_ints(round_to_fp16(x)) ^ as_ints(x);
  }
  void see(const float* values, std::size_t count) {
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) see(load(values + i));
    see(load_some(values + i, count - i));
  }
  [[nodiscard]] float largest() const {
    std::int32_t largest = 0, other = 0;
    for (std::size_t i = 0; i < lanes; ++i) {
      largest = largest_[i] > largest ? largest_[i] : largest;
      other |= other_[i];
    }
    return from_bits(other != 0 ? infinity_bits : static_cast<std::uint32_t>(largest));
  }

 private:
  Ints largest_{}, other_{};
};

/// Largest magnitude in some rows of a.
template <typename FastPath>
[[maybe_unused]] float largest_magnitude(const GatherMatrix& a, const RowRange& range) {
  const auto* const data = static_cast<const float*>(a.data.data);
  const std::span<const std::int32_t> rows = a.row.subspan(
      static_cast<std::size_t>(range.first), static_cast<std::size_t>(range.last - range.first));
  OperandSummary<FastPath> summary;
  if (rows.empty() || a.column.empty()) return 0;
  if (a.stride > 0 && a.layout == MatrixLayout::row_major) {
    for (const std::int32_t row : rows) summary.see(data + row + a.column[0], a.column.size());
  } else if (a.stride > 0) {
    for (const std::int32_t column : a.column) summary.see(data + rows[0] + column, rows.size());
  } else {
    for (const std::int32_t row : rows) {
      for (std::size_t k = 0; k < a.column.size(); k += lanes) {
        FloatVec gathered{};
        for (std::size_t i = 0; i < lanes && k + i < a.column.size(); ++i) {
          gathered[i] = data[row + a.column[k + i]];
        }
        summary.see(gathered);
      }
    }
  }
  return summary.largest();
}

}  // namespace
}  // namespace halfscope
