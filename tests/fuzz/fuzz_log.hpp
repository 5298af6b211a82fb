// Invariants of every log that is read, whatever its bytes: ascending steps, counts that agree, a sentence.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <halfscope/core/error.hpp>
#include <halfscope/scaling/detail/skip_log_reader.hpp>
#include <halfscope/scaling/scaler_options.hpp>

namespace halfscope {

inline void check(bool right) {
  if (!right) std::abort();
}

inline void check_log(const SkipLog& log) {
  std::int64_t last = -1, skipped = 0;
  check(!log.steps.empty());
  for (const LoggedStep& step : log.steps) {
    check(step.step > last);
    check(step.scale >= smallest_scale && step.scale <= largest_scale);
    check(step.low >= 0 && step.low <= step.high);
    check(!step.grad_norm || *step.grad_norm >= 0);
    last = step.step;
    skipped += step.skipped ? 1 : 0;
  }
  check(skipped == log.skipped && log.missing >= 0);
  check(log.unsure_steps >= 0 && log.unsure_steps <= skipped);
  check(log.unsure_scales >= 0 && log.unsure_scales <= skipped);
  check(log.least_skipped() <= log.most_skipped().value_or(log.least_skipped()));
  check(log.unknown_steps >= 0 && log.uncounted >= 0 && log.uncounted <= skipped);
  check(!verdict_of(log).empty());
}

/// The log of the reader; any error but an InvalidArgument of one line ends the fuzzer.
inline void check_reader(const SkipLogReader& reader) {
  try {
    check_log(reader.finish());
  } catch (const InvalidArgument& error) {
    check(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
}

}  // namespace halfscope
