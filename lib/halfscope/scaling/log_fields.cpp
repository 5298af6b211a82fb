// Looks for the fields that tell of scales and norms, whatever else a line holds.
#include <halfscope/scaling/detail/log_fields.hpp>

#include <array>
#include <limits>
#include <type_traits>
#include <utility>

#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

constexpr std::array<std::string_view, 5> step_names{"step", "_step", "global_step", "trainer/global_step",
                                                     "num_updates"};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

std::vector<std::string_view> cells_of(std::string_view row) {
  std::vector<std::string_view> cells;
  while (true) {
    const bool quoted = row.starts_with('"');
    const std::size_t begin = quoted ? 1 : 0;
    const std::size_t end = std::min(row.find(quoted ? '"' : ',', begin), row.size());
    cells.push_back(row.substr(begin, end - begin));
    const std::size_t comma = row.find(',', end);
    if (comma == std::string_view::npos) return cells;
    row.remove_prefix(comma + 1);
  }
}

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  return take_log_number<Number>(text);
}

/// The value of a member of JSON or of a Python dictionary: a number, with or without quotes.
template <typename Number>
std::optional<Number> member(std::string_view text, std::string_view name) {
  for (const char quote : {'"', '\''}) {
    const std::string key = quote + std::string(name) + quote;
    const std::size_t at = text.find(key);
    if (at == std::string_view::npos) continue;
    std::string_view rest = text.substr(at + key.size());
    if (!take_word(rest, ":")) continue;
    rest = without_spaces(rest);
    if (rest.starts_with('"')) rest.remove_prefix(1);
    // JSON as Python writes it; no whole number is any of these.
    if constexpr (!std::is_floating_point_v<Number>) {
      if (rest.starts_with("NaN") || rest.starts_with("Infinity")) return std::nullopt;
    }
    if (rest.starts_with("NaN")) return static_cast<Number>(std::numeric_limits<double>::quiet_NaN());
    if (rest.starts_with("Infinity")) return static_cast<Number>(std::numeric_limits<double>::infinity());
    return take_log_number<Number>(rest);
  }
  return std::nullopt;
}

std::optional<double> scale_member(std::string_view text) {
  auto scale = member<double>(text, "loss_scale");
  if (!is_scale(scale)) scale.reset();
  return scale;
}

std::optional<double> norm_member(std::string_view text) {
  return norm_of(member<double>(text, "grad_norm"));
}

}  // namespace

void LogFields::line(std::string_view text, std::int64_t done, const Take& take) {
  if (std::exchange(first_, false) && take_header(text)) return;
  if (const std::size_t at = text.find(history_key); at != std::string_view::npos) {
    in_history_ = true;
    text.remove_prefix(at + history_key.size());
  }
  if (in_history_) return trainer_entries(text, take);
  std::optional<IterationLine> found = step_column_ ? csv_row(text) : json_line(text);
  if (!found && !step_column_) found = printed_dictionary(text, done);
  if (found) take(*found);
}

bool LogFields::take_header(std::string_view text) {
  if (text.ends_with('\r')) text.remove_suffix(1);
  const std::vector<std::string_view> names = cells_of(text);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = lower(names[i]);
    const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
    if (std::ranges::find(step_names, name) != step_names.end() && !step_column_) step_column_ = i;
    if (has("__min") || has("__max")) continue;  // W&B's spread of runs that it groups
    if ((has("loss_scale") || has("loss scale")) && !scale_column_) scale_column_ = i;
    if ((has("grad_norm") || has("grad norm")) && !norm_column_) norm_column_ = i;
  }
  if (!scale_column_ && !norm_column_) step_column_.reset();
  return step_column_.has_value();
}

std::optional<IterationLine> LogFields::csv_row(std::string_view text) const {
  const std::vector<std::string_view> cells = cells_of(text);
  const auto cell = [&](const std::optional<std::size_t>& column) {
    return column && *column < cells.size() ? cells[*column] : std::string_view();
  };
  const auto step = number_of<std::int64_t>(cell(step_column_));
  if (!is_count(step)) return std::nullopt;
  IterationLine line{.iteration = *step, .format = SkipLogFormat::csv};
  if (const auto scale = number_of<double>(cell(scale_column_)); is_scale(scale)) line.scale = scale;
  line.grad_norm = norm_of(number_of<double>(cell(norm_column_)));
  if (!line.scale && !line.grad_norm) return std::nullopt;
  return line;
}

std::optional<IterationLine> LogFields::json_line(std::string_view text) const {
  const std::size_t begin = text.find("{\"");
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin);
  for (const std::string_view name : step_names) {
    const auto step = member<std::int64_t>(text, name);
    if (!is_count(step)) continue;
    const bool fairseq = name == "num_updates";
    IterationLine line{.iteration = *step, .format = fairseq ? SkipLogFormat::fairseq : SkipLogFormat::json};
    line.scale = scale_member(text);
    line.grad_norm = norm_member(text);
    if (!member<double>(text, "loss_scale") && !line.grad_norm) return std::nullopt;
    if (fairseq && line.scale && *line.scale < 1) line.scale.reset();  // rounded
    return line;
  }
  return std::nullopt;
}

/// trainer_state.json has a member on each line, or all of it on one; an entry of its history ends with a
/// brace.
void LogFields::trainer_entries(std::string_view text, const Take& take) {
  for (std::size_t end = text.find('}'); end != std::string_view::npos; end = text.find('}')) {
    trainer_members(text.substr(0, end));
    if (const auto found = end_trainer_entry()) take(*found);
    text.remove_prefix(end + 1);
  }
  trainer_members(text);
}

void LogFields::trainer_members(std::string_view text) {
  if (const auto step = member<std::int64_t>(text, "step"); is_count(step)) step_ = step;
  if (const auto scale = scale_member(text)) scale_ = scale;
  if (const auto norm = norm_member(text)) norm_ = norm;
}

std::optional<IterationLine> LogFields::end_trainer_entry() {
  const auto step = std::exchange(step_, std::nullopt);
  IterationLine line{.iteration = step.value_or(0), .format = SkipLogFormat::hf_trainer};
  line.scale = std::exchange(scale_, std::nullopt);
  line.grad_norm = std::exchange(norm_, std::nullopt);
  if (!step || (!line.scale && !line.grad_norm)) return std::nullopt;
  return line;
}

/// "{'loss': 2.04, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.28}", which has no step.
std::optional<IterationLine> LogFields::printed_dictionary(std::string_view text, std::int64_t done) {
  const std::size_t begin = text.find("{'");
  if (begin == std::string_view::npos) return std::nullopt;
  const auto norm = norm_member(text.substr(begin));
  if (!norm) return std::nullopt;
  dictionaries_ = std::max(dictionaries_ + 1, done);
  IterationLine line{.iteration = dictionaries_, .grad_norm = norm, .format = SkipLogFormat::hf_trainer};
  return line;
}

}  // namespace halfscope
