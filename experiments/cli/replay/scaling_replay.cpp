// Reads recorded magnitudes of operands and takes rules of scales through them.
#include "experiments/cli/replay/scaling_replay.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <halfscope/core/error.hpp>
#include <halfscope/core/escape.hpp>
#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {
namespace {

constexpr const char* how_to_record =
    "record it: halfscope run EXPERIMENT --set policy=fp8_delayed --set observe_every=1";

const Json& entry_member(const Json& entry, const char* key) {
  const auto found = entry.is_object() ? entry.find(key) : entry.end();
  if (found == entry.end())
    throw InvalidArgument(fmt::format("an operand lacks '{}'; {}", key, how_to_record));
  return *found;
}

/// A magnitude; null is JSON's infinity.
float magnitude_in(const Json& entry, const char* key) {
  const Json& value = entry_member(entry, key);
  if (value.is_null()) return std::numeric_limits<float>::infinity();
  if (value.is_number() && value.get<double>() >= 0) return value.get<float>();
  throw InvalidArgument(
      fmt::format("{} = {}: expected a number of 0 or more, or null for infinity", key, to_line(value)));
}

std::string text_in(const Json& entry, const char* key) {
  const Json& value = entry_member(entry, key);
  if (value.is_string()) return value.get<std::string>();
  throw InvalidArgument(fmt::format("{} = {}: expected a text", key, to_line(value)));
}

void take_operand(const Json& entry, OperandTrace& trace) {
  const std::string name = text_in(entry, "layer") + "." + text_in(entry, "operand");
  const float largest = magnitude_in(entry, "largest");
  if (!(largest > 0) || !std::isfinite(largest))
    throw InvalidArgument(fmt::format("{}: largest is no number above 0", printable(name)));
  OperandMaximaTrace& operand = trace.operands[name];
  operand.largest = largest;
  operand.amax.push_back(magnitude_in(entry, "amax"));
}

/// The steps of a run, of which those before the first with operands count for nothing.
class StepsOfRun {
 public:
  explicit StepsOfRun(OperandTrace& trace) : trace_(trace) {}

  void take(const Json& record) {
    const auto operands = record.is_object() ? record.find("operands") : record.end();
    if (operands == record.end() || !operands->is_array()) return;
    const auto found = record.find("step");
    if (found == record.end() || !is_integer(*found)) throw InvalidArgument("it has operands, but no step");
    const auto step = found->get<std::int64_t>();
    if (trace_.steps > 0 && step != last_ + 1) {
      throw InvalidArgument(
          fmt::format("step {} follows step {}, but a scale follows from the step before; {}", step, last_,
                      how_to_record));
    }
    last_ = step;
    ++trace_.steps;
    for (const Json& entry : *operands) take_operand(entry, trace_);
  }

 private:
  OperandTrace& trace_;
  std::int64_t last_ = 0;
};

/// Counts whether a step's largest magnitude clips at its scale.
void count_step(float amax, float scale, float largest, OperandOutcome& outcome) {
  if (!std::isfinite(amax)) ++outcome.nonfinite;
  if (!std::isfinite(amax) || amax == 0) return;
  ++outcome.steps;
  const double beyond = std::log2(static_cast<double>(amax) * scale / largest);
  // FP32's rounding of a scale takes the largest magnitude a little beyond.
  if (beyond > 0x1p-20) {
    ++outcome.clipped;
    outcome.beyond_log2 = std::max(outcome.beyond_log2, beyond);
  } else {
    outcome.unused_log2 += std::max(0.0, -beyond);
    outcome.most_unused_log2 = std::max(outcome.most_unused_log2, -beyond);
  }
}

}  // namespace

OperandTrace read_operand_trace(const std::filesystem::path& path) {
  OperandTrace trace;
  StepsOfRun steps(trace);
  std::size_t line = 0;
  for (const Json& record : read_json_lines(path)) {
    ++line;
    try {
      steps.take(record);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}: record {}: {}", printable(path), line, error.what()));
    }
  }
  if (trace.steps == 0)
    throw InvalidArgument(fmt::format("{}: no step has operands; {}", printable(path), how_to_record));
  return trace;
}

OperandFormat parse_scaling(std::string_view text) {
  if (!text.starts_with("current") && !text.starts_with("delayed")) {
    throw InvalidArgument(
        fmt::format("--scaling '{}': give current or delayed(history=N, margin=N, max|most_recent)", text));
  }
  return parse_operand_format(fmt::format("fp8_e4m3+{}", text));
}

OperandOutcome replay_scaling(const OperandMaximaTrace& trace, const OperandFormat& scaling) {
  OperandOutcome outcome;
  DelayedScale delayed;
  for (const float amax : trace.amax) {
    const bool is_delayed = scaling.scaling == TensorScaling::delayed;
    const float scale = is_delayed ? delayed.scale : current_scale(amax, trace.largest);
    outcome.scales.push_back(scale);
    count_step(amax, scale, trace.largest, outcome);
    delayed.update(amax, trace.largest, scaling.delayed);
    outcome.next_scale = is_delayed ? delayed.scale : scale;
  }
  return outcome;
}

}  // namespace halfscope
