// Apex's line of a lowered scale.
#include <algorithm>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {

LogLineReader read_apex(const LogColumns& /*columns*/) {
  return [](const LogText& line, const SkipLogSink& sink) {
    constexpr std::string_view label = "loss scaler ";
    if (line.text.find("Gradient overflow.") == std::string_view::npos) return false;
    std::string_view rest = line.text.substr(std::min(line.text.find(label), line.text.size()));
    if (!take_word(rest, label)) return true;
    const auto scaler = take_log_number<std::int64_t>(rest);
    const auto next = number_after<double>(rest, "reducing loss scale to");
    auto overflow = halved_scale(next, "apex");
    reject_scale(next, sink);
    if (!is_count(scaler) || !overflow) return true;
    overflow->scaler = *scaler;
    sink.overflow(*overflow);
    return true;
  };
}

}  // namespace halfscope
