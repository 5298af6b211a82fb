// Replay of scales of whole operands over recorded largest magnitudes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/policy/operand_scale.hpp>

namespace halfscope {

/// The largest magnitudes of one operand, step by step; infinite where a step's was not finite.
struct OperandMaximaTrace {
  float largest = 0;  ///< the largest number of its format
  std::vector<float> amax{};
};

/// Magnitudes that a run has recorded.
struct OperandTrace {
  std::int64_t steps = 0;
  std::map<std::string, OperandMaximaTrace> operands{};  ///< by "LAYER.PRODUCT.SIDE"
};

/// Reads the lists `operands` of a run's metrics.jsonl, each entry with `layer`, `operand`, `amax` and
/// `largest`. Throws InvalidArgument with file and line where a step between two others has none, for an
/// entry without these, and where there is no step at all.
[[nodiscard]] OperandTrace read_operand_trace(const std::filesystem::path& path);

/// "current", or "delayed", with its options in parentheses as operands have them. Throws InvalidArgument.
[[nodiscard]] OperandFormat parse_scaling(std::string_view text);

/// Scales that an operand would have had.
struct OperandOutcome {
  std::vector<float> scales{};  ///< used in each step
  float next_scale = 1;         ///< the scale that the last step leaves
  std::int64_t clipped = 0;     ///< steps whose largest magnitude lies beyond the largest number at the scale
  std::int64_t nonfinite = 0;   ///< steps whose largest magnitude is infinite
  double beyond_log2 = 0;       ///< the most binades of one beyond it
  double unused_log2 = 0;       ///< binades between it and the largest number, summed over the other steps
  double most_unused_log2 = 0;  ///< the most of them in one step
  std::int64_t steps = 0;       ///< steps with a finite magnitude above 0
};

/// Takes one operand through its steps.
[[nodiscard]] OperandOutcome replay_scaling(const OperandMaximaTrace& trace, const OperandFormat& scaling);

}  // namespace halfscope
