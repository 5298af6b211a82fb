// Tables of errors and counts below the line of the cheapest format.
#include "experiments/cli/formats/formats_present.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <halfscope/stats/what_if.hpp>

#include "experiments/cli/tensors/files_read.hpp"

namespace halfscope {
namespace {

constexpr std::string_view legend =
    "  Bits per element with scales. Error: signal over noise in dB, of the worst tensor and of the worst "
    "row "
    "of any. "
    "Flushed: nonzero values that become 0. At risk: blocks with an element that overflows, with inf or NaN, "
    "or "
    "whose scale is 0 or NaN.";

Cell decibel_cell(double error) {
  const bool is_number = error != 0 && std::isfinite(error);
  return {decibel_text(error), is_number ? Cell::Value{decibels(error)} : Cell::Value{}};
}

Cell flushed_cell(const BlockCounts& counts) {
  const double share = flushed_share(counts);
  return {share_text(share), share};
}

Cell risk_cell(const BlockCounts& counts) {
  const double share = counts.blocks == 0
                           ? 0
                           : static_cast<double>(counts.blocks_at_risk) / static_cast<double>(counts.blocks);
  return {share_text(share), share};
}

Table sums_table(const FormatComparison& comparison) {
  Table table{{{"format", "format"},
               {"bits", "bits"},
               {"worst_db", "worst tensor"},
               {"worst_row_db", "worst row"},
               {"flushed", "flushed"},
               {"clipped", "clipped", 2},
               {"blocks", "blocks", 1},
               {"blocks_at_risk", "at risk"}},
              {}};
  for (const FormatSum& sum : comparison.formats) {
    table.rows.push_back(
        {sum.name, Cell{fmt::format("{:.2f}", sum.bits_per_element()), sum.bits_per_element()},
         decibel_cell(sum.worst_error), decibel_cell(sum.worst_row_error), flushed_cell(sum.counts),
         count_cell(sum.counts.clipped), count_cell(sum.counts.blocks), risk_cell(sum.counts)});
  }
  return table;
}

Table tensors_table(const FormatComparison& comparison, std::size_t top) {
  Table table{{{"tensor", "tensor"},
               {"format", "format"},
               {"error_db", "error dB"},
               {"median_row_db", "median row"},
               {"worst_row_db", "worst row", 3},
               {"flushed", "flushed"},
               {"clipped", "clipped", 2},
               {"blocks", "blocks", 1},
               {"blocks_at_risk", "at risk"}},
              {}};
  for (const std::size_t index : worst_tensors(comparison, top)) {
    const ComparedTensor& tensor = comparison.tensors[index];
    for (std::size_t i = 0; i < tensor.formats.size(); ++i) {
      const BlockCounts& counts = tensor.formats[i].counts;
      const RowErrors& rows = tensor.formats[i].rows;
      table.rows.push_back({tensor.name, comparison.formats[i].name, decibel_cell(relative_error(counts)),
                            decibel_cell(rows.median), decibel_cell(rows.worst), flushed_cell(counts),
                            count_cell(counts.clipped), count_cell(counts.blocks), risk_cell(counts)});
    }
  }
  return table;
}

/// Formats that fill up the same tensors share a line.
std::string padding_text(const FormatComparison& comparison, std::size_t width) {
  std::string text;
  for (std::size_t i = 0; i < comparison.formats.size(); ++i) {
    const auto& padded = comparison.formats[i].padded;
    const auto same = [&](const FormatSum& other) { return other.padded == padded; };
    const auto first = std::ranges::find_if(comparison.formats, same);
    if (padded.empty() || first != comparison.formats.begin() + static_cast<std::ptrdiff_t>(i)) continue;
    std::string names;
    for (const FormatSum& other : comparison.formats) {
      if (same(other)) names += (names.empty() ? "" : ", ") + other.name;
    }
    const ComparedTensor& tensor = comparison.tensors[padded.front()];
    const std::string more = padded.size() > 1 ? fmt::format(" and {} more", padded.size() - 1) : "";
    text += wrapped(fmt::format("filled up with zeros for {}: {} ({} x {}){}", names, tensor.name,
                                tensor.matrix.rows, tensor.matrix.columns, more),
                    width, "  ") +
            "\n";
  }
  return text;
}

/// How formats without blocks were scaled; empty where there are none.
std::string scale_text(const FormatsFound& found, std::size_t width) {
  std::string scaled;
  for (std::size_t i = 0; i < found.compared.formats.size(); ++i) {
    if (found.tensors.front().formats[i].scale_log2)
      scaled += (scaled.empty() ? "" : ", ") + to_string(found.compared.formats[i]);
  }
  if (scaled.empty()) return "";
  return wrapped(fmt::format("{}: one power of two for each tensor, the least under which nothing overflows",
                             scaled),
                 width, "  ") +
         "\n";
}

}  // namespace

std::string formats_text(const FormatsFound& found, std::size_t top, std::size_t width) {
  const FormatComparison comparison = compare_formats(found);
  const std::size_t shown = std::min(top, found.tensors.size());
  std::string text = wrapped(cheapest_line(comparison), width, "  ") + "\n\n";
  text += write_table(sums_table(comparison), {.width = width});
  text += wrapped(legend, width, "  ") + "\n\n";
  text += write_table(tensors_table(comparison, top), {.width = width});
  if (shown < found.tensors.size())
    text += fmt::format("  the worst {} of {} tensors; --top N shows N, --top all shows all.\n", shown,
                        found.tensors.size());
  return text + scale_text(found, width) + padding_text(comparison, width) + not_read_text(found.read, width);
}

std::string formats_table(const FormatsFound& found, std::size_t top, TableFormat format) {
  return write_table(tensors_table(compare_formats(found), top), {format});
}

}  // namespace halfscope
