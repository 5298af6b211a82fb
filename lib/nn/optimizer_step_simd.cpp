// The optimizers' loops, compiled once per instruction set.
#include "lib/nn/optimizer_step.hpp"

#include "lib/nn/optimizer_step_element.hpp"

namespace halfscope {
namespace {

template <typename Round>
HALFSCOPE_HD void sgd_loop(const float* gradient, const SgdStep& step, Round to, float* velocity,
                           float* update, std::int64_t count) {
  const SgdElement<Round> element(step, to);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) update[i] = element(gradient[i], velocity[i]);
}

template <typename Round>
HALFSCOPE_HD void adam_loop(const float* gradient, const AdamStep& step, Round to, float* const moments[2],
                            float* update, std::int64_t count) {
  const AdamElement<Round> element(step, to);
  float* first = moments[0];
  float* second = moments[1];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) update[i] = element(gradient[i], first[i], second[i]);
}

}  // namespace

template <Isa isa>
void UpdateLoops<isa>::sgd(const float* gradient, const SgdStep& step, const Quantizer& state,
                           float* velocity, float* update, std::int64_t count) {
  if (state.is_identity()) return sgd_loop(gradient, step, Identity{}, velocity, update, count);
  sgd_loop(gradient, step, RoundTo{state}, velocity, update, count);
}

template <Isa isa>
void UpdateLoops<isa>::adam(const float* gradient, const AdamStep& step, const Quantizer& state,
                            float* const moments[2], float* update, std::int64_t count) {
  if (state.is_identity()) return adam_loop(gradient, step, Identity{}, moments, update, count);
  adam_loop(gradient, step, RoundTo{state}, moments, update, count);
}

template struct UpdateLoops<target_isa>;

}  // namespace halfscope
