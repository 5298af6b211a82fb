// Finds names that have a role, and the numbers behind them, in one pass over a line.
#include <halfscope/scaling/detail/log_fields.hpp>

#include <algorithm>
#include <cmath>

#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

bool is_name_char(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '/' || c == '.' || c == '-' || c == '@';
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  return at;
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
      if (!(follows && take(before, end, next)) && !(follows && is_of_word(at, end))) take(at, end, next);
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
    const bool needs_mark = role == LogRole::overflow || role == LogRole::other_scale ||
                            (name == "scale" && name != names_.columns_.scale) || name == "it";
    if (!value) return true;
    std::string_view rest = text_.substr(*value);
    if (needs_mark && !has_mark) {
      if (name == "scale") add_unmarked(known.kept, rest);
      return true;
    }
    const auto number = is_in_list(*value) ? take_any_number(rest) : take_grouped_number(rest);
    const bool goes_on = number ? !ends_number(rest) : text_[*value] == '{';
    if (is_scale_role(role) && goes_on) add_unreadable(known.kept, *value);
    if (!number || is_of_evaluation(begin, role)) return true;
    LogField field{role, known.kept, *number};
    if (role == LogRole::scale && !(take_change(rest, field) && may_be_scale(name, field.value))) return true;
    const bool is_place = role >= LogRole::global_step && role <= LogRole::epoch;
    if (is_place) take_total(rest, field);
    if (is_place && role != LogRole::epoch && !take_list(*value, rest, field)) return true;
    const bool has_colon = is_place && (rest == ":" || rest.starts_with(": "));
    if (is_word_train(name) && !rest.starts_with("][")) return true;
    if (!ends_number(rest) && !has_colon) return true;
    field.end = next = text_.size() - rest.size();
    field.heads_list = !is_place && is_in_list(*value) && rest.starts_with(',');
    fields_.push_back(field);
    if (role == LogRole::epoch) take_position(rest, field.name);
    return true;
  }

  /// The name of a scale behind which no number stands, or one that goes on.
  void add_unreadable(std::string_view name, std::size_t end) {
    fields_.push_back({.role = LogRole::other_scale, .name = name, .value = std::nan(""), .end = end});
  }

  /// "scale 65536": a large power of two may be that of the loss.
  void add_unmarked(std::string_view name, std::string_view rest) {
    constexpr double least = 64;
    const auto number = take_grouped_number(rest);
    if (number && *number >= least && ends_number(rest) && may_be_scale(name, *number))
      fields_.push_back(
          {.role = LogRole::other_scale, .name = name, .value = *number, .end = text_.size() - rest.size()});
  }

  /// Whether a number stands behind the bracket of a list.
  [[nodiscard]] bool is_in_list(std::size_t begin) const {
    const std::size_t before = text_.find_last_not_of(" \t", begin - 1);
    return before != std::string_view::npos && text_[before] == '[';
  }

  /// "weight norm: 2.5": the norm of the word in front of it.
  [[nodiscard]] bool is_of_word(std::size_t begin, std::size_t end) const {
    const std::string_view name = text_.substr(begin, end - begin);
    return (name == "norm" || name == "Norm") && name != names_.columns_.norm;
  }

  /// "val loss: 2.5": a loss or a norm behind the name of an evaluation.
  [[nodiscard]] bool is_of_evaluation(std::size_t begin, LogRole role) const {
    if ((role != LogRole::loss && role != LogRole::norm) || begin < 2 || text_[begin - 1] != ' ')
      return false;
    std::size_t word = begin - 1;
    while (word > 0 && is_name_char(text_[word - 1])) --word;
    return is_evaluation(text_.substr(word, begin - 1 - word));
  }

  /// "65536 -> 32768": the scale behind the step. Whether nothing was cut behind the arrow.
  static bool take_change(std::string_view& rest, LogField& field) {
    const std::string_view behind = rest.substr(skip_blanks(rest, 0));
    for (const std::string_view arrow : {"->", "=>", "\xe2\x86\x92"}) {
      if (!behind.starts_with(arrow)) continue;
      std::string_view next = behind.substr(skip_blanks(behind, arrow.size()));
      const auto after = take_grouped_number(next);
      if (!after) return false;
      field.before = field.value;
      field.value = *after;
      rest = next;
    }
    return true;
  }

  /// Other things have a scale too, as guidance does: one of a loss that has no other name is a power of two.
  [[nodiscard]] bool may_be_scale(std::string_view name, double value) const {
    if (name != "scale" || name == names_.columns_.scale || !(value > 0) || !std::isfinite(value))
      return true;
    int exponent = 0;
    return std::frexp(value, &exponent) == 0.5;
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

  /// "[0, 10]" behind a step: the last number counts, the first is the epoch's. Whether it is a step: a list
  /// of more numbers is one of many steps.
  bool take_list(std::size_t begin, std::string_view& rest, LogField& field) {
    constexpr int most = 3;
    if (!is_in_list(begin) || !rest.starts_with(',')) return true;
    const LogField epoch{LogRole::epoch, field.name, field.value};
    for (int count = 1; rest.starts_with(','); ++count) {
      std::string_view behind = rest.substr(skip_blanks(rest, 1));
      const auto number = take_any_number(behind);
      if (!number) break;
      if (count == most) return false;
      field.value = *number;
      field.role = LogRole::batch;
      rest = behind;
    }
    fields_.push_back(epoch);
    return true;
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

void find_log_fields(std::string_view text, LogNames& names, std::vector<LogField>& fields) {
  LogFieldFinder(text, names, fields).run();
}

}  // namespace halfscope
