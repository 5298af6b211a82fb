// Numbers in a line of a log.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <halfscope/scaling/detail/log_lines.hpp>
#include <halfscope/scaling/scaler_options.hpp>

namespace halfscope {

[[nodiscard]] inline bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
[[nodiscard]] inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

[[nodiscard]] inline std::string_view without_spaces(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

/// Takes a number off the front of `text`, after spaces.
template <typename Number>
std::optional<Number> take_log_number(std::string_view& text) {
  const std::string_view rest = without_spaces(text);
  Number number{};
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text = rest.substr(static_cast<std::size_t>(end - rest.data()));
  return number;
}

/// Takes colours out of a line, as terminals have them: ESC, "[", numbers and a letter.
[[nodiscard]] std::string without_colours(std::string_view text);

/// Whether what follows a number ends it: one that was cut runs into something else.
[[nodiscard]] inline bool ends_number(std::string_view rest) {
  constexpr std::string_view ends = " \t\r\n,;|)]}\"'";
  return rest.empty() || ends.find(rest.front()) != std::string_view::npos;
}

/// Whether `text` begins with `word`, after spaces; it is taken off then.
inline bool take_word(std::string_view& text, std::string_view word) {
  const std::string_view rest = without_spaces(text);
  if (!rest.starts_with(word)) return false;
  text = rest.substr(word.size());
  return true;
}

/// The number after a label; none where it was cut.
template <typename Number>
std::optional<Number> number_after(std::string_view text, std::string_view label) {
  const std::size_t at = text.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + label.size());
  const auto number = take_log_number<Number>(text);
  return ends_number(text) ? number : std::nullopt;
}

[[nodiscard]] inline bool is_scale(const std::optional<double>& scale) {
  return scale && *scale >= smallest_scale && *scale <= largest_scale;
}

[[nodiscard]] inline bool is_count(const std::optional<std::int64_t>& count) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  return count && *count >= 0 && *count <= most;
}

/// A norm as a bound: NaN where it is not finite, nothing for 0, which logs print where they have no norm.
[[nodiscard]] inline std::optional<double> norm_of(std::optional<double> printed) {
  if (!printed || *printed <= 0) return std::nullopt;
  return std::isfinite(*printed) ? printed : std::numeric_limits<double>::quiet_NaN();
}

/// A loss: NaN where it is not finite.
[[nodiscard]] inline std::optional<double> loss_of(std::optional<double> printed) {
  if (printed && !std::isfinite(*printed)) return std::numeric_limits<double>::quiet_NaN();
  return printed;
}

/// Hands over the bars of a line.
void find_progress_bars(std::string_view text, const SkipLogSink& sink);

/// A skipped step that is not read, since a scaler holds no such scale; a number that was cut is none.
inline void reject_scale(const std::optional<double>& scale, const SkipLogSink& sink) {
  if (scale && !is_scale(scale) && sink.reject)
    sink.reject(
        fmt::format("tells of a skipped step at a loss scale of {:g}, which is none from {:g} to {:g}",
                    *scale, smallest_scale, largest_scale));
}

/// The overflow of a line that prints the scale after it, which is half of that at which it overflowed.
[[nodiscard]] inline std::optional<OverflowLine> halved_scale(std::optional<double> next,
                                                              std::string_view format) {
  if (!next || !is_scale(2 * *next) || !is_scale(next)) return std::nullopt;
  return OverflowLine{.scale = 2 * *next, .next = next, .format = format};
}

}  // namespace halfscope
