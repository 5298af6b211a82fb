// Writes experiments as TOML.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

#include "experiments/runner/experiment_file.hpp"
#include "experiments/runner/toml_file.hpp"

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

/// A name that can stand without quotes does.
std::string key_text(std::string_view key) {
  const auto is_bare = [](char c) {
    return (std::isalnum(static_cast<unsigned char>(c)) != 0) || c == '_' || c == '-';
  };
  return std::ranges::all_of(key, is_bare) ? std::string(key) : toml_quoted(key);
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
  for (const auto& [key, value] : last) text += fmt::format("{} = {}\n", key_text(key), value_text(value));
  return text;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + toml_quoted(name);
  return "[" + text + "]";
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
  add("summary", toml_quoted(experiment.summary));
  if (!experiment.paper.empty()) add("paper", toml_quoted(experiment.paper));
  if (!experiment.varied.empty()) add("varied", list_of(experiment.varied));
  if (!experiment.predicts_from.empty()) add("predicts_from", toml_quoted(experiment.predicts_from));
  if (!experiment.quick_arms.empty()) add("quick_arms", list_of(experiment.quick_arms));
  if (!experiment.full_arms.empty()) add("full_arms", list_of(experiment.full_arms));
  if (experiment.quick_set == QuickSet::left_out)
    add("quick_set", toml_quoted(name_of(experiment.quick_set)));
  const bool shows_memory = experiment.memory_column == MemoryColumn::shown;
  if (experiment.scale_columns == ScaleColumns::shown || shows_memory ||
      experiment.arm_lines == ArmLines::hidden) {
    add("columns",
        fmt::format("{{ scale = {}, {}arms = {} }}", toml_quoted(name_of(experiment.scale_columns)),
                    shows_memory ? "memory = \"shown\", " : "", toml_quoted(name_of(experiment.arm_lines))));
  }
  return text;
}

}  // namespace

std::string to_toml(const Experiment& experiment) {
  std::string text = head(experiment);
  add_table(text, "metric", metric_lines(experiment.metric));
  add_table(text, "settings", lines_of(experiment.settings));
  add_table(text, "full_settings", lines_of(experiment.full_settings));
  for (const Arm& arm : experiment.arms) {
    const std::string name = "arm." + key_text(arm.name);
    text += fmt::format("\n[{}]\nsummary = {}\n{}", name, toml_quoted(arm.summary), lines_of(arm.settings));
    add_table(text, name + ".full_settings", lines_of(arm.full_settings));
  }
  return text;
}

}  // namespace halfscope
