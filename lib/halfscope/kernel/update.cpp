// The optimizers' loops, compiled once per instruction set.
#include <halfscope/kernel/update.hpp>

#include <cmath>

#include <halfscope/format/round.hpp>

namespace halfscope {
namespace {

struct KeepFp32 {
  HALFSCOPE_HD float operator()(float x) const { return x; }
};

struct RoundTo {
  Quantizer quantizer;
  HALFSCOPE_HD float operator()(float x) const { return round(x, quantizer); }
};

template <typename Round>
HALFSCOPE_HD void sgd_loop(const float* gradient, const SgdStep& step, Round to, float* velocity,
                           float* update, std::int64_t count) {
  const float momentum = to(step.momentum), rate = to(step.learning_rate);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    velocity[i] = to(to(momentum * velocity[i]) + to(gradient[i]));
    update[i] = to(-rate * velocity[i]);
  }
}

template <typename Round>
HALFSCOPE_HD void adam_loop(const float* gradient, const AdamStep& step, Round to, float* const moments[2],
                            float* update, std::int64_t count) {
  const float beta1 = to(step.beta1), beta2 = to(step.beta2), epsilon = to(step.epsilon);
  const float rest1 = to(1.0f - step.beta1), rest2 = to(1.0f - step.beta2), rate = to(step.learning_rate);
  const float correction1 = to(step.correction1), correction2 = to(step.correction2);
  float* first = moments[0];
  float* second = moments[1];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = to(gradient[i]);
    first[i] = to(to(beta1 * first[i]) + to(rest1 * g));
    second[i] = to(to(beta2 * second[i]) + to(rest2 * to(g * g)));
    const float root = to(std::sqrt(to(second[i] / correction2)));
    const float direction = to(to(first[i] / correction1) / to(root + epsilon));
    update[i] = to(-rate * direction);
  }
}

}  // namespace

template <Isa isa>
void UpdateLoops<isa>::sgd(const float* gradient, const SgdStep& step, const Quantizer& state,
                           float* velocity, float* update, std::int64_t count) {
  if (state.is_identity()) return sgd_loop(gradient, step, KeepFp32{}, velocity, update, count);
  sgd_loop(gradient, step, RoundTo{state}, velocity, update, count);
}

template <Isa isa>
void UpdateLoops<isa>::adam(const float* gradient, const AdamStep& step, const Quantizer& state,
                            float* const moments[2], float* update, std::int64_t count) {
  if (state.is_identity()) return adam_loop(gradient, step, KeepFp32{}, moments, update, count);
  adam_loop(gradient, step, RoundTo{state}, moments, update, count);
}

template struct UpdateLoops<target_isa>;

}  // namespace halfscope
