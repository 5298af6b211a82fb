// Traces that loss scalers are replayed over: metrics.jsonl of a run, or anything else with its keys.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/scaling/replay.hpp>
#include <halfscope/scaling/skip_log.hpp>

namespace halfscope {

/// The step of a record with `step`, `scale` and `gradients`: `finite`, `max_abs` (of all weight gradients,
/// with the scale in them) and, where a run records it, `histogram`. Throws InvalidArgument for any other.
[[nodiscard]] TraceStep trace_step(const Json& record);

/// Hands over the steps of a file of JSON lines, in order. Throws InvalidArgument with file and line, also
/// for one that `take` throws.
void read_trace(const std::filesystem::path& path, const std::function<void(const TraceStep&)>& take);

/// As read_trace, for a file that may be a log of a training instead, which is returned then: one that its
/// trainer printed, a table, an event file of TensorBoard. It is a log unless its first line that is not
/// empty is an object of JSON with the keys of a trace. Throws InvalidArgument with the file, also for a log
/// that tells of no step.
[[nodiscard]] std::optional<SkipLog> read_trace_or_log(const std::filesystem::path& path,
                                                       const std::function<void(const TraceStep&)>& take,
                                                       const LogColumns& columns = {});

}  // namespace halfscope
