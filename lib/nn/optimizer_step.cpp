// Checks sizes and splits an optimizer's update over the threads.
#include <halfscope/core/parallel.hpp>

#include "lib/nn/optimizer_step.hpp"

namespace halfscope {
namespace {

/// Elements of one task.
constexpr std::int64_t grain = 16384;

void check(bool equal_sizes, const Quantizer& state) {
  if (!equal_sizes) throw InvalidArgument("optimizer update: gradient, state and update differ in size");
  if (state.rounding == Rounding::stochastic) {
    throw InvalidArgument("optimizer_state cannot be rounded stochastically; choose another rounding");
  }
}

}  // namespace

void sgd_update(std::span<const float> gradient, const SgdStep& step, const Quantizer& state,
                std::span<float> velocity, std::span<float> update) {
  check(gradient.size() == velocity.size() && gradient.size() == update.size(), state);
  if (active_device() == Device::cuda) return cuda::sgd_update(gradient, step, state, velocity, update);
  parallel_for_ranges(static_cast<std::int64_t>(gradient.size()), grain,
                      [&](std::int64_t first, std::int64_t count) {
                        dispatch_isa([&]<Isa isa>() {
                          UpdateLoops<isa>::sgd(gradient.data() + first, step, state, velocity.data() + first,
                                                update.data() + first, count);
                        });
                      });
}

void adam_update(std::span<const float> gradient, const AdamStep& step, const Quantizer& state,
                 std::span<float> first_moment, std::span<float> second_moment, std::span<float> update) {
  check(gradient.size() == first_moment.size() && gradient.size() == second_moment.size() &&
            gradient.size() == update.size(),
        state);
  if (active_device() == Device::cuda) {
    return cuda::adam_update(gradient, step, state, first_moment, second_moment, update);
  }
  parallel_for_ranges(
      static_cast<std::int64_t>(gradient.size()), grain, [&](std::int64_t first, std::int64_t count) {
        float* const moments[2] = {first_moment.data() + first, second_moment.data() + first};
        dispatch_isa([&]<Isa isa>() {
          UpdateLoops<isa>::adam(gradient.data() + first, step, state, moments, update.data() + first, count);
        });
      });
}

}  // namespace halfscope
