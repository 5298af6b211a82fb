// Optimizer updates on the device, one thread per weight.
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/optimizer_step_element.hpp"

namespace halfscope::cuda {
namespace {

template <typename Round>
struct Sgd {
  SgdElement<Round> element;
  const float* gradient;
  float* velocity;
  float* update;
  HALFSCOPE_HD void operator()(std::int64_t i) const { update[i] = element(gradient[i], velocity[i]); }
};

template <typename Round>
struct Adam {
  AdamElement<Round> element;
  const float* gradient;
  float* first;
  float* second;
  float* update;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    update[i] = element(gradient[i], first[i], second[i]);
  }
};

}  // namespace

void sgd_update(std::span<const float> gradient, const SgdStep& step, const Quantizer& state,
                std::span<float> velocity, std::span<float> update) {
  const auto launch = [&](auto round) {
    const SgdElement<decltype(round)> element(step, round);
    for_each(static_cast<std::int64_t>(gradient.size()),
             Sgd<decltype(round)>{element, on_device(gradient), on_device(velocity), on_device(update)},
             "sgd_update");
  };
  state.is_identity() ? launch(Identity{}) : launch(RoundTo{state});
}

void adam_update(std::span<const float> gradient, const AdamStep& step, const Quantizer& state,
                 std::span<float> first, std::span<float> second, std::span<float> update) {
  const auto launch = [&](auto round) {
    const AdamElement<decltype(round)> element(step, round);
    for_each(static_cast<std::int64_t>(gradient.size()),
             Adam<decltype(round)>{element, on_device(gradient), on_device(first), on_device(second),
                                   on_device(update)},
             "adam_update");
  };
  state.is_identity() ? launch(Identity{}) : launch(RoundTo{state});
}

}  // namespace halfscope::cuda
