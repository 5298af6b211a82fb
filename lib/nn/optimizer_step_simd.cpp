// The update rules' loops, compiled once per instruction set.
#include "lib/nn/optimizer_step.hpp"

#include <utility>

namespace halfscope {
namespace {

/// Any rounding, in a function of this file's: inlined, the dozen roundings of a rule take nine times as long
/// to compile.
struct RoundStateByCall {
  RoundState round;
  [[gnu::noinline]] float operator()(float x) const { return round(x); }
};

template <typename Element, typename... Slots>
HALFSCOPE_HD void update_loop(const UpdateRun& run, const Element& element, Slots... slots) {
#pragma omp simd
  for (std::int64_t i = 0; i < run.count; ++i) {
    run.update[i] = element(run.gradient[i] * run.unscale * run.clip, run.weights[i], slots[i]...);
  }
}

template <typename Rule, std::size_t... slot>
HALFSCOPE_HD void update_slots(const UpdateRun& run, const Rule& rule, const Quantizer& state,
                               float* const* slots, std::index_sequence<slot...> /*all*/) {
  const auto run_with = [&](auto round) {
    const typename Rule::template Element<decltype(round)> element(rule, round);
    update_loop(run, element, slots[slot]...);
  };
  if (state.is_identity()) return run_with(KeepState{});
  if (state.rounding == Rounding::nearest_even) return run_with(RoundStateToNearest{rounding_grid(state)});
  run_with(RoundStateByCall{{state}});
}

template <typename Rule>
void update(const UpdateRun& run, const Rule& rule, const Quantizer& state, float* const* slots) {
  update_slots(run, rule, state, slots, std::make_index_sequence<Rule::slots>{});
}

template <typename... Rules>
constexpr std::tuple<UpdateLoop<Rules>...> loops_of(const std::variant<Rules...>* /*rules*/) {
  return {&update<Rules>...};
}

}  // namespace

template <>
constinit const UpdateLoopsOf<UpdateRule>::type UpdateLoops<target_isa>::all =
    loops_of(static_cast<const UpdateRule*>(nullptr));

}  // namespace halfscope
