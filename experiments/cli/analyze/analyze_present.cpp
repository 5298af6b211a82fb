// Renders what `halfscope analyze` found.
#include "experiments/cli/analyze/analyze_present.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/core/escape.hpp>
#include <halfscope/core/name_list.hpp>

#include "experiments/cli/analyze/analyze_blocks.hpp"
#include "experiments/cli/tensors/files_read.hpp"

namespace halfscope {
namespace {

std::string window_words(const std::optional<ScaleWindow>& window) {
  return window ? fmt::format("2^{} .. 2^{}", window->low, window->high) : "none";
}

std::string window_of(const AnalyzedTensor& tensor) {
  const TensorFit& fit = tensor.report.fit;
  const std::string words = fit.any_scale ? "any" : window_words(fit.window());
  return tensor.beyond_fp32 > 0 ? "at most " + words : words;
}

Cell share_cell(double share) {
  return {share_text(share), share};
}

Cell cosine_cell(const std::optional<double>& cosine) {
  return cosine ? Cell{fmt::format("{:.6f}", *cosine), *cosine} : Cell{"-", std::monostate{}};
}

Cell error_cell(const std::optional<double>& error) {
  return error ? Cell{fmt::format("{:.2e}", *error), *error} : Cell{"-", std::monostate{}};
}

/// Columns that only some requests have.
struct Extras {
  bool groups = false, references = false;
  bool windows = true;  ///< columns of loss scales' windows
};

Extras extras_of(const Analysis& analysis, const View& view) {
  Extras extras{.windows = analysis.has_windows()};
  for (const AnalyzedTensor* tensor : view.tensors) {
    extras.groups |= tensor->file.empty();
    extras.references |= tensor->reference.has_value();
  }
  return extras;
}

std::vector<Cell> tensor_row(const AnalyzedTensor& tensor, const Extras& extras) {
  const TensorReport& report = tensor.report;
  const WhatIf& counts = report.counts;
  std::vector<Cell> row{report.name};
  if (extras.groups) row.push_back(count_cell(tensor.tensors));
  row.insert(row.end(), {count_cell(counts.elements), share_cell(counts.of_all(report.zeros)),
                         share_cell(counts.flushed_fraction()), share_cell(counts.subnormal_fraction()),
                         count_cell(counts.overflow), count_cell(report.nonfinite),
                         share_cell(report.lost_energy), cosine_cell(report.cosine)});
  if (extras.references) {
    const ReferenceComparison none;
    const ReferenceComparison& found = tensor.reference ? *tensor.reference : none;
    row.push_back(error_cell(tensor.reference ? found.relative_error() : std::nullopt));
    row.push_back(cosine_cell(found.cosine()));
  }
  if (extras.windows) row.push_back(window_of(tensor));
  return row;
}

Table tensor_table(const Analysis& analysis, const View& view) {
  const Extras extras = extras_of(analysis, view);
  Table table{{{"tensor", "tensor"}}, {}};
  if (extras.groups) table.columns.push_back({"tensors", "tensors", 4});
  table.columns.insert(table.columns.end(), {{"elements", "elements", 1},
                                             {"zeros", "zeros", 8},
                                             {"flushed", "flushed"},
                                             {"subnormal", "subnormal", 2},
                                             {"overflow", "overflow"},
                                             {"nonfinite", "inf/nan", 5},
                                             {"lost_energy", "lost energy", 6},
                                             {"cosine", "cosine", 7}});
  if (extras.references) {
    table.columns.push_back({"relative_error", "error"});
    table.columns.push_back({"reference_cosine", "cosine to reference", 3});
  }
  if (extras.windows) table.columns.push_back({"window_log2", "window"});
  for (const AnalyzedTensor* tensor : view.tensors) table.rows.push_back(tensor_row(*tensor, extras));
  return table;
}

/// Which tensors are not in the table, and how to see them.
std::string rest_line(const View& view) {
  const std::size_t shown = view.tensors.size();
  if (shown == view.all) return "";
  if (view.matching < view.all && shown == view.matching)
    return fmt::format("{} of {} tensors are over --only.", shown, view.all);
  return fmt::format("{} of {} tensors; --top N shows N, --top all shows all.", shown, view.matching);
}

std::string beyond_line(const Analysis& analysis) {
  std::int64_t count = 0;
  for (const AnalyzedTensor& tensor : analysis.tensors) count += tensor.beyond_fp32;
  if (count == 0) return "";
  return fmt::format(
      "{} values are beyond FP32's range and were read as its largest or smallest: counts are right, scales "
      "of "
      "their tensors are bounds only.",
      count);
}

/// The division that the windows are after; empty for one rank.
std::string averaging_line(const Analysis& analysis) {
  if (!analysis.averaging) return "";
  const auto& [ranks, predivide] = *analysis.averaging;
  return fmt::format(
      "Windows are those after averaging over {} ranks in {}, divided by {:g} before the sum and by {:g} "
      "after "
      "it, where all ranks have equal gradients.",
      ranks, to_string(analysis.format), predivide, static_cast<double>(ranks) / predivide);
}

std::string joint_window_words(const Analysis& analysis) {
  const auto fits_any = [](const AnalyzedTensor& tensor) { return tensor.report.fit.any_scale; };
  if (std::ranges::all_of(analysis.tensors, fits_any)) return "any";
  return window_words(analysis.advice.joint);
}

/// The verdict's lines, each wrapped under its own indent.
std::string advice_text(std::string_view verdict, std::size_t width) {
  std::string text;
  for (const std::string_view line : split(verdict, '\n')) text += wrapped(line, width, "    ") + "\n";
  return text;
}

/// Lines under the table, on its last column.
std::string window_text(const Analysis& analysis, std::size_t width) {
  std::string text;
  if (analysis.has_windows()) text = fmt::format("window of all: {}\n", joint_window_words(analysis));
  for (const std::string& line : {averaging_line(analysis), beyond_line(analysis)})
    if (!line.empty()) text += wrapped(line, width) + "\n";
  return text;
}

std::string tensors_text(const Analysis& analysis, const View& view, std::size_t width) {
  const std::string heading =
      fmt::format("Cast to {} without scaling. Flushed and subnormal: of the nonzero values.",
                  to_string(analysis.format));
  std::string text = analysis.is_quantized ? "" : advice_text(analysis.advice.verdict, width) + "\n";
  text += wrapped(heading, width) + "\n\n" + write_table(tensor_table(analysis, view), {.width = width});
  if (const std::string line = rest_line(view); !line.empty())
    text += wrapped("  " + line, width, "  ") + "\n";
  return text + "\n" + window_text(analysis, width);
}

}  // namespace

std::string analysis_text(const Analysis& analysis, const View& view, std::size_t width) {
  return blocks_text(analysis, view, width) + tensors_text(analysis, view, width) +
         not_read_text(analysis.read, width);
}

std::string verdict_text(const Analysis& analysis, std::size_t width) {
  const std::string verdict =
      analysis.is_quantized ? damage_lines(analysis, width) : advice_text(analysis.advice.verdict, width);
  return verdict + window_text(analysis, width);
}

std::string analysis_table(const Analysis& analysis, const View& view, TableFormat format) {
  return write_table(tensor_table(analysis, view), {format});
}

}  // namespace halfscope
