// Tables of scalars, as W&B, Lightning and DeepSpeed's monitor write them.
#include <algorithm>
#include <utility>
#include <vector>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_members.hpp>

namespace halfscope {
namespace {

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

/// A table is known by its first line.
class ScalarTable {
 public:
  void line(std::string_view text, const SkipLogSink& sink) {
    if (std::exchange(first_, false)) return take_header(text);
    if (!step_) return;
    if (const auto found = row(text)) sink.iteration(*found);
  }

 private:
  void take_header(std::string_view text) {
    const std::vector<std::string_view> names = cells_of(text);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string name = lower(names[i]);
      const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
      if (std::ranges::find(step_names, name) != step_names.end() && !step_) step_ = i;
      if (has("__min") || has("__max")) continue;  // W&B's spread of runs that it groups
      if ((has("loss_scale") || has("loss scale")) && !scale_) scale_ = i;
      if ((has("grad_norm") || has("grad norm")) && !norm_) norm_ = i;
    }
    if (!scale_ && !norm_) step_.reset();
  }

  [[nodiscard]] std::optional<IterationLine> row(std::string_view text) const {
    const std::vector<std::string_view> cells = cells_of(text);
    const auto cell = [&](const std::optional<std::size_t>& column) {
      return column && *column < cells.size() ? cells[*column] : std::string_view();
    };
    std::string_view step_cell = cell(step_), scale_cell = cell(scale_), norm_cell = cell(norm_);
    const auto step = take_log_number<std::int64_t>(step_cell);
    if (!is_count(step)) return std::nullopt;
    IterationLine line{.iteration = *step, .format = "csv"};
    if (const auto scale = take_log_number<double>(scale_cell); is_scale(scale)) line.scale = scale;
    line.grad_norm = norm_of(take_log_number<double>(norm_cell));
    if (!line.scale && !line.grad_norm) return std::nullopt;
    return line;
  }

  bool first_ = true;
  std::optional<std::size_t> step_, scale_, norm_;  ///< columns
};

}  // namespace

LogLineReader read_csv() {
  return [table = ScalarTable()](const LogText& line, const SkipLogSink& sink) mutable {
    table.line(line.text, sink);
  };
}

}  // namespace halfscope
