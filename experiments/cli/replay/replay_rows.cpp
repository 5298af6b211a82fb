// Writes replays as rows of a table and as JSON.
#include "experiments/cli/replay/replay_rows.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>

#include <halfscope/core/escape.hpp>

#include "experiments/table/text_table.hpp"

namespace halfscope {
namespace {

constexpr std::size_t note_width = 120;

}  // namespace

std::string scales_over_time(const std::vector<double>& scales) {
  std::string text;
  for (std::size_t quarter = 0; quarter <= 4; ++quarter) {
    const double scale = scales[(scales.size() - 1) * quarter / 4];
    text += fmt::format("{}{:.3g}", quarter == 0 ? "" : " ", std::log2(scale));
  }
  return text;
}

std::vector<Column> replay_columns() {
  return {{"scaler", "scaler"},
          {"skipped", "skipped"},
          {"last_skip", "last skip", 2},
          {"flushed", "flushed", 1},
          {"scale_log2", "log2 scale over time"},
          {"first_at_final_scale", "first at final", 3}};
}

std::vector<Cell> replay_row(const ReplayCandidate& candidate) {
  const ScalerReplay& replay = candidate.replay;
  const auto& overflows = replay.overflows();
  const auto count = static_cast<std::int64_t>(overflows.size());
  return {escaped(candidate.name),
          replay.skips() ? count_cell(count) : Cell{fmt::format("0 ({} overflow)", count), std::int64_t{0}},
          overflows.empty() ? Cell{"-", std::monostate{}} : count_cell(overflows.back()),
          replay.flushed() ? Cell{percent(replay.flushed()), *replay.flushed()} : Cell{"-", std::monostate{}},
          scales_over_time(replay.scales()),
          count_cell(replay.first_at_final_scale())};
}

Json replay_json(const ReplayCandidate& candidate) {
  const ScalerReplay& replay = candidate.replay;
  Json scales = Json::array();
  for (const double scale : replay.scales()) scales.push_back(std::log2(scale));
  const std::size_t overflows = replay.overflows().size();
  return {{"scaler", candidate.name},
          {"skipped", replay.skips() ? overflows : 0},
          {"overflowed", overflows},
          {"flushed", replay.flushed() ? Json(*replay.flushed()) : Json()},
          {"final_scale_log2", scales.back()},
          {"first_at_final_scale", replay.first_at_final_scale()},
          {"stopped", replay.stopped() ? Json(*replay.stopped()) : Json()},
          {"overflow_steps", replay.overflows()},
          {"scale_log2", scales}};
}

void print_note(const std::string& note) {
  std::cout << wrapped("  " + note, std::min(output_width(), note_width), "  ") << "\n";
}

void print_end_of_run(const ReplayCandidate& candidate) {
  if (candidate.replay.stopped())
    print_note(fmt::format("{} ends the run at {}", escaped(candidate.name), *candidate.replay.stopped()));
}

}  // namespace halfscope
