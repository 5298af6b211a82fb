// The loops over segments of rows in blocks, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/block/detail/segment.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

/// The arrays of write_values and write_codes.
struct Segment {
  const float *values, *factors, *scales;
  std::size_t count;
  bool is_ordinary;
};

/// Columns of a segment, which is `count` long and begins at `column` of a row with blocks of `columns`.
struct SegmentPlace {
  std::size_t columns, column, count;
};

template <Isa isa>
void spread_isa(const BlockScale* blocks, const SegmentPlace& place, SegmentScales& to);
template <>
void spread_isa<Isa::baseline>(const BlockScale*, const SegmentPlace&, SegmentScales&);
template <>
void spread_isa<Isa::avx2>(const BlockScale*, const SegmentPlace&, SegmentScales&);
template <>
void spread_isa<Isa::avx512>(const BlockScale*, const SegmentPlace&, SegmentScales&);

template <Isa isa>
void write_values_isa(const Segment& segment, const SegmentRounding& rounding, float* out);
template <>
void write_values_isa<Isa::baseline>(const Segment&, const SegmentRounding&, float*);
template <>
void write_values_isa<Isa::avx2>(const Segment&, const SegmentRounding&, float*);
template <>
void write_values_isa<Isa::avx512>(const Segment&, const SegmentRounding&, float*);

template <Isa isa>
void write_codes_isa(const Segment& segment, const SegmentRounding& rounding, std::uint8_t* codes);
template <>
void write_codes_isa<Isa::baseline>(const Segment&, const SegmentRounding&, std::uint8_t*);
template <>
void write_codes_isa<Isa::avx2>(const Segment&, const SegmentRounding&, std::uint8_t*);
template <>
void write_codes_isa<Isa::avx512>(const Segment&, const SegmentRounding&, std::uint8_t*);

template <Isa isa>
void ordinary_values_isa(const OrdinaryRow& row, const SegmentRounding& rounding, float* out);
template <>
void ordinary_values_isa<Isa::baseline>(const OrdinaryRow&, const SegmentRounding&, float*);
template <>
void ordinary_values_isa<Isa::avx2>(const OrdinaryRow&, const SegmentRounding&, float*);
template <>
void ordinary_values_isa<Isa::avx512>(const OrdinaryRow&, const SegmentRounding&, float*);

template <Isa isa>
void ordinary_codes_isa(const OrdinaryRow& row, const SegmentRounding& rounding, std::uint8_t* codes);
template <>
void ordinary_codes_isa<Isa::baseline>(const OrdinaryRow&, const SegmentRounding&, std::uint8_t*);
template <>
void ordinary_codes_isa<Isa::avx2>(const OrdinaryRow&, const SegmentRounding&, std::uint8_t*);
template <>
void ordinary_codes_isa<Isa::avx512>(const OrdinaryRow&, const SegmentRounding&, std::uint8_t*);

template <Isa isa>
void nearest_ue4m3_isa(const float* numbers, std::size_t count, std::uint32_t* codes);
template <>
void nearest_ue4m3_isa<Isa::baseline>(const float*, std::size_t, std::uint32_t*);
template <>
void nearest_ue4m3_isa<Isa::avx2>(const float*, std::size_t, std::uint32_t*);
template <>
void nearest_ue4m3_isa<Isa::avx512>(const float*, std::size_t, std::uint32_t*);

}  // namespace halfscope
