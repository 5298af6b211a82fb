// The loops of magnitudes' sums, compiled once per instruction set.
#pragma once

#include <cstddef>

#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

inline constexpr std::size_t magnitude_columns = 512;  // that are added up at once

/// The sum of |x| over `count` elements.
template <Isa isa>
double row_magnitude_isa(const float* values, std::size_t count);
template <>
double row_magnitude_isa<Isa::baseline>(const float*, std::size_t);
template <>
double row_magnitude_isa<Isa::avx2>(const float*, std::size_t);
template <>
double row_magnitude_isa<Isa::avx512>(const float*, std::size_t);

/// Rows of numbers, `stride` apart.
struct Rows {
  const float* start = nullptr;
  std::size_t count = 0, stride = 0;
};

/// The sum of |x| of each of `columns` columns, at most `magnitude_columns`, row by row.
template <Isa isa>
void column_magnitudes_isa(const Rows& rows, std::size_t columns, double* sums);
template <>
void column_magnitudes_isa<Isa::baseline>(const Rows&, std::size_t, double*);
template <>
void column_magnitudes_isa<Isa::avx2>(const Rows&, std::size_t, double*);
template <>
void column_magnitudes_isa<Isa::avx512>(const Rows&, std::size_t, double*);

}  // namespace halfscope
