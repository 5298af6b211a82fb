// Apex's line of a lowered scale.
#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {

LogLineReader read_apex() {
  return [](const LogText& line, const SkipLogSink& sink) {
    if (line.text.find("Gradient overflow.") == std::string_view::npos) return;
    const auto overflow = halved_scale(line.text, "loss scaler 0 reducing loss scale to", "apex");
    if (overflow) sink.overflow(*overflow);
  };
}

}  // namespace halfscope
