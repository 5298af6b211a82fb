// MMEngine and MMCV: norms and losses are means over a window, 10 steps by default, whatever the lines are
// apart.
#include <vector>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_record.hpp>

namespace halfscope {

LogLineReader read_mmengine(const LogColumns& columns) {
  return [names = LogNames(columns), steps = LogRecordSteps("mmengine"), fields = std::vector<LogField>()](
             const LogText& line, const SkipLogSink& sink) mutable {
    const auto has = [&](std::string_view sign) { return line.text.find(sign) != std::string_view::npos; };
    const bool is_train = has("Epoch(train)") || has("Iter(train)") || has(" - Epoch [") || has(" - Iter [");
    const bool is_value = has("\"data_time\"") && has("\"step\"") && has("\"memory\"");  // scalars.json
    if (!is_train && !is_value) return false;
    fields.clear();
    find_log_fields(line.text, names, fields);
    if (is_cut_object(line.text, fields)) return true;
    LogRecord record{.line = line.number, .has_means = true, .has_loose_window = true};
    for (const LogField& field : fields) record.take(field);
    if (record.has_step()) steps.hand_over(record, sink);
    return true;
  };
}

}  // namespace halfscope
