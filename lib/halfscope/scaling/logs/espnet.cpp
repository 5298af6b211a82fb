// ESPnet: a line for a range of an epoch's steps, whose values are means.
#include <vector>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_record.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

/// "12epoch:train:51-100batch:".
std::optional<LogRecord> place_of(std::string_view text) {
  constexpr std::string_view label = "epoch:train:";
  const std::size_t at = text.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t begin = at;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  std::string_view epoch = text.substr(begin), rest = text.substr(at + label.size());
  const auto number = take_log_number<std::int64_t>(epoch);
  if (!is_count(number) || !take_log_number<std::int64_t>(rest) || !take_word(rest, "-")) return std::nullopt;
  const auto batch = take_log_number<std::int64_t>(rest);
  if (!is_count(batch) || !take_word(rest, "batch:")) return std::nullopt;
  LogRecord record{.has_means = true};
  record.take({LogRole::epoch, "epoch", static_cast<double>(*number)});
  record.take({LogRole::batch, "batch", static_cast<double>(*batch)});
  return record;
}

}  // namespace

LogLineReader read_espnet(const LogColumns& columns) {
  return [names = LogNames(columns), steps = LogRecordSteps("espnet"), fields = std::vector<LogField>()](
             const LogText& line, const SkipLogSink& sink) mutable {
    auto record = place_of(line.text);
    if (!record) return false;
    record->line = line.number;
    fields.clear();
    find_log_fields(line.text, names, fields);
    for (const LogField& field : fields) {
      // A scale that is a mean tells none.
      const bool is_mean = field.role == LogRole::scale && field.value != 1;
      record->has_scaler = record->has_scaler || is_mean;
      if (!is_mean) record->take(field);
    }
    record->is_told = true;
    steps.hand_over(*record, sink);
    return true;
  };
}

}  // namespace halfscope
