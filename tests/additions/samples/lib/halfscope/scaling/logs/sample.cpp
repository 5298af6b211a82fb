// A format of logs as a newcomer would add it: "sample update 3 at scale 1024".
#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {

LogLineReader read_sample(const LogColumns& /*columns*/) {
  return [](const LogText& line, const SkipLogSink& sink) {
    const auto update = number_after<std::int64_t>(line.text, "sample update ");
    const auto scale = number_after<double>(line.text, "at scale ");
    if (is_count(update) && is_scale(scale))
      sink.iteration({.iteration = *update, .scale = scale, .format = "sample_log"});
    return false;
  };
}

}  // namespace halfscope
