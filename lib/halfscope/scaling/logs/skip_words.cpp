// Lines that may tell of a skipped step in words that no format has: "Found overflow. Skip step".
#include <algorithm>
#include <array>
#include <span>
#include <string>

#include <halfscope/core/detail/small_letters.hpp>
#include <halfscope/scaling/detail/log_fields.hpp>
#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

/// Words of a line on things that are skipped, and on things that overflow.
constexpr std::array<std::string_view, 7> skipped{"step",     "updat", "iter",    "optimi",
                                                  "gradient", "grad ", "backward"};
constexpr std::array<std::string_view, 8> overflowing{"grad",  "scale", "step", "detected",
                                                      "found", "check", "skip", "amp"};

/// "overflow=0", "skipped: 3", "overflow False": numbers and answers, which are read by their names.
bool has_answer(std::string_view text, std::size_t place) {
  while (place < text.size() && (is_letter(text[place]) || text[place] == '_')) ++place;
  const std::size_t at = text.find_first_not_of(" \t=:'\"", place);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = text.substr(at);
  const auto is_answer = [&](std::string_view word) { return rest.starts_with(word); };
  return is_digit(rest.front()) || is_answer("false") || is_answer("true") || is_answer("none");
}

bool has_sign(std::string_view text, std::string_view sign, std::span<const std::string_view> objects) {
  const std::size_t at = text.find(sign);
  return at != std::string_view::npos && !has_answer(text, at) &&
         std::ranges::any_of(objects,
                             [&](std::string_view object) { return text.find(object) != text.npos; });
}

}  // namespace

bool may_tell_of_skip(std::string_view text) {
  constexpr std::size_t longest = 1000;  // bytes of a sentence; options of a run are longer
  if (text.size() > longest) return false;
  const std::string small = in_small_letters(text);
  return has_sign(small, "skip", skipped) || has_sign(small, "overflow", overflowing);
}

LogLineReader read_skip_words(const LogColumns& /*columns*/) {
  return [](const LogText& line, const SkipLogSink& sink) {
    if (!line.taken && sink.words && may_tell_of_skip(line.text)) sink.words();
    return false;
  };
}

}  // namespace halfscope
