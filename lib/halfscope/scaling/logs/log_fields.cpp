// Finds names that have a role, and the numbers behind them, in one pass over a line.
#include <halfscope/scaling/detail/log_fields.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_char(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '/' || c == '.' || c == '-' || c == '@';
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  return at;
}

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

/// Place of the number behind a name: past "=", ":", "|", brackets, quotes, and a call such as "tensor(".
std::optional<std::size_t> value_begin(std::string_view text, std::size_t at, bool& has_mark) {
  const auto at_one_of = [&](std::string_view marks) {
    return at < text.size() && marks.find(text[at]) != std::string_view::npos;
  };
  if (at_one_of("\"'")) ++at;
  if (at_one_of("(")) {  // "Epoch(train)"
    const std::size_t close = text.find(')', at);
    if (close == std::string_view::npos || close > at + 16 || !is_letter(text[at + 1])) return std::nullopt;
    at = close + 1;
  }
  at = skip_blanks(text, at);
  has_mark = at_one_of(":=|[");
  if (has_mark) at = skip_blanks(text, at + 1);
  if (at_one_of("[")) at = skip_blanks(text, at + 1);
  if (at_one_of("\"'")) ++at;
  for (const std::string_view call : {"np.float64(", "np.float32(", "tensor(", "array(", "Array("}) {
    if (text.substr(std::min(at, text.size())).starts_with(call)) at += call.size();
  }
  return at < text.size() ? std::optional(at) : std::nullopt;
}

}  // namespace

/// One pass over a line.
class LogFieldFinder {
 public:
  LogFieldFinder(std::string_view text, LogNames& names, std::vector<LogField>& fields)
      : text_(text), names_(names), fields_(fields) {}

  void run() {
    std::size_t before = 0, before_end = 0;  // the word before, in front of one space
    for (std::size_t at = 0; at < text_.size();) {
      if (!is_letter(text_[at]) && text_[at] != '_') {
        ++at;
        continue;
      }
      std::size_t end = at;
      while (end < text_.size() && is_name_char(text_[end])) ++end;
      while (end > at + 1 && (text_[end - 1] == '.' || text_[end - 1] == '-' || text_[end - 1] == '/')) --end;
      const bool follows = before_end > 0 && at == before_end + 1 && text_[before_end] == ' ';
      std::size_t next = end;
      if (!(follows && take(before, end, next))) take(at, end, next);
      before = at;
      before_end = end;
      at = std::max(next, end);
    }
  }

 private:
  /// Whether [begin, end) is a name with a role.
  bool take(std::size_t begin, std::size_t end, std::size_t& next) {
    const std::string_view name = text_.substr(begin, end - begin);
    const LogNames::Known& known = names_.known(name);
    const LogRole role = known.role;
    if (role == LogRole::none) return false;
    bool has_mark = false;
    const auto value = value_begin(text_, end, has_mark);
    // "scale 2", "it 3" and "overflow 1" are words of sentences.
    const bool needs_mark = role == LogRole::overflow || name == "scale" || name == "it";
    if (!value || (needs_mark && !has_mark)) return true;
    std::string_view rest = text_.substr(*value);
    const auto number = take_any_number(rest);
    if (!number) return true;
    LogField field{role, known.kept, *number};
    const bool is_place = role >= LogRole::global_step && role <= LogRole::epoch;
    if (is_place) take_total(rest, field);
    if (is_place && role != LogRole::epoch) take_list(*value, rest, field);
    const bool has_colon = is_place && (rest == ":" || rest.starts_with(": "));
    if (is_word_train(name) && !rest.starts_with("][")) return true;
    if (!ends_number(rest) && !has_colon) return true;
    field.end = next = text_.size() - rest.size();
    fields_.push_back(field);
    if (role == LogRole::epoch) take_position(rest, field.name);
    return true;
  }

  /// Swin's "Train: [0/300][10/1251]".
  static bool is_word_train(std::string_view name) { return name.ends_with("rain"); }

  /// "25/100".
  static void take_total(std::string_view& rest, LogField& field) {
    std::string_view behind = rest.substr(skip_blanks(rest, 0));
    if (!behind.starts_with('/')) return;
    behind.remove_prefix(1);
    behind.remove_prefix(skip_blanks(behind, 0));
    const auto total = take_any_number(behind);
    if (!total) return;
    field.total = total;
    rest = behind;
  }

  /// "[0, 10]" behind a step: the last number counts, the first is the epoch's.
  void take_list(std::size_t begin, std::string_view& rest, LogField& field) {
    const std::size_t open = text_.find_last_not_of(' ', begin - 1);
    if (open == std::string_view::npos || text_[open] != '[' || !rest.starts_with(',')) return;
    fields_.push_back({LogRole::epoch, field.name, field.value});
    while (rest.starts_with(',')) {
      std::string_view behind = rest.substr(skip_blanks(rest, 1));
      const auto number = take_any_number(behind);
      if (!number) return;
      field.value = *number;
      field.role = LogRole::batch;
      rest = behind;
    }
  }

  /// "[3]  [ 20/625]" behind an epoch: the step within it.
  void take_position(std::string_view rest, std::string_view name) {
    if (!rest.starts_with(']')) return;
    rest.remove_prefix(skip_blanks(rest, 1));
    if (!rest.starts_with('[')) return;
    rest.remove_prefix(skip_blanks(rest, 1));
    LogField batch{LogRole::batch, name};
    const auto number = take_any_number(rest);
    if (!number) return;
    batch.value = *number;
    take_total(rest, batch);
    if (!rest.starts_with(']')) return;
    batch.end = text_.size() - rest.size();
    fields_.push_back(batch);
  }

  std::string_view text_;
  LogNames& names_;
  std::vector<LogField>& fields_;
};

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

void find_log_fields(std::string_view text, LogNames& names, std::vector<LogField>& fields) {
  LogFieldFinder(text, names, fields).run();
}

}  // namespace halfscope
