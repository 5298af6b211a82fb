// Any log that names its steps and scales, norms or losses.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <halfscope/scaling/detail/log_fields.hpp>
#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_record.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

/// Rows of a table, as guided-diffusion and stable-baselines print it: "| loss | 0.5 |".
bool is_table_row(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin != std::string_view::npos && text[begin] == '|' && text.ends_with('|');
}

/// "[100] learning_rate=0.001, loss=2.3", as clu prints it.
std::optional<std::int64_t> bracketed_step(std::string_view text) {
  std::size_t at = text.find("] [");
  if (at == std::string_view::npos) {
    if (!text.starts_with('[')) return std::nullopt;
    text.remove_prefix(1);
  } else {
    text.remove_prefix(at + 3);
  }
  const auto step = take_log_number<std::int64_t>(text);
  return is_count(step) && text.starts_with("] ") ? step : std::nullopt;
}

/// Whether no word stands behind a place of a line.
bool ends_behind(std::string_view text, std::size_t place) {
  return std::ranges::none_of(text.substr(place),
                              [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; });
}

/// "Namespace(steps=100, loss_scale=None)": the options of a run.
bool has_options(std::string_view text) {
  constexpr std::array<std::string_view, 4> classes{"Namespace(", "Arguments(", "Args(", "Config("};
  return has_one_of(text, classes);
}

bool is_indented(std::string_view text) {
  return text.starts_with(' ') || text.starts_with('\t');
}

class ScalarLog {
 public:
  explicit ScalarLog(const LogColumns& columns) : names_(columns) {}

  void line(const LogText& line, const SkipLogSink& sink) {
    fields_.clear();
    find_log_fields(line.text, names_, fields_);
    if (is_table_row(line.text)) return table_row(line, sink);
    if (!table_.is_empty()) steps_.hand_over(std::exchange(table_, {}), sink);
    const bool is_told = !fields_.empty() && !is_cut_object(line.text, fields_) && !has_options(line.text);
    if (is_told) take_fields(line, sink);
  }

 private:
  /// The rows of a table are in whatever order; the same name again begins another table.
  void table_row(const LogText& line, const SkipLogSink& sink) {
    for (const LogField& field : fields_) {
      if (table_.at(field.role)) steps_.hand_over(std::exchange(table_, {}), sink);
      table_.line = line.number;
      table_.take(field);
    }
  }

  /// A step of the same name that stands in the line again begins another record: lines that were joined.
  void take_fields(const LogText& line, const SkipLogSink& sink) {
    LogRecord record{.line = line.number};
    for (const LogField& field : fields_) {
      const auto& before = record.at(field.role);
      if (is_step_role(field.role) && before && before->name == field.name)
        take(std::exchange(record, {.line = line.number}), line, sink);
      record.take(field);
    }
    take(record, line, sink);
  }

  void take(LogRecord record, const LogText& line, const SkipLogSink& sink) {
    const bool continues = !record.has_step() && record.has_values();
    if (continues) add_step(record, line);
    if (!record.has_step()) {
      if (record.at(LogRole::epoch)) begin_epoch(*record.at(LogRole::epoch));
      return;
    }
    if (epoch_ && !record.at(LogRole::epoch)) record.take(*epoch_);
    const bool is_told = record.at(LogRole::overflow) || record.at(LogRole::skipped);
    if (record.has_values() && !is_told && may_tell_of_skip(line.text)) sink.words();
    if (!continues) header_ = {};
    if (record.has_values() || record.at(LogRole::other_scale)) {
      steps_.hand_over(record, sink);
    } else if (ends_behind(line.text, fields_.back().end)) {
      header_ = record;
    }
  }

  /// clu's bracket, the progress bar of the line, or a line of a step alone before it, as Composer has it.
  void add_step(LogRecord& record, const LogText& line) {
    constexpr std::int64_t most_lines = 100;
    if (const auto step = bracketed_step(line.text)) {
      record.take({LogRole::step, "[N]", static_cast<double>(*step)});
    } else if (line.has_bar && line.bar_done > 0) {
      if (!record.at(LogRole::epoch)) begin_epoch(line);
      record.take({LogRole::step, "the progress bar", static_cast<double>(before_bar_ + line.bar_done)});
    } else if (header_.has_step() && is_indented(line.text) && record.line <= header_.line + most_lines) {
      for (const auto& field : header_.fields)
        if (field) record.take(*field);
    }
  }

  /// The lines behind it count its steps; its total is that of the epochs.
  void begin_epoch(LogField epoch) {
    epoch.total.reset();
    epoch_ = epoch;
  }

  /// A bar that begins anew after its end is that of the next epoch, and counts its steps alone.
  void begin_epoch(const LogText& line) {
    const bool has_ended = bar_done_ == bar_total_ && line.bar_total == bar_total_;
    if (has_ended && line.bar_done < bar_done_) before_bar_ += bar_total_;
    bar_done_ = line.bar_done;
    bar_total_ = line.bar_total;
  }

  LogNames names_;
  std::vector<LogField> fields_;
  LogRecord table_, header_;
  std::optional<LogField> epoch_{};  ///< from a line of its own, "Epoch 2"
  std::int64_t before_bar_ = 0, bar_done_ = 0, bar_total_ = 0;
  LogRecordSteps steps_{"scalars"};
};

}  // namespace

LogLineReader read_scalars(const LogColumns& columns) {
  return [log = ScalarLog(columns)](const LogText& line, const SkipLogSink& sink) mutable {
    if (!line.taken) log.line(line, sink);
    return false;
  };
}

}  // namespace halfscope
