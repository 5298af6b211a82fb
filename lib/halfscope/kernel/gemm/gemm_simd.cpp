// The matrix product with rounded adds, compiled once per instruction set: the step and the fast path of a
// model.
#include <halfscope/kernel/gemm/detail/gemm_simd.hpp>

#include <type_traits>

#include <halfscope/kernel/gemm/detail/fused_lanes.hpp>
#include <halfscope/kernel/gemm/detail/gemm_column_lanes.hpp>
#include <halfscope/kernel/gemm/detail/gemm_tile_lanes.hpp>

namespace halfscope {
namespace {

/// Whether a rounding is to fewer significand bits than FP32 has. No other has a fast path, or a fused step.
template <typename Round>
[[maybe_unused]] constexpr bool cuts_significand = !std::is_same_v<Round, RoundTo<RoundWay::by_element>>;

/// `multiply` with one rounding per term. gemm() has checked the format.
void multiply_fused(const GatherMatrix& a, const RightMatrix& b, float* c, const OutputRange& range,
                    const FloatFormat& format) {
  const auto with = [&](auto step) {
    multiply(a, b, c, range, Order<decltype(step)>{{}, {}, depth_block, step});
  };
#if defined(__FMA__)
  const auto with_fast_path = [&](auto step) {
    const float largest_a = largest_magnitude<FastFused>(a, range.rows);
    multiply(a, b, c, range, Order<decltype(step), FastFused>{{}, {}, depth_block, step, largest_a});
  };
#else
  const auto& with_fast_path = with;
#endif
  if (format == FloatFormat{}) return with(FuseFp32{});
#if defined(__AVX512F__)
  if (format == fp16) return with_fast_path(FuseByOdd<RoundToFp16>{});
  with_rounding_to(format, [&]<typename Round>(Round to) {
    if constexpr (cuts_significand<Round>) with(FuseByOdd<Round>{to});
  });
#else
  const FuseByDouble step{double_grid(format)};
  if (format == fp16) return with_fast_path(step);
  with(step);
#endif
}

}  // namespace

template <Isa isa>
void gemm_range_isa(const GatherMatrix& a, const RightMatrix& b, float* c, const OutputRange& range,
                    const AccumulateModel& model) {
  if (model.order == AccumulateOrder::fused) return multiply_fused(a, b, c, range, model.format);
  const std::size_t terms =
      model.order == AccumulateOrder::chunked ? static_cast<std::size_t>(model.chunk) : depth_block;
  const auto with = [&](auto step) {
    multiply(a, b, c, range, Order<decltype(step)>{{}, model.order, terms, step});
  };
  const auto with_rounding = [&]<typename Round>(Round to) {
    const MulThenAdd<Round> step{to};
#if defined(__FMA__)
    if constexpr (cuts_significand<Round>) {
      if (terms <= depth_block && FastMulThenAdd::has(model.format)) {
        return multiply(
            a, b, c, range,
            Order<MulThenAdd<Round>, FastMulThenAdd>{FastMulThenAdd(model.format), model.order, terms, step});
      }
    }
#endif
    with(step);
  };
  if (model.format == FloatFormat{}) return with(MulThenAdd<Identity>{});
  if (model.format == fp16) return with_rounding(RoundToFp16{});
  with_rounding_to(model.format, with_rounding);
}
template void gemm_range_isa<target_isa>(const GatherMatrix&, const RightMatrix&, float*, const OutputRange&,
                                         const AccumulateModel&);

}  // namespace halfscope
