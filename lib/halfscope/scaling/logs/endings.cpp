// Exceptions of loss scalers that end a run.
#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {

LogLineReader read_endings() {
  return [](const LogText& line, const SkipLogSink& sink) {
    for (const std::string_view ending :
         {"Current loss scale already at minimum", "Minimum loss scale reached"}) {
      if (line.text.find(ending) != std::string_view::npos) sink.end();
    }
  };
}

}  // namespace halfscope
