// Renders what `halfscope analyze` found.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <halfscope/io/json/json_lines.hpp>

#include "experiments/cli/analyze/analyze.hpp"
#include "experiments/runner/text_table.hpp"

namespace halfscope {
namespace {

std::string window_words(const std::optional<ScaleWindow>& window) {
  return window ? fmt::format("2^{} .. 2^{}", window->low, window->high) : "none";
}

std::string window_of(const TensorFit& fit) {
  return fit.any_scale ? "any" : window_words(fit.window());
}

std::vector<std::string> tensor_row(const TensorReport& tensor) {
  const WhatIf& counts = tensor.counts;
  return {tensor.name,
          fmt::format("{}", counts.elements),
          share_words(counts.of_all(tensor.zeros)),
          share_words(counts.flushed_fraction()),
          share_words(counts.subnormal_fraction()),
          fmt::format("{}", counts.overflow),
          fmt::format("{}", tensor.nonfinite),
          share_words(tensor.lost_energy),
          tensor.cosine ? fmt::format("{:.6f}", *tensor.cosine) : "-",
          window_of(tensor.fit)};
}

std::string tensors_text(const Analysis& analysis) {
  std::vector<std::vector<std::string>> rows{{"tensor", "elements", "zeros", "flushed", "subnormal",
                                              "overflow", "inf/nan", "lost energy", "cosine", "window"}};
  for (const TensorReport& tensor : analysis.tensors) rows.push_back(tensor_row(tensor));
  return fmt::format(
      "Cast to {} without scaling. Flushed and subnormal: of the nonzero values.\n\n{}\n"
      "window of all: {}\n{}\n",
      to_string(analysis.format), text_table(rows), window_words(analysis.advice.joint),
      analysis.advice.verdict);
}

std::string updates_text(const Analysis& analysis) {
  std::vector<std::vector<std::string>> rows{{"update", "elements", "not zero", "lost", "share"}};
  LostUpdates all;
  for (const UpdateReport& update : analysis.updates) {
    const LostUpdates& counts = update.counts;
    const WhatIf shares{.nonzero = counts.nonzero};
    rows.push_back({update.name, fmt::format("{}", counts.elements), fmt::format("{}", counts.nonzero),
                    fmt::format("{}", counts.lost), share_words(shares.of_nonzero(counts.lost))});
    all.nonzero += counts.nonzero;
    all.lost += counts.lost;
  }
  const WhatIf shares{.nonzero = all.nonzero};
  return fmt::format(
      "Updates that would not change a weight stored as {}.\n\n{}\n"
      "lost: {} of all nonzero updates{}\n",
      to_string(analysis.format), text_table(rows), share_words(shares.of_nonzero(all.lost)),
      all.lost == 0 ? "" : "; an FP32 master copy of the weights keeps them");
}

Json window_json(const std::optional<ScaleWindow>& window) {
  return window ? Json{window->low, window->high} : Json();
}

template <typename Value>
Json json_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json tensor_json(const TensorReport& tensor) {
  const WhatIf& counts = tensor.counts;
  return {{"name", tensor.name},
          {"elements", counts.elements},
          {"zeros", tensor.zeros},
          {"flushed", counts.flushed},
          {"subnormal", counts.subnormal},
          {"overflow", counts.overflow},
          {"nonfinite", tensor.nonfinite},
          {"max_abs", shortest(tensor.max_abs)},
          {"lost_energy", tensor.lost_energy},
          {"cosine", json_or_null(tensor.cosine)},
          {"window_log2", window_json(tensor.fit.window())},
          {"any_scale", tensor.fit.any_scale}};
}

Json outlier_json(const Outlier& outlier) {
  return {{"name", outlier.tensor.name},
          {"remedy", std::string(name_of(outlier.remedy))},
          {"scale_log2", json_or_null(outlier.scale_log2)}};
}

template <typename Values, typename ToJson>
Json list_of(const Values& values, ToJson&& to_json) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(to_json(value));
  return list;
}

}  // namespace

std::string share_words(double share) {
  if (share == 0) return "0";
  if (share < 5e-5) return "<0.01 %";
  if (share < 1 && share >= 0.99995) return ">99.99 %";
  return fmt::format("{:.2f} %", 100 * share);
}

std::string analysis_text(const Analysis& analysis) {
  std::string text;
  if (!analysis.tensors.empty()) text += tensors_text(analysis);
  for (const SkippedTensor& skipped : analysis.skipped) {
    text += fmt::format("skipped: {} ({})\n", skipped.name, skipped.reason);
  }
  if (!text.empty() && !analysis.updates.empty()) text += "\n";
  if (!analysis.updates.empty()) text += updates_text(analysis);
  return text;
}

std::string analysis_json(const Analysis& analysis) {
  const auto skipped_json = [](const SkippedTensor& skipped) {
    return Json{{"name", skipped.name}, {"reason", skipped.reason}};
  };
  const auto update_json = [](const UpdateReport& update) {
    return Json{{"name", update.name},
                {"elements", update.counts.elements},
                {"nonzero", update.counts.nonzero},
                {"lost", update.counts.lost}};
  };
  return to_text({{"format", to_string(analysis.format)},
                  {"tensors", list_of(analysis.tensors, tensor_json)},
                  {"joint_window_log2", window_json(analysis.advice.joint)},
                  {"recommended_scale_log2", json_or_null(analysis.advice.recommended)},
                  {"first_hurt", analysis.advice.first_hurt},
                  {"verdict", analysis.advice.verdict},
                  {"tolerance", analysis.advisor.tolerance},
                  {"headroom_log2", analysis.advisor.headroom_log2},
                  {"outliers", list_of(analysis.advice.outliers, outlier_json)},
                  {"skipped", list_of(analysis.skipped, skipped_json)},
                  {"updates", list_of(analysis.updates, update_json)}});
}

}  // namespace halfscope
