// Tasks by whose trainings predictors of harm are judged.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <halfscope/core/names.hpp>

namespace halfscope {

/// How much worse a training loss is than FP32's: as a ratio, of perplexities where it is the log of one.
enum class LossKind : std::uint8_t { plain, log_perplexity };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<LossKind>{"plain", "log_perplexity"};

/// Whether the thresholds of predictors are chosen on a task, or only tried on it.
enum class HarmSet : std::uint8_t { fitted, held_out };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<HarmSet>{"fitted", "held_out"};

/// Arms of one task: its baseline, which trains in FP32, observes gradients and probes the scales of the
/// others, and every arm that is compared with it, each at a loss scale that is a power of two.
struct HarmTask {
  std::string name;
  std::string baseline{};
  LossKind loss = LossKind::plain;
  HarmSet set = HarmSet::fitted;

  bool operator==(const HarmTask&) const = default;
};

}  // namespace halfscope
