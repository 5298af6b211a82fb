// Prints what rules of operands' scales would have done over a recorded run.
#include "experiments/cli/replay/scaling_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

#include <halfscope/core/escape.hpp>
#include <halfscope/core/name_list.hpp>
#include <halfscope/io/json/json_lines.hpp>

#include "experiments/cli/replay/replay_rows.hpp"
#include "experiments/cli/replay/scaling_replay.hpp"
#include "experiments/table/text_table.hpp"

namespace halfscope {
namespace {

/// One rule over all operands.
struct ScalingOutcome {
  std::string name;
  std::map<std::string, OperandOutcome> operands{};
  OperandOutcome all{};  ///< sums and largest ones; no scales
  std::string worst{};   ///< the operand with the most clipped steps
};

/// "+delayed(...)" of an operand's format, without its plus.
std::string name_of_scaling(const OperandFormat& scaling) {
  const std::string text = to_string(scaling);
  return text.substr(text.find('+') + 1);
}

void add(const std::string& operand, const OperandOutcome& outcome, ScalingOutcome& to) {
  OperandOutcome& all = to.all;
  if (outcome.clipped > 0 && (to.worst.empty() || outcome.clipped > to.operands.at(to.worst).clipped))
    to.worst = operand;
  all.clipped += outcome.clipped;
  all.nonfinite += outcome.nonfinite;
  all.steps += outcome.steps;
  all.unused_log2 += outcome.unused_log2;
  all.beyond_log2 = std::max(all.beyond_log2, outcome.beyond_log2);
  all.most_unused_log2 = std::max(all.most_unused_log2, outcome.most_unused_log2);
}

std::vector<OperandFormat> parse_scalings(const std::string& rules) {
  std::vector<OperandFormat> scalings;
  for (const std::string_view rule : split_outside_parentheses(rules, ','))
    scalings.push_back(parse_scaling(rule));
  return scalings;
}

std::vector<ScalingOutcome> replay_all(const OperandTrace& trace,
                                       const std::vector<OperandFormat>& scalings) {
  std::vector<ScalingOutcome> outcomes;
  for (const OperandFormat& scaling : scalings) {
    ScalingOutcome& outcome = outcomes.emplace_back(ScalingOutcome{.name = name_of_scaling(scaling)});
    for (const auto& [operand, maxima] : trace.operands) {
      outcome.operands.emplace(operand, replay_scaling(maxima, scaling));
      add(operand, outcome.operands.at(operand), outcome);
    }
  }
  return outcomes;
}

double mean_unused(const OperandOutcome& outcome) {
  const std::int64_t steps = outcome.steps - outcome.clipped;
  return steps == 0 ? 0 : outcome.unused_log2 / static_cast<double>(steps);
}

std::vector<Cell> scaling_row(const ScalingOutcome& outcome) {
  const OperandOutcome& all = outcome.all;
  const double share = all.steps == 0 ? 0 : static_cast<double>(all.clipped) / static_cast<double>(all.steps);
  const auto number = [](double x) { return Cell{fmt::format("{:.2f}", x), x}; };
  return {outcome.name,
          {percent(share), share},
          number(all.beyond_log2),
          number(mean_unused(all)),
          number(all.most_unused_log2),
          outcome.worst.empty() ? Cell{"-", std::monostate{}} : Cell{escaped(outcome.worst)}};
}

Json operand_json(const std::string& name, const OperandOutcome& outcome) {
  Json scales = Json::array();
  for (const float scale : outcome.scales) scales.push_back(shortest(scale));
  return {{"operand", name},
          {"clipped", outcome.clipped},
          {"not_finite", outcome.nonfinite},
          {"beyond_log2", outcome.beyond_log2},
          {"mean_unused_log2", mean_unused(outcome)},
          {"scales", scales},
          {"next_scale", shortest(outcome.next_scale)}};
}

}  // namespace

void print_scalings(const std::string& path, const std::string& rules) {
  const std::vector<OperandFormat> scalings = parse_scalings(rules);  // before a long file is read
  const OperandTrace trace = read_operand_trace(path);
  const std::vector<ScalingOutcome> outcomes = replay_all(trace, scalings);
  Table table{{{"scaling", "scaling"},
               {"clipped", "clipped"},
               {"beyond_log2", "most binades beyond"},
               {"mean_unused_log2", "unused binades"},
               {"most_unused_log2", "at most"},
               {"worst", "clips most"}},
              {}};
  for (const ScalingOutcome& outcome : outcomes) table.rows.push_back(scaling_row(outcome));
  std::cout << write_table(table, {.width = output_width()}) << "\n";
  print_note(fmt::format(
      "{} operands over {} steps. Magnitudes are taken to stay what they were. An operand clips in a step "
      "whose largest magnitude lies beyond its format's largest number at the scale; binades between the two "
      "are unused.",
      trace.operands.size(), trace.steps));
  const std::int64_t nonfinite = outcomes.front().all.nonfinite;
  if (nonfinite > 0)
    print_note(fmt::format(
        "{} times an operand was not finite, which holds a delayed scale until it leaves the history.",
        nonfinite));
}

void print_scalings_json(const std::string& path, const std::string& rules) {
  const std::vector<OperandFormat> scalings = parse_scalings(rules);
  const OperandTrace trace = read_operand_trace(path);
  Json list = Json::array();
  for (const ScalingOutcome& outcome : replay_all(trace, scalings)) {
    Json operands = Json::array();
    for (const auto& [name, of_operand] : outcome.operands)
      operands.push_back(operand_json(name, of_operand));
    list.push_back({{"scaling", outcome.name},
                    {"clipped", outcome.all.clipped},
                    {"operand_steps", outcome.all.steps},
                    {"beyond_log2", outcome.all.beyond_log2},
                    {"mean_unused_log2", mean_unused(outcome.all)},
                    {"most_unused_log2", outcome.all.most_unused_log2},
                    {"operands", operands}});
  }
  std::cout << to_line({{"steps", trace.steps}, {"scalings", list}}) << "\n";
}

}  // namespace halfscope
