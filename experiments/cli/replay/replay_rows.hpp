// Rows of `halfscope replay`: what one scaler did over a recorded run.
#pragma once

#include <string>
#include <vector>

#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/scaling/replay.hpp>

#include "experiments/table/table.hpp"

namespace halfscope {

[[nodiscard]] std::vector<Column> replay_columns();
/// log2 of the scale at the trace's beginning, quarters and end.
[[nodiscard]] std::string scales_over_time(const std::vector<double>& scales);
[[nodiscard]] std::vector<Cell> replay_row(const ReplayCandidate& candidate);
[[nodiscard]] Json replay_json(const ReplayCandidate& candidate);

/// A paragraph below the table, indented.
void print_note(const std::string& note);
/// Why a scaler ended the run, if it did.
void print_end_of_run(const ReplayCandidate& candidate);

}  // namespace halfscope
