// guided-diffusion and its relatives: skipped steps by log2 of their scale, and tables of means.
#include <cmath>
#include <utility>
#include <vector>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_record.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

class DiffusionLog {
 public:
  explicit DiffusionLog(const LogColumns& columns) : names_(columns) {}

  bool line(const LogText& line, const SkipLogSink& sink) {
    if (line.text.find("decreased lg_loss_scale to") != std::string_view::npos) {
      const auto after = number_after<double>(line.text, "decreased lg_loss_scale to");
      if (after && is_scale(std::exp2(*after)) && is_scale(std::exp2(*after + 1))) {
        sink.overflow(
            {.scale = std::exp2(*after + 1), .next = std::exp2(*after), .format = "guided_diffusion"});
        ++skipped_;
      } else if (after) {
        reject_scale(std::exp2(*after), sink);
      }
      return true;
    }
    has_scale_ = has_scale_ || line.text.find("| lg_loss_scale ") != std::string_view::npos;
    if (line.text.starts_with('|')) {
      find_log_fields(line.text, names_, fields_);
      return has_scale_;
    }
    end_table(line.number, sink);
    return false;
  }

 private:
  /// The scale grows a little in each step, and its mean tells none.
  void end_table(std::int64_t number, const SkipLogSink& sink) {
    LogRecord record{.line = number, .is_told = true, .has_scaler = true};
    for (const LogField& field : std::exchange(fields_, {})) {
      if (field.role != LogRole::scale_log2) record.take(field);
    }
    record.take({LogRole::skipped, "lines of NaN", static_cast<double>(skipped_)});
    if (has_scale_ && record.has_step()) steps_.hand_over(record, sink);
  }

  LogNames names_;
  std::vector<LogField> fields_;
  LogRecordSteps steps_{"guided_diffusion"};
  bool has_scale_ = false;
  std::int64_t skipped_ = 0;
};

}  // namespace

LogLineReader read_guided_diffusion(const LogColumns& columns) {
  return [log = DiffusionLog(columns)](const LogText& line, const SkipLogSink& sink) mutable {
    return log.line(line, sink);
  };
}

}  // namespace halfscope
