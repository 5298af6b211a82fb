// Tables of scalars, as W&B, Lightning and DeepSpeed's monitor write them.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <halfscope/core/escape.hpp>
#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_record.hpp>

namespace halfscope {
namespace {

/// The mark that most often stands in a header.
char separator_of(std::string_view header) {
  constexpr std::string_view marks = ",;\t";
  return *std::ranges::max_element(marks, {}, [&](char mark) { return std::ranges::count(header, mark); });
}

std::vector<std::string_view> cells_of(std::string_view row, char separator) {
  std::vector<std::string_view> cells;
  while (true) {
    const bool quoted = row.starts_with('"');
    const std::size_t begin = quoted ? 1 : 0;
    const std::size_t end = std::min(row.find(quoted ? '"' : separator, begin), row.size());
    cells.push_back(row.substr(begin, end - begin));
    const std::size_t next = row.find(separator, end);
    if (next == std::string_view::npos) return cells;
    row.remove_prefix(next + 1);
  }
}

/// All of a cell: "65,536" with commas between thousands, "65536,5" with a comma for a point. Tables with
/// semicolons are of those who write the latter.
std::optional<double> number_of(std::string_view cell, char separator) {
  std::string digits(cell);
  std::erase(digits, ' ');
  const std::size_t comma = digits.find(',');
  if (comma != std::string::npos && separator != ',') digits[comma] = '.';
  std::string_view rest = digits;
  auto number = take_grouped_number(rest);
  if (!number && comma != std::string::npos) {
    digits[comma] = '.';
    rest = digits;
    number = take_any_number(rest);
  }
  return rest.empty() ? number : std::nullopt;
}

/// A table is known by its first line: a step, and a loss scale, a norm or a loss.
class ScalarTable {
 public:
  explicit ScalarTable(const LogColumns& columns) : names_(columns) {}

  bool line(const LogText& line, const SkipLogSink& sink) {
    if (std::exchange(first_, false)) {
      take_header(line, sink);
    } else if (is_table_) {
      row(line, sink);
    }
    return is_table_;
  }

 private:
  struct TableColumn {
    std::size_t place;
    LogRole role;
    std::string name;
  };

  void take_header(const LogText& line, const SkipLogSink& sink) {
    separator_ = separator_of(line.text);
    const std::vector<std::string_view> names = cells_of(line.text, separator_);
    LogRecord header;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const LogRole role = names_.role_of(names[i]);
      if (role == LogRole::none) continue;
      if (!header.at(role)) {
        columns_.push_back({i, role, std::string(names[i])});
      } else if (!is_step_role(role) && role != LogRole::epoch) {
        others_.emplace_back(names[i]);
        has_other_scales_ = has_other_scales_ || is_scale_role(role);
      }
      header.take({role, names[i]});
    }
    is_table_ = names.size() > 1 && header.has_step() &&
                (header.has_values() || header.at(LogRole::other_scale).has_value());
    if (!is_table_) return;
    if (!others_.empty()) {
      for (std::string& name : others_) name = fmt::format("'{}'", escaped(name));
      sink.note(fmt::format("Other columns of the kind are left out: {}; --columns says which one to read.",
                            fmt::join(others_, ", ")));
    }
  }

  void row(const LogText& line, const SkipLogSink& sink) {
    const std::vector<std::string_view> cells = cells_of(line.text, separator_);
    LogRecord record{.line = line.number, .has_other_scales = has_other_scales_};
    for (const TableColumn& column : columns_) {
      if (column.place >= cells.size()) continue;
      if (const auto number = number_of(cells[column.place], separator_))
        record.take({column.role, column.name, *number});
    }
    if (record.has_step()) steps_.hand_over(record, sink);
  }

  LogNames names_;
  LogRecordSteps steps_{"csv"};
  std::vector<TableColumn> columns_;
  std::vector<std::string> others_;
  char separator_ = ',';
  bool first_ = true, is_table_ = false, has_other_scales_ = false;
};

}  // namespace

LogLineReader read_csv(const LogColumns& columns) {
  return [table = ScalarTable(columns)](const LogText& line, const SkipLogSink& sink) mutable {
    return table.line(line, sink);
  };
}

}  // namespace halfscope
