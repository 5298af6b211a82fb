// Progress bars, as tqdm draws them.
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {

void find_progress_bars(std::string_view text, const SkipLogSink& sink) {
  for (std::size_t at = text.find("| "); at != std::string_view::npos; at = text.find("| ")) {
    text.remove_prefix(at + 2);
    std::string_view rest = text;
    const auto done = take_log_number<std::int64_t>(rest);
    if (!is_count(done) || !rest.starts_with('/')) continue;
    rest.remove_prefix(1);
    const auto total = take_log_number<std::int64_t>(rest);
    if (is_count(total) && *done <= *total && take_word(rest, "[")) sink.progress({*done, *total});
  }
}

}  // namespace halfscope
