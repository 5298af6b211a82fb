// Fills sentences in with the results of arms.
#include "experiments/results/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "experiments/results/arm_columns.hpp"
#include "experiments/results/divergence.hpp"
#include "experiments/results/judgement.hpp"

namespace halfscope {
namespace {

/// "2.25 points below", "0.381 below", "at 2.290 times": what stands between an arm and its baseline.
std::string distance(const ReportedMetric& metric, double ours, double theirs) {
  if (metric.comparison == Comparison::ratio) return fmt::format("at {:.3f} times", ours / theirs);
  const double gap = ours - theirs;
  return fmt::format("{:.{}f}{} {}", std::fabs(gap), metric.digits,
                     metric.comparison == Comparison::points ? " points" : "", gap < 0 ? "below" : "above");
}

/// The words for a placeholder; empty where an arm of it has no result.
class Words {
 public:
  explicit Words(const ExperimentSummary& summary) : summary_(summary) {}

  [[nodiscard]] std::optional<std::string> of(std::string_view text) const {
    const Placeholder placeholder = parse_placeholder(text);
    if (placeholder.kind == Placeholder::Kind::finding) return of_finding(placeholder);
    const ArmSummary* arm = summary_.find(placeholder.subject);
    if (arm == nullptr) return std::nullopt;
    if (placeholder.kind == Placeholder::Kind::column) return of_column(*arm, placeholder);
    if (placeholder.kind == Placeholder::Kind::words)
      return against_baseline(summary_, arm->arm, std::string(placeholder.other));
    return of_numbers(*arm, placeholder);
  }

 private:
  [[nodiscard]] std::optional<std::string> of_finding(const Placeholder& placeholder) const {
    const auto found = std::ranges::find(summary_.findings, placeholder.subject, &AnalysisResult::analysis);
    if (found == summary_.findings.end()) return std::nullopt;
    if (placeholder.other.empty())
      return found->sentence.empty() ? std::nullopt : std::optional(found->sentence);
    const auto on_arm = found->on_arms.find(std::string(placeholder.other));
    return on_arm == found->on_arms.end() ? std::nullopt : std::optional(on_arm->second);
  }

  [[nodiscard]] static std::optional<std::string> of_column(const ArmSummary& arm,
                                                            const Placeholder& placeholder) {
    const std::optional<double> value = arm.column(placeholder.other);
    if (!value) return std::nullopt;
    return column_text(find_arm_column(placeholder.other), value, placeholder.digits);
  }

  [[nodiscard]] std::optional<std::string> of_numbers(const ArmSummary& arm,
                                                      const Placeholder& placeholder) const {
    const ArmSummary* baseline = summary_.find(placeholder.other);
    if (baseline == nullptr || !arm.mean || !baseline->mean) return std::nullopt;
    switch (placeholder.kind) {
      case Placeholder::Kind::ratio:
        return fmt::format("{:.2f}", *arm.mean / *baseline->mean);
      case Placeholder::Kind::difference:
        return fmt::format("{:.{}f}", *baseline->mean - *arm.mean, summary_.metric.digits);
      default:
        return fmt::format("{:.0f} %", 100 * (1 - *arm.mean / *baseline->mean));
    }
  }

  const ExperimentSummary& summary_;
};

/// `text` with its placeholders filled in; empty where one cannot be.
std::optional<std::string> filled(const std::string& text, const ExperimentSummary& summary) {
  const Words words(summary);
  std::string result;
  std::string_view rest = text;
  for (const std::string_view placeholder : placeholders(text)) {
    const std::optional<std::string> found = words.of(placeholder);
    if (!found) return std::nullopt;
    const std::size_t open = rest.find('{');
    result.append(rest.substr(0, open)).append(*found);
    rest = rest.substr(open + placeholder.size() + 2);
  }
  return result.append(rest);
}

std::vector<std::string> filled(const std::vector<Sentence>& sentences, const ExperimentSummary& summary);

std::optional<std::string> filled(const Sentence& sentence, const ExperimentSummary& summary) {
  const bool is_said = std::ranges::all_of(sentence.when, [&](const Expectation& expectation) {
    return judge(summary, expectation) == Judgement::holds;
  });
  if (!is_said && sentence.otherwise.empty()) return std::nullopt;
  std::optional<std::string> text = filled(is_said ? sentence.text : sentence.otherwise, summary);
  if (!text || sentence.items.empty()) return text;
  const std::vector<std::string> items = filled(sentence.items, summary);
  if (items.empty()) return std::nullopt;
  const std::optional<std::string> closing = filled(sentence.closing, summary);
  return closing ? std::optional(fmt::format("{}{}{}", *text, fmt::join(items, sentence.join), *closing))
                 : std::nullopt;
}

std::vector<std::string> filled(const std::vector<Sentence>& sentences, const ExperimentSummary& summary) {
  std::vector<std::string> texts;
  for (const Sentence& sentence : sentences)
    if (std::optional<std::string> text = filled(sentence, summary)) texts.push_back(*std::move(text));
  return texts;
}

}  // namespace

std::string with_unit(const ReportedMetric& metric, double value) {
  return fmt::format("{:.{}f}{}{}", value, metric.digits, metric.unit.empty() ? "" : " ", metric.unit);
}

std::string diverged_words(const ArmSummary& arm) {
  std::string how = arm.diverged_step ? fmt::format("first at step {}", *arm.diverged_step) : "";
  if (arm.beyond > 0)
    how += fmt::format("{}{} ended beyond {:g} times the untrained model", how.empty() ? "" : "; ",
                       arm.beyond, diverged_multiple);
  return fmt::format("{} diverged in {} of {} seed{} ({})", arm.arm, arm.diverged, arm.values.size(),
                     arm.values.size() == 1 ? "" : "s", how);
}

std::string against_baseline(const ExperimentSummary& summary, const std::string& arm,
                             const std::string& baseline) {
  const ArmSummary* ours = summary.find(arm);
  const ArmSummary* theirs = summary.find(baseline);
  if (ours == nullptr) return arm + " was not run";
  if (!ours->mean) return diverged_words(*ours);
  std::string text;
  if (theirs == nullptr || !theirs->mean) {
    text = fmt::format("{} ends at {} (no {} to compare with)", arm, with_unit(summary.metric, *ours->mean),
                       baseline);
  } else {
    text = fmt::format(
        "{} ends {} {} ({} against {})", arm, distance(summary.metric, *ours->mean, *theirs->mean), baseline,
        fmt::format("{:.{}f}", *ours->mean, summary.metric.digits), with_unit(summary.metric, *theirs->mean));
  }
  if (ours->diverged > 0) text += "; " + diverged_words(*ours);
  return text;
}

std::string fill_in(const std::vector<Sentence>& sentences, const ExperimentSummary& summary) {
  const std::vector<std::string> texts = filled(sentences, summary);
  return texts.empty() ? "No arms to compare were run." : fmt::format("{}", fmt::join(texts, " "));
}

}  // namespace halfscope
