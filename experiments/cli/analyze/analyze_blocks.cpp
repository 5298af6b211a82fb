// One table of the kinds of blocks; text and JSON are made from it.
#include "experiments/cli/analyze/analyze_blocks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include <halfscope/core/escape.hpp>

#include "experiments/table/table.hpp"

namespace halfscope {
namespace {

struct BlockKind {
  const char *key, *heading;
  BlockList BlockFindings::*list;
  std::string_view damage, remedy;  ///< empty where nothing is lost
  int drop = 0;                     ///< see Column::left_out
};
constexpr std::array block_kinds{
    BlockKind{"nan_codes", "NaN codes", &BlockFindings::nan_codes,
              "blocks have a code that is NaN or infinite", "after a look at the original"},
    BlockKind{"nan_scales", "NaN scales", &BlockFindings::nan_scales, "scales are NaN or infinite",
              "with a finite scale for blocks of zeros"},
    BlockKind{"zero_scales", "zero scales", &BlockFindings::zero_scales,
              "scales are 0 over codes that are not", "with scales that do not underflow"},
    BlockKind{"saturated_scales", "saturated", &BlockFindings::saturated_scales,
              "scales are the largest of their type", "with scales that do not saturate"},
    BlockKind{"zero_blocks", "zero blocks", &BlockFindings::zero_blocks, "", "", 2},
    BlockKind{"at_largest", "at largest code", &BlockFindings::at_largest, "", "", 3},
    BlockKind{"low", "below half", &BlockFindings::low, "", "", 1},
};

std::string indices(const BlockList& list) {
  return fmt::format("{}{}", fmt::join(list.first, ", "),
                     static_cast<std::size_t>(list.count) > list.first.size() ? ", ..." : "");
}

/// Every damage of a tensor, a line each.
std::string damage_text(const AnalyzedTensor& tensor, std::size_t width) {
  std::string text;
  for (const BlockKind& kind : block_kinds) {
    const BlockList& list = tensor.blocks.value().*kind.list;
    if (list.count == 0 || kind.damage.empty()) continue;
    if (kind.list == &BlockFindings::saturated_scales && tensor.blocks->has_tensor_scale) continue;
    text += wrapped(fmt::format("Quantize {} again, {}: {} of {} {} (index {}).", tensor.report.name,
                                kind.remedy, list.count, tensor.blocks->blocks, kind.damage, indices(list)),
                    width, "  ") +
            "\n";
  }
  return text;
}

Table blocks_table(const std::vector<const AnalyzedTensor*>& tensors) {
  Table table{{{"tensor", "tensor"}, {"blocks", "blocks"}}, {}};
  for (const BlockKind& kind : block_kinds) table.columns.push_back({kind.key, kind.heading, kind.drop});
  for (const AnalyzedTensor* tensor : tensors) {
    std::vector<Cell> row{tensor->report.name, count_cell(tensor->blocks->blocks)};
    for (const BlockKind& kind : block_kinds) row.push_back(count_cell(((*tensor->blocks).*kind.list).count));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::string blocks_text(const Analysis& analysis, const View& view, std::size_t width) {
  std::string text;
  std::size_t quantized = 0;
  for (const AnalyzedTensor& tensor : analysis.tensors) {
    if (!tensor.blocks) continue;
    ++quantized;
    text += damage_text(tensor, width);
  }
  if (quantized == 0) return "";
  if (text.empty())
    text =
        fmt::format("No block of {} quantized tensor{} is damaged.\n", quantized, quantized == 1 ? "" : "s");
  std::vector<const AnalyzedTensor*> shown;
  std::ranges::copy_if(view.tensors, std::back_inserter(shown),
                       [](const AnalyzedTensor* tensor) { return tensor->blocks.has_value(); });
  text += "\n" + write_table(blocks_table(shown), {.width = width});
  for (const AnalyzedTensor* tensor : shown)
    text +=
        wrapped(fmt::format("  {}: {}", tensor->report.name, tensor->blocks->layout), width, "    ") + "\n";
  return text + "\n";
}

Json blocks_json(const BlockFindings& found) {
  Json json{{"layout", found.layout}, {"blocks", found.blocks}};
  for (const BlockKind& kind : block_kinds) {
    const BlockList& list = found.*kind.list;
    json[kind.key] = {{"count", list.count}, {"first", list.first}};
  }
  return json;
}

}  // namespace halfscope
