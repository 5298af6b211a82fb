// A record of a log: a step, and the values that stand beside it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include <halfscope/scaling/detail/log_fields.hpp>
#include <halfscope/scaling/detail/log_lines.hpp>

namespace halfscope {

[[nodiscard]] inline bool is_step_role(LogRole role) {
  return role == LogRole::global_step || role == LogRole::step || role == LogRole::batch;
}

[[nodiscard]] inline bool is_value_role(LogRole role) {
  return is_scale_role(role) || role == LogRole::norm || role == LogRole::loss;
}

/// The first field of each role.
struct LogRecord {
  std::int64_t line = 0;
  bool is_told = false;           ///< a step of the run, whatever its values tell
  bool has_scaler = false;        ///< prints a scale that is none of a step
  bool has_means = false;         ///< its norm and loss are means over several steps
  bool has_loose_window = false;  ///< not over the steps since the record before: over more, or over fewer
  bool is_filtered = false;       ///< its loss leaves out losses that are not finite
  bool is_numbered = true;        ///< false: its step is a count of records
  bool has_other_scales = false;  ///< scales beside the one that is read
  std::array<std::optional<LogField>, log_roles> fields{};  ///< by role
  std::vector<std::string_view> others{};  ///< names of scales, norms and losses that are left out

  [[nodiscard]] const std::optional<LogField>& at(LogRole role) const {
    return fields[static_cast<std::size_t>(role)];
  }
  [[nodiscard]] bool has_step() const {
    return at(LogRole::global_step) || at(LogRole::step) || at(LogRole::batch);
  }
  /// A scale, a norm, a loss, a count of skipped steps, or whether the step overflowed.
  [[nodiscard]] bool has_values() const;
  [[nodiscard]] bool is_empty() const { return !has_step() && !has_values(); }
  void take(const LogField& field) {
    auto& place = fields[static_cast<std::size_t>(field.role)];
    const bool is_other = place ? place->name != field.name || place->value != field.value : field.heads_list;
    if (is_other && is_value_role(field.role)) {
      others.push_back(field.name);
      has_other_scales = has_other_scales || is_scale_role(field.role);
    }
    if (!place) place = field;
  }
};

/// Whether a line has an object or a dictionary that was cut: no brace closes it behind its last field.
[[nodiscard]] bool is_cut_object(std::string_view text, const std::vector<LogField>& fields);

/// Numbers the steps of records, and hands them over as states after a step. It notes once which names it
/// reads.
class LogRecordSteps {
 public:
  explicit LogRecordSteps(std::string_view format) : format_(format) {}

  void hand_over(const LogRecord& record, const SkipLogSink& sink);
  /// The step of the last record; 0 where there was none.
  [[nodiscard]] std::int64_t last() const { return last_; }

 private:
  [[nodiscard]] std::optional<std::int64_t> step_of(const LogRecord& record);
  /// Skipped steps since the line before, by a counter that never begins anew. Lines that a restart repeats
  /// are none before it.
  [[nodiscard]] std::optional<std::int64_t> skipped_since(std::int64_t step, double skipped);
  void note_names(const LogRecord& record, const SkipLogSink& sink);
  void note_others(const LogRecord& record, const SkipLogSink& sink);

  std::string_view format_;
  double epoch_ = -1, first_epoch_ = -1, raw_ = 0;
  std::int64_t before_epoch_ = 0, last_ = 0;
  struct Counter {
    std::int64_t step;
    double skipped;
  };
  std::vector<Counter> counters_;
  std::array<bool, log_roles> noted_{};
  std::set<std::string_view> noted_others_;
};

}  // namespace halfscope
