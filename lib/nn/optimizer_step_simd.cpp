// The optimizers' loops, compiled once per instruction set.
#include "lib/nn/optimizer_step.hpp"

#include "lib/nn/optimizer_step_element.hpp"

namespace halfscope {
namespace {

template <typename Round>
HALFSCOPE_HD void sgd_loop(const UpdateRun& run, const SgdStep& step, Round to, float* velocity) {
  const SgdElement<Round> element(step, to);
#pragma omp simd
  for (std::int64_t i = 0; i < run.count; ++i) {
    run.update[i] = element(run.gradient[i] * run.unscale * run.clip, velocity[i]);
  }
}

template <typename Round>
HALFSCOPE_HD void adam_loop(const UpdateRun& run, const AdamStep& step, Round to, float* first,
                            float* second) {
  const AdamElement<Round> element(step, to);
#pragma omp simd
  for (std::int64_t i = 0; i < run.count; ++i) {
    run.update[i] = element(run.gradient[i] * run.unscale * run.clip, first[i], second[i]);
  }
}

template <typename Round>
HALFSCOPE_HD void rmsprop_loop(const UpdateRun& run, const RmspropStep& step, Round to, float* square,
                               float* velocity) {
  const RmspropElement<Round> element(step, to);
#pragma omp simd
  for (std::int64_t i = 0; i < run.count; ++i) {
    run.update[i] = element(run.gradient[i] * run.unscale * run.clip, square[i], velocity[i]);
  }
}

}  // namespace

template <Isa isa>
void UpdateLoops<isa>::sgd(const UpdateRun& run, const SgdStep& step, const Quantizer& state,
                           float* velocity) {
  if (state.is_identity()) return sgd_loop(run, step, Identity{}, velocity);
  sgd_loop(run, step, RoundTo{state}, velocity);
}

template <Isa isa>
void UpdateLoops<isa>::adam(const UpdateRun& run, const AdamStep& step, const Quantizer& state, float* first,
                            float* second) {
  if (state.is_identity()) return adam_loop(run, step, Identity{}, first, second);
  adam_loop(run, step, RoundTo{state}, first, second);
}

template <Isa isa>
void UpdateLoops<isa>::rmsprop(const UpdateRun& run, const RmspropStep& step, const Quantizer& state,
                               float* square, float* velocity) {
  if (state.is_identity()) return rmsprop_loop(run, step, Identity{}, square, velocity);
  rmsprop_loop(run, step, RoundTo{state}, square, velocity);
}

template struct UpdateLoops<target_isa>;

}  // namespace halfscope
