// Numbers as logs print them: words, thousands, those that no double holds, and the colours around them.
#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include <halfscope/scaling/detail/log_fields.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

bool starts_with_letters(std::string_view text, std::string_view letters) {
  return text.size() >= letters.size() &&
         std::equal(letters.begin(), letters.end(), text.begin(),
                    [](char wanted, char c) { return wanted == (c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
}

std::optional<double> take_word_number(std::string_view& text) {
  struct Word {
    std::string_view letters;
    double value;
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr Word words[]{{"infinity", infinity},
                         {"inf", infinity},
                         {"nan", std::numeric_limits<double>::quiet_NaN()},
                         {"true", 1},
                         {"false", 0}};
  for (const Word& word : words) {
    if (!starts_with_letters(text, word.letters)) continue;
    text.remove_prefix(word.letters.size());
    return word.value;
  }
  return std::nullopt;
}

/// A number that is too large or too small for a double: infinity or 0.
double beyond_double(std::string_view digits) {
  const bool is_small = digits.find("e-") != std::string_view::npos ||
                        digits.find("E-") != std::string_view::npos || digits.starts_with('.') ||
                        digits.starts_with("0.");
  return is_small ? 0 : std::numeric_limits<double>::infinity();
}

std::size_t digits_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - at;
}

/// Length of "65,536", "1,048,576"; 0 where the front of `text` is no such number.
std::size_t grouped_digits(std::string_view text) {
  constexpr std::size_t group = 3;
  std::size_t end = digits_at(text, 0);
  if (end == 0 || end > group || text.front() == '0') return 0;
  const std::size_t first = end;
  while (end < text.size() && text[end] == ',' && digits_at(text, end + 1) == group) end += 1 + group;
  const bool goes_on = end + 1 < text.size() && text[end] == ',' && is_digit(text[end + 1]);
  return end == first || goes_on ? 0 : end;
}

}  // namespace

std::optional<double> take_any_number(std::string_view& text) {
  std::string_view rest = text;
  const bool is_signed = !rest.empty() && (rest.front() == '-' || rest.front() == '+');
  const double sign = is_signed && rest.front() == '-' ? -1 : 1;
  if (is_signed) rest.remove_prefix(1);
  if (rest.empty()) return std::nullopt;
  std::optional<double> number;
  if (is_letter(rest.front())) {
    number = take_word_number(rest);
  } else if (is_digit(rest.front()) || rest.front() == '.') {
    double value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error == std::errc{}) number = value;
    if (error == std::errc::result_out_of_range) number = beyond_double({rest.data(), end});
    if (number) rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  }
  if (!number) return std::nullopt;
  text = rest;
  return sign * *number;
}

std::string without_colours(std::string_view text) {
  std::string plain;
  for (std::size_t at = text.find('\x1b'); at != std::string_view::npos; at = text.find('\x1b')) {
    plain += text.substr(0, at);
    text.remove_prefix(at + 1);
    if (!text.starts_with('[')) continue;
    std::size_t end = 1;
    while (end < text.size() && (is_digit(text[end]) || text[end] == ';')) ++end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return plain += text;
}

std::optional<double> take_grouped_number(std::string_view& text) {
  const std::size_t size = grouped_digits(text);
  if (size == 0) {
    const auto number = take_any_number(text);
    // "1,25" is a decimal comma, or two numbers.
    const bool goes_on = number && text.size() > 1 && text.front() == ',' && is_digit(text[1]);
    return goes_on ? std::nullopt : number;
  }
  std::string digits(text.substr(0, size));
  std::erase(digits, ',');
  std::size_t end = size;
  if (end < text.size() && text[end] == '.') end += 1 + digits_at(text, end + 1);
  digits += text.substr(size, end - size);
  std::string_view rest = digits;
  const auto number = take_any_number(rest);
  text.remove_prefix(end - rest.size());
  return number;
}

}  // namespace halfscope
