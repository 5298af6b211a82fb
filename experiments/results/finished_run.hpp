// A run that is done: its summary and its settings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {

struct FinishedRun {
  std::int64_t seed = 0;
  Json summary;  ///< its keys have the types that a run writes
  Json config;   ///< with current names; null where the folder has no config.json

  /// A setting, or `other` where there is no config or it lacks the key.
  [[nodiscard]] std::string text(std::string_view key, std::string_view other) const;
  [[nodiscard]] double number(std::string_view key, double other) const;
  /// Whether activation gradients are FP32.
  [[nodiscard]] bool is_in_fp32() const { return text("activation_gradient", "").starts_with("fp32"); }
};

/// Throws InvalidArgument, opened by `where`, for a summary or config that lacks a key, has it of another
/// type, or is of another format.
void check_run_summary(const Json& summary, std::string_view where);
/// Throws as Json does for a record of a step that lacks a counter of a tensor, or has it of another type.
void check_step_counters(const Json& record);
[[nodiscard]] Json current_config(const Json& config, std::string_view where);

}  // namespace halfscope
