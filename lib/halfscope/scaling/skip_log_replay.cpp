// Hands the steps of a log to two replays.
#include <halfscope/scaling/skip_log_replay.hpp>

#include <algorithm>

namespace halfscope {
namespace {

constexpr double largest_fp16 = 65504;
/// Logs print norms with three decimals.
constexpr double norm_rounding = 0.0005;

}  // namespace

SkipLogReplay::SkipLogReplay(const std::vector<std::string>& names, const ScalerSettings& settings,
                             std::string_view option_prefix)
    : least_(names, settings, option_prefix), greatest_(names, settings, option_prefix) {
  least_.restrict_to(GradientDetail::finite);
  greatest_.restrict_to(GradientDetail::finite);
}

void SkipLogReplay::step(const LoggedStep& step) {
  TraceStep recorded{.step = step.step, .scale = step.scale, .finite = !step.skipped};
  least_.step(recorded);
  recorded.max_abs = largest_fp16;
  if (step.grad_norm)
    recorded.max_abs = std::min(largest_fp16, (*step.grad_norm + norm_rounding) * step.scale);
  greatest_.step(recorded);
}

std::optional<std::int64_t> SkipLogReplay::first_unsure(std::size_t index) const {
  const auto& few = least_.candidates()[index].replay.overflows();
  const auto& many = greatest_.candidates()[index].replay.overflows();
  const auto [one, other] = std::ranges::mismatch(few, many);
  if (one == few.end() && other == many.end()) return std::nullopt;
  if (one == few.end()) return *other;
  return other == many.end() ? *one : std::min(*one, *other);
}

std::vector<SkipLogOutcome> SkipLogReplay::outcomes() const {
  std::vector<SkipLogOutcome> outcomes;
  for (std::size_t i = 0; i < least_.candidates().size(); ++i) {
    const auto unsure = first_unsure(i);
    outcomes.push_back({&least_.candidates()[i], unsure ? "least" : "any", unsure});
    if (unsure) outcomes.push_back({&greatest_.candidates()[i], "greatest", unsure});
  }
  return outcomes;
}

}  // namespace halfscope
