// Numbers the steps of records: by epochs where a step is one of an epoch.
#include <halfscope/scaling/detail/log_record.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <halfscope/core/escape.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

constexpr double most_steps = 0x1p53;

bool is_whole_count(const std::optional<LogField>& field) {
  return field && field->value >= 0 && field->value <= most_steps && field->value == std::floor(field->value);
}

const std::optional<LogField>& scale_of(const LogRecord& record) {
  return record.at(LogRole::scale) ? record.at(LogRole::scale) : record.at(LogRole::scale_log2);
}

/// NaN where it is not finite.
double finite_or_nan(double value) {
  return std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
}

/// Names of what is read, for a note.
std::string_view words_of(LogRole role) {
  switch (role) {
    case LogRole::scale:
      return "loss scale";
    case LogRole::scale_log2:
      return "log2 of the loss scale";
    case LogRole::norm:
      return "gradient norm";
    case LogRole::loss:
      return "loss";
    case LogRole::overflow:
      return "overflow";
    case LogRole::skipped:
      return "skipped steps";
    default:
      return "step";
  }
}

}  // namespace

bool LogRecord::has_values() const {
  return at(LogRole::scale) || at(LogRole::scale_log2) || at(LogRole::norm) || at(LogRole::loss) ||
         at(LogRole::overflow) || at(LogRole::skipped);
}

bool is_cut_object(std::string_view text, const std::vector<LogField>& fields) {
  const std::size_t open = std::min(text.find("{\""), text.find("{'"));
  if (open == std::string_view::npos || fields.empty()) return false;
  const std::size_t close = text.rfind('}');
  return close == std::string_view::npos || close < fields.back().end;
}

std::optional<std::int64_t> LogRecordSteps::step_of(const LogRecord& record) {
  if (is_whole_count(record.at(LogRole::global_step)))
    return static_cast<std::int64_t>(record.at(LogRole::global_step)->value);
  const auto& field = record.at(LogRole::step) ? record.at(LogRole::step) : record.at(LogRole::batch);
  if (!is_whole_count(field)) return std::nullopt;
  const auto& epoch = record.at(LogRole::epoch);
  const double value = field->value;
  if (is_whole_count(epoch)) {
    if (first_epoch_ < 0) first_epoch_ = epoch->value;
    const double base = first_epoch_ == 0 ? 0 : 1;
    const bool is_zero_based = field->total && epoch->name == field->name && base == 0;
    if (field->total && (field->role == LogRole::batch || epoch->total)) {
      const double step = (epoch->value - base) * *field->total + value + (is_zero_based ? 1 : 0);
      return step >= 0 && step <= most_steps ? std::optional(static_cast<std::int64_t>(step)) : std::nullopt;
    }
    if (epoch_ >= 0 && epoch->value > epoch_ && value <= raw_) before_epoch_ = last_;
    epoch_ = epoch->value;
  }
  raw_ = value;
  const double step = static_cast<double>(before_epoch_) + value;
  return step <= most_steps ? std::optional(static_cast<std::int64_t>(step)) : std::nullopt;
}

std::optional<std::int64_t> LogRecordSteps::skipped_since(std::int64_t step, double skipped) {
  while (!counters_.empty() && counters_.back().step >= step) counters_.pop_back();
  const double since = skipped - (counters_.empty() ? 0 : counters_.back().skipped);
  counters_.push_back({step, skipped});
  if (since < 0 || since > static_cast<double>(step)) return std::nullopt;
  return static_cast<std::int64_t>(since);
}

