// Writes experiments as TOML.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

#include "experiments/definition/experiment_file.hpp"
#include "experiments/definition/judgement_file.hpp"
#include "experiments/definition/toml_file.hpp"

namespace halfscope {
namespace {

/// A decimal number stands without quotes, and so it is read back as the same number.
std::string value_text(const std::string& value) {
  double number = 0;
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  const bool is_number =
      error == std::errc{} && rest == end && std::isdigit(static_cast<unsigned char>(value.back())) != 0;
  if (!is_number) return toml_quoted(value);
  return value.find('.') == 0 ? "0" + value : value;
}

/// A line per key, with the value that counts, at the place of its first.
std::string lines_of(const Settings& settings) {
  Settings last;
  for (const auto& [key, value] : settings) {
    const auto found = std::ranges::find(last, key, &Settings::value_type::first);
    if (found == last.end()) {
      last.emplace_back(key, value);
    } else {
      found->second = value;
    }
  }
  std::string text;
  for (const auto& [key, value] : last) text += fmt::format("{} = {}\n", toml_key(key), value_text(value));
  return text;
}

void add_table(std::string& text, std::string_view name, const std::string& lines) {
  if (!lines.empty()) text += fmt::format("\n[{}]\n{}", name, lines);
}

std::string metric_lines(const ReportedMetric& metric) {
  return fmt::format("key = {}\nname = {}\nunit = {}\ncomparison = {}\nlower_is_better = {}\ndigits = {}\n",
                     toml_quoted(metric.key), toml_quoted(metric.name), toml_quoted(metric.unit),
                     toml_quoted(name_of(metric.comparison)), metric.lower_is_better, metric.digits);
}

std::string head(const Experiment& experiment) {
  std::string text = fmt::format("name = {}\n", toml_quoted(experiment.name));
  const auto add = [&](std::string_view key, const std::string& value) {
    text += fmt::format("{} = {}\n", key, value);
  };
  if (!experiment.base.empty()) add("base", toml_quoted(experiment.base));
  if (experiment.place != 0) add("place", fmt::format("{}", experiment.place));
  add("summary", toml_quoted(experiment.summary));
  if (!experiment.paper.empty()) add("paper", toml_quoted(experiment.paper));
  if (!experiment.varied.empty()) add("varied", toml_list(experiment.varied));
  if (!experiment.predicts_from.empty()) add("predicts_from", toml_quoted(experiment.predicts_from));
  if (!experiment.quick_arms.empty()) add("quick_arms", toml_list(experiment.quick_arms));
  if (!experiment.full_arms.empty()) add("full_arms", toml_list(experiment.full_arms));
  if (experiment.quick_set == QuickSet::left_out)
    add("quick_set", toml_quoted(name_of(experiment.quick_set)));
  if (experiment.report != ReportParts{}) {
    const ReportParts& parts = experiment.report;
    add("columns", fmt::format("{{ scale = {}, {}arms = {} }}", toml_quoted(name_of(parts.scale)),
                               parts.memory == Shown::shown ? "memory = \"shown\", " : "",
                               toml_quoted(name_of(parts.arms))));
  }
  return text;
}

}  // namespace

std::string to_toml(const Experiment& experiment) {
  const bool has_own_judgement = experiment.base.empty();  // otherwise the base's
  std::string text = head(experiment);
  if (has_own_judgement) text += judgement_head(experiment);
  add_table(text, "metric", metric_lines(experiment.metric));
  add_table(text, "settings", lines_of(experiment.settings));
  add_table(text, "full_settings", lines_of(experiment.full_settings));
  for (const Arm& arm : experiment.arms) {
    const std::string name = "arm." + toml_key(arm.name);
    text += fmt::format("\n[{}]\nsummary = {}\n", name, toml_quoted(arm.summary));
    if (!arm.baseline.empty()) text += fmt::format("baseline = {}\n", toml_quoted(arm.baseline));
    text += lines_of(arm.settings);
    add_table(text, name + ".full_settings", lines_of(arm.full_settings));
  }
  if (has_own_judgement) text += judgement_tables(experiment);
  return text;
}

}  // namespace halfscope
