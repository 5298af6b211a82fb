// The traces that `halfscope replay` reads: metrics.jsonl of a run, or of anything else that writes its keys.
#pragma once

#include <filesystem>
#include <functional>

#include <halfscope/scaling/replay.hpp>

namespace halfscope {

/// Hands over the steps of a file of JSON lines, in order. Each line has `step`, `scale` and `gradients`,
/// with `finite`, `max_abs` (of all weight gradients, with the scale in them) and, where a run records it,
/// `histogram`. Throws InvalidArgument with file and line.
void read_trace(const std::filesystem::path& path, const std::function<void(const TraceStep&)>& take);

}  // namespace halfscope
