// Widths by utf8proc; of bytes that are no UTF-8, one column each.
#include "experiments/table/text_width.hpp"

#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

#include <algorithm>
#include <vector>

namespace halfscope {
namespace {

/// A character with the accents that stand on it.
struct Glyph {
  std::string_view bytes;
  std::size_t width = 0;
};

std::vector<Glyph> glyphs_of(std::string_view text) {
  std::vector<Glyph> glyphs;
  while (!text.empty()) {
    utf8proc_int32_t code = 0;
    const auto read = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<utf8proc_ssize_t>(text.size()), &code);
    const std::size_t bytes = read > 0 ? static_cast<std::size_t>(read) : 1;
    const std::size_t width = read > 0 ? static_cast<std::size_t>(utf8proc_charwidth(code)) : 1;
    if (width == 0 && !glyphs.empty()) {
      Glyph& last = glyphs.back();
      last.bytes = {last.bytes.data(), last.bytes.size() + bytes};
    } else {
      glyphs.push_back({text.substr(0, bytes), width});
    }
    text.remove_prefix(bytes);
  }
  return glyphs;
}

/// The glyphs from `first` on, one after the other as `next` goes, that fit `width`.
template <typename Iterator>
std::size_t count_that_fit(Iterator first, Iterator last, std::size_t width) {
  std::size_t count = 0;
  for (std::size_t used = 0; first != last && used + first->width <= width; ++first, ++count) {
    used += first->width;
  }
  return count;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (const Glyph& glyph : glyphs_of(text)) width += glyph.width;
  return width;
}

std::size_t output_width() {
  if (isatty(STDOUT_FILENO) != 1) return any_width;
  constexpr std::size_t usual = 80;
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

std::string shortened(std::string_view text, std::size_t width) {
  constexpr std::string_view gap = "...";
  if (display_width(text) <= width) return std::string(text);
  if (width <= gap.size()) return std::string(gap.substr(0, width));
  const std::vector<Glyph> glyphs = glyphs_of(text);
  const std::size_t room = width - gap.size();
  const std::size_t head = count_that_fit(glyphs.begin(), glyphs.end(), room / 2);
  const std::size_t tail = count_that_fit(glyphs.rbegin(), glyphs.rend(), room - room / 2);
  std::string result;
  for (std::size_t i = 0; i < head; ++i) result += glyphs[i].bytes;
  result += gap;
  for (std::size_t i = glyphs.size() - tail; i < glyphs.size(); ++i) result += glyphs[i].bytes;
  return result;
}

std::string wrapped(std::string_view text, std::size_t width, std::string_view indent) {
  const std::size_t blanks = std::min(text.find_first_not_of(' '), text.size());
  std::string result(text.substr(0, blanks));  // the first line keeps an indent of its own
  text.remove_prefix(blanks);
  std::size_t used = blanks;
  bool is_first = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::size_t columns = display_width(word);
    if (!is_first && used + 1 + columns > width) {
      result.append("\n").append(indent);
      used = display_width(indent);
    } else if (!is_first) {
      result += ' ';
      ++used;
    }
    is_first = false;
    result += word;
    used += columns;
  }
  return result;
}

}  // namespace halfscope
