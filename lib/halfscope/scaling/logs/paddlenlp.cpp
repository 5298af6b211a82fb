// PaddleNLP's line of a skipped step.
#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {

LogLineReader read_paddlenlp(const LogColumns& /*columns*/) {
  return [](const LogText& line, const SkipLogSink& sink) {
    if (line.text.find("optimizer not run") == std::string_view::npos) return false;
    const auto before = number_after<double>(line.text, "scale_before:");
    const auto after = number_after<double>(line.text, "scale_after:");
    reject_scale(before, sink);
    // Each process prints the line.
    if (is_scale(before) && is_scale(after))
      sink.overflow({.scale = *before, .next = after, .format = "paddlenlp"});
    return true;
  };
}

}  // namespace halfscope
