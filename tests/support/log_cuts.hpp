// Logs that a kill cut after any byte: what they say is what their whole lines say.
#pragma once

#include <string>
#include <vector>

#include <halfscope/scaling/detail/skip_log_reader.hpp>

namespace halfscope {

/// The verdict, or "refused" where the lines tell of no step.
[[nodiscard]] std::string said_by(const SkipLogReader& reader);

/// The first byte at which a cut says neither what the lines before it say nor what the whole line says, as
/// the text up to there; empty where there is none. A carriage return ends a line too.
[[nodiscard]] std::string misread_cut(const std::vector<std::string>& lines);

}  // namespace halfscope
