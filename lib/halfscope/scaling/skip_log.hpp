// Steps that DeepSpeed's and Megatron-LM's logs tell of: which were skipped, and at which loss scale.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <halfscope/core/names.hpp>

namespace halfscope {

enum class SkipLogFormat : std::uint8_t { deepspeed, megatron };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<SkipLogFormat>{"deepspeed", "megatron"};

/// A step of the optimizer. One that was not skipped is finite at `scale`, and may have been at a larger one.
struct LoggedStep {
  std::int64_t step = 0;
  double scale = 1;
  bool skipped = false;
  std::optional<double> grad_norm{};  ///< of the unscaled gradients: none of them is larger
};

/// A log's steps, ascending. Those between two of them were not skipped, and have the scale of the last one
/// before them that was not.
struct SkipLog {
  SkipLogFormat format = SkipLogFormat::deepspeed;
  std::vector<LoggedStep> steps;
  std::int64_t skipped = 0;
  /// Skipped steps of which the log does not tell which of several steps it was: taken as the first of them.
  std::int64_t unsure_steps = 0;
  /// Skipped steps whose scale was inferred from the scales of the lines around them.
  std::int64_t unsure_scales = 0;
  /// Skipped steps that the log counts and has no line for; they are not among the steps.
  std::int64_t missing = 0;
  /// Where a progress bar counts DeepSpeed's steps, since no line does: its total. Else 0.
  std::int64_t bar_total = 0;

  /// From the first step to the last, those between that have no line included.
  [[nodiscard]] std::int64_t step_count() const { return steps.back().step - steps.front().step + 1; }
};

}  // namespace halfscope
