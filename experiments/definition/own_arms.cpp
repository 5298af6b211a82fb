// Checks and appends arms, and keeps verdicts to the arms that they are about.
#include "experiments/definition/own_arms.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include <halfscope/core/name_list.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/policy/operands.hpp>

#include "experiments/definition/arm_config.hpp"

namespace halfscope {
namespace {

constexpr std::size_t most_points = 10'000;

/// Files beside the folders of arms and experiments: of a run, of packed records, of tools/figures.
constexpr std::array<std::string_view, 8> taken_names{"summary.json",     "experiment.toml",    "sweep.json",
                                                      "report.txt",       "report.html",        "runs.jsonl",
                                                      "environment.json", "histograms.jsonl.gz"};

/// `arm` with the settings of the arm that it is like before its own.
Arm resolved(const Experiment& experiment, const Arm& arm) {
  Arm result{arm.name, arm.summary, {}, arm.full_settings, arm.baseline};
  Settings own;
  for (const auto& [key, value] : arm.settings) {
    if (key != "like") {
      own.emplace_back(key, value);
      continue;
    }
    const Arm& model = experiment.arm(value);
    result.settings = with(model.settings, result.settings);
    result.full_settings = with(model.full_settings, result.full_settings);
    if (result.baseline.empty()) result.baseline = model.baseline;
  }
  result.settings = with(result.settings, own);
  return result;
}

bool trains_alike(const Experiment& one, const Experiment& other, const Arm& arm) {
  const auto found = std::ranges::find(other.arms, arm.name, &Arm::name);
  if (found == other.arms.end()) return false;
  return std::ranges::all_of(std::array{RunSize::small, RunSize::full}, [&](RunSize size) {
    return to_json(arm_config(one, arm, size)) == to_json(arm_config(other, *found, size));
  });
}

/// "learning_rate=0.001"; a folder's name has no slash.
std::string point_name(const std::string& key, std::string value) {
  std::ranges::replace(value, '/', '-');
  return fmt::format("{}={}", key, value);
}

/// Whether the part behind a comma is one more of the operands' rules, which have a '=' of their own.
bool continues_rules(std::string_view assignment, std::string_view part) {
  if (!assignment.starts_with("operands=")) return false;
  try {
    (void)parse_operand_rule(part);
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

}  // namespace

void check_folder_name(std::string_view kind, std::string_view name) {
  if (std::ranges::find(taken_names, name) != taken_names.end())
    throw InvalidArgument(
        fmt::format("{} name '{}': a file of the results has it; choose another", kind, name));
  constexpr std::size_t longest = 100;
  const auto is_refused = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f ||
           std::string_view("/,:").find(c) != std::string_view::npos;
  };
  if (!name.empty() && name.size() <= longest && name != "." && name != ".." &&
      std::ranges::none_of(name, is_refused)) {
    return;
  }
  throw InvalidArgument(
      fmt::format("{} name '{}': give 1 to {} printable characters without '/', ',' and ':'", kind,
                  printable(name), longest));
}

void add_arm(Experiment& experiment, Arm arm) {
  check_folder_name("arm", arm.name);
  if (experiment.has_arm(arm.name))
    throw InvalidArgument(fmt::format("arm {}: {} has an arm of that name; choose another", arm.name,
                                      experiment.name.empty() ? "the experiment" : experiment.name));
  Arm added = resolved(experiment, arm);
  (void)arm_config(experiment, added, RunSize::full);
  experiment.arms.push_back(std::move(added));
}

Arm parse_arm(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon + 1 == text.size())
    throw InvalidArgument(fmt::format("--arm {}: give NAME:KEY=VALUE,KEY=VALUE", text));
  Arm arm{.name = text.substr(0, colon), .summary = text.substr(colon + 1), .settings = {}};
  std::vector<std::string> assignments;
  for (const std::string_view part : split_at_commas(arm.summary)) {
    const bool continues = !assignments.empty() && (part.find('=') == std::string_view::npos ||
                                                    continues_rules(assignments.back(), part));
    if (continues) {
      assignments.back().append(",").append(part);
    } else {
      assignments.emplace_back(part);
    }
  }
  arm.settings = parse_assignments(assignments, "--arm " + arm.name);
  return arm;
}

void add_grid(Experiment& experiment, const std::vector<GridAxis>& axes) {
  std::vector<Arm> points{{}};
  for (const auto& [key, values] : axes) {
    if (values.empty()) throw InvalidArgument(fmt::format("grid: {} has no values", key));
    if (points.size() * values.size() > most_points)
      throw InvalidArgument(fmt::format("grid: more than {} points", most_points));
    std::vector<Arm> next;
    for (const Arm& point : points) {
      for (const std::string& value : values) {
        next.push_back(point);
        next.back().name += (point.name.empty() ? "" : "+") + point_name(key, value);
        next.back().settings.emplace_back(key, value);
      }
    }
    points = std::move(next);
    if (std::ranges::find(experiment.varied, key) == experiment.varied.end())
      experiment.varied.push_back(key);
  }
  if (axes.empty()) return;
  for (Arm& point : points) add_arm(experiment, std::move(point));
}

bool is_same(const Experiment& experiment, const Experiment& builtin) {
  const auto is_alike = [&](const Arm& arm) { return trains_alike(experiment, builtin, arm); };
  return experiment.name == builtin.name && experiment.summary == builtin.summary &&
         experiment.metric == builtin.metric && experiment.arms.size() == builtin.arms.size() &&
         std::ranges::all_of(experiment.arms, is_alike);
}

void take_verdict(Experiment& experiment, const Experiment& base) {
  experiment.analyses = base.analyses;
  std::vector<std::string> alike;
  for (const Arm& arm : experiment.arms) {
    if (trains_alike(experiment, base, arm)) alike.push_back(arm.name);
  }
  const bool is_whole = alike.size() == base.arms.size();
  experiment.harm_tasks = is_whole ? base.harm_tasks : std::vector<HarmTask>{};
  const bool has_verdict = !alike.empty() && experiment.metric == base.metric;
  experiment.verdict = has_verdict ? base.verdict : std::vector<Sentence>{};
  if (has_verdict) experiment.claim = base.claim;
  experiment.verdict_arms =
      is_whole && experiment.arms.size() == alike.size() ? std::vector<std::string>{} : alike;
}

}  // namespace halfscope