void LogRecordSteps::note_names(const LogRecord& record, const SkipLogSink& sink) {
  std::string text;
  for (const auto& field : record.fields) {
    if (!field || field->role == LogRole::epoch || field->role == LogRole::other_scale ||
        noted_[static_cast<std::size_t>(field->role)])
      continue;
    noted_[static_cast<std::size_t>(field->role)] = true;
    const auto& epoch = record.at(LogRole::epoch);
    const bool is_behind_epoch = field->role == LogRole::batch && epoch && epoch->name == field->name;
    text += fmt::format("{}{} = {}{}", text.empty() ? "" : ", ", words_of(field->role),
                        is_behind_epoch ? "the number behind " : "", escaped(field->name));
  }
  if (text.empty()) return;
  sink.note(fmt::format("Read as: {} (line {}).", text, record.line));
  const auto counts_samples = [](const std::optional<LogField>& field) {
    return field &&
           field->name.find("/Samples/") != std::string_view::npos;  // as DeepSpeed's monitor has them
  };
  if (std::ranges::any_of(record.fields, counts_samples))
    sink.note("Its steps count samples: divide by the samples of a batch.");
}

void LogRecordSteps::note_others(const LogRecord& record, const SkipLogSink& sink) {
  std::string text;
  for (const std::string_view name : record.others) {
    if (!noted_others_.insert(name).second) continue;
    const bool heads_list = std::ranges::any_of(record.fields, [&](const std::optional<LogField>& field) {
      return field && field->name == name && field->heads_list;
    });
    if (heads_list)
      sink.note(
          fmt::format("Line {} has a list of '{}': its first number is read.", record.line, escaped(name)));
    else
      text += fmt::format("{}'{}'", text.empty() ? "" : ", ", escaped(name));
  }
  if (!text.empty())
    sink.note(
        fmt::format("Other numbers of the kind are left out: {} (line {}); --columns says which one to read.",
                    text, record.line));
}

void LogRecordSteps::hand_over(const LogRecord& record, const SkipLogSink& sink) {
  if (const auto& other = record.at(LogRole::other_scale); other && sink.other_scale)
    sink.other_scale({other->name, record.line, !std::isnan(other->value)});
  if (!record.has_values() && record.at(LogRole::other_scale)) return;
  const auto step = step_of(record);
  if (!step) {
    if (sink.reject) sink.reject("names a step that is no whole number from 0 to 2^53");
    return;
  }
  IterationLine line{.iteration = *step,
                     .format = format_,
                     .line = record.line,
                     .has_scaler = record.has_scaler,
                     .has_own_norm = (record.has_means && !record.has_loose_window) || record.is_filtered,
                     .has_means = record.has_means,
                     .is_filtered = record.is_filtered,
                     .is_numbered = record.is_numbered};
  if (const auto& scale = scale_of(record)) {
    const double value = scale->role == LogRole::scale_log2 ? std::exp2(scale->value) : scale->value;
    (is_scale(value) ? line.scale : line.bad_scale) = value;
    if (line.scale && scale->before && is_scale(*scale->before)) line.scale_before = scale->before;
  }
  if (const auto& norm = record.at(LogRole::norm)) {
    line.grad_norm = norm_of(norm->value);
    line.has_finite_norm =
        record.is_filtered && norm->value == 0;  // the Trainer prints none where it has none
  }
  if (const auto& loss = record.at(LogRole::loss)) line.loss = finite_or_nan(loss->value);
  const auto& overflow = record.at(LogRole::overflow);
  line.tells_overflow = overflow.has_value();
  line.overflowed = overflow && overflow->value != 0;
  line.has_step_scale = overflow && overflow->name == "overflow cond";  // as MindFormers prints it
  if (const auto& skipped = record.at(LogRole::skipped); is_whole_count(skipped))
    line.skipped = skipped_since(*step, skipped->value);
  last_ = *step;
  const bool tells = record.is_told || line.scale || line.bad_scale || line.grad_norm || line.loss ||
                     line.skipped || overflow;
  if (!tells) return;
  note_names(record, sink);
  note_others(record, sink);
  if (record.has_other_scales && scale_of(record) && sink.only_scale) sink.only_scale(scale_of(record)->name);
  sink.iteration(line);
}

}  // namespace halfscope
