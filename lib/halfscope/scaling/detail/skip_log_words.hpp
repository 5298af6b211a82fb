// Sentences of the verdict on a log, and the words that they share.
#pragma once

#include <cstdint>
#include <string>

#include <halfscope/scaling/skip_log.hpp>

namespace halfscope {

/// "2^15", or the number.
[[nodiscard]] std::string scale_text(double scale);
/// "1 step", "3 steps".
[[nodiscard]] std::string count_of_steps(std::int64_t count);
/// "line 3", "lines 3 to 5".
[[nodiscard]] std::string in_lines(const LogLines& lines);
/// Bounds of the skipped steps.
[[nodiscard]] std::string say_bounds(const SkipLog& log);

// Empty where there is nothing to say; else a sentence after a space.

/// Losses that a later line disproves.
[[nodiscard]] std::string say_disproved(const SkipLog& log);
/// Lost weights; a line for several steps does not tell which of them was lost first.
[[nodiscard]] std::string say_lost(const SkipLog& log);
/// A restart that no count shows.
[[nodiscard]] std::string say_restart(const SkipLog& log);
/// Exceptions that ended the run.
[[nodiscard]] std::string say_ends(const SkipLog& log);
/// Scales that change by different factors.
[[nodiscard]] std::string say_uneven(const SkipLog& log);
/// Steps of which no line before them tells the scale, beside skips that are known.
[[nodiscard]] std::string say_unseen(const SkipLog& log);
/// Scales that stand beside the one that was read.
[[nodiscard]] std::string say_only_scale(const SkipLog& log);
/// A scale that is infinite, NaN, 0 or negative.
[[nodiscard]] std::string say_bad_scale(const SkipLog& log);

}  // namespace halfscope
