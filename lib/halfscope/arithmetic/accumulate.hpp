// How a sum adds up: the precision of the partial sums and the order of the adds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <halfscope/core/names.hpp>
#include <halfscope/format/catalogue.hpp>

namespace halfscope {

enum class AccumulateOrder : std::uint8_t {
  sequential,  ///< one partial sum, terms in ascending order
  chunked,     ///< each run of `chunk` terms sequentially in `format`; the chunks' sums sequentially in FP32
  pairwise,  ///< a binary tree: equal halves are added, a ragged end joins from its smallest subtree upwards
};
template <>
inline constexpr std::array<std::string_view, 3> enum_names<AccumulateOrder>{"sequential", "chunked",
                                                                             "pairwise"};

/// A value. Every term and every partial sum is rounded (nearest even) to `format`; FP32 products and sums
/// are rounded separately, never fused. Printed as "fp16_sequential", "fp32_chunked(256)", "fp16_pairwise".
struct AccumulateModel {
  FloatFormat format = fp32;
  AccumulateOrder order = AccumulateOrder::sequential;
  int chunk = 0;  ///< terms per chunk; 0 unless chunked

  friend constexpr bool operator==(const AccumulateModel&, const AccumulateModel&) = default;
};

struct NamedAccumulateModel {
  std::string_view name;
  std::string_view summary;
};

/// What `halfscope list accumulators` shows; any format's name may stand for fp16 and fp32.
inline constexpr std::array accumulate_models{
    NamedAccumulateModel{"fp32_sequential", "FP32 partial sum, ascending order"},
    NamedAccumulateModel{"fp32_chunked(256)", "FP32, chunks of 256 terms, then their sums"},
    NamedAccumulateModel{"fp32_pairwise", "FP32, binary tree"},
    NamedAccumulateModel{"fp16_sequential",
                         "FP16 partial sum, ascending order: stagnates and overflows first"},
    NamedAccumulateModel{"fp16_chunked(64)", "FP16 inside chunks of 64 terms, FP32 across them"},
    NamedAccumulateModel{"fp16_pairwise", "FP16, binary tree"},
};

[[nodiscard]] std::string to_string(const AccumulateModel& model);
/// Throws RequestError with the nearest known name, or naming a chunk outside 1..2^20.
[[nodiscard]] AccumulateModel parse_accumulate_model(std::string_view text);

/// The sum of `terms` as `model` adds them up: the scalar definition that every kernel equals bit for bit.
[[nodiscard]] float accumulate(std::span<const float> terms, const AccumulateModel& model);

}  // namespace halfscope
