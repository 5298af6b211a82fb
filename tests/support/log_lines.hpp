// Lines of logs as DeepSpeed and Megatron-LM print them, and the steps that they are read as.
#pragma once

#include <halfscope/scaling/detail/skip_log_reader.hpp>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/log_cuts.hpp"

namespace halfscope {

inline SkipLog read_whole_log(const std::vector<std::string>& lines) {
  SkipLogReader reader;
  for (const std::string& line : lines) reader.line(line);
  return reader.finish();
}

/// The log, whose lines a kill may cut after any byte; long ones are cut elsewhere.
inline SkipLog read_log(const std::vector<std::string>& lines) {
  constexpr std::size_t most_lines = 30;
  if (lines.size() <= most_lines) {
    const std::string misread = misread_cut(lines);
    if (!misread.empty()) throw std::logic_error("a cut line was read: " + misread);
  }
  return read_whole_log(lines);
}

inline std::string overflow_line(const std::string& scale, const std::string& rest) {
  return "[2024-05-01 10:00:00,000] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 "
         "Skipping step. Attempted loss scale: " +
         scale + rest;
}

/// DeepSpeed's counter.
inline std::string step_line(int step, int skipped) {
  return "[2024-05-01 10:00:01,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=" + std::to_string(step) +
         ", skipped=" + std::to_string(skipped) + ", lr=[1e-05], mom=[(0.9, 0.999)]";
}

/// Megatron-LM's.
inline std::string iteration_line(int number, const std::string& scale, int skipped,
                                  const std::string& norm = "1.250") {
  return " iteration " + std::to_string(number) +
         "/  5000 | consumed samples: 8 | elapsed time per iteration (ms): " +
         "12.5 | lm loss: 7.1E+00 | loss scale: " + scale + " | grad norm: " + norm +
         " | number of skipped iterations:   " + std::to_string(skipped) +
         " | number of nan iterations:   0 |";
}

/// "3 skipped at 64, 4 finite at 32": the steps of a log.
inline std::string text_of(const SkipLog& log) {
  std::string text;
  for (const LoggedStep& step : log.steps) {
    text += (text.empty() ? "" : ", ") + std::to_string(step.step) + (step.skipped ? " skipped" : " finite") +
            " at " + std::to_string(static_cast<std::int64_t>(step.scale));
  }
  return text;
}

}  // namespace halfscope
