// One table of the kinds of blocks; text and JSON are made from it.
#include "experiments/cli/analyze/analyze_blocks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

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

constexpr std::size_t shown_indices = 8;

std::string indices(const BlockList& list) {
  const auto first = std::span(list.indices).first(std::min(shown_indices, list.indices.size()));
  const bool more = list.count > std::ssize(first);
  return fmt::format("{}{}", fmt::join(first, ", "), more ? ", ..." : "");
}

/// Every damage of a tensor, a sentence each: what to do, and why.
std::vector<std::string> damage_of(const AnalyzedTensor& tensor) {
  std::vector<std::string> sentences;
  const BlockFindings& blocks = tensor.blocks.value();
  for (const BlockKind& kind : block_kinds) {
    const BlockList& list = blocks.*kind.list;
    if (list.count == 0 || kind.damage.empty()) continue;
    if (kind.list == &BlockFindings::saturated_scales && blocks.has_tensor_scale) continue;
    sentences.push_back(fmt::format("Quantize {} again, {}: {} of {} {} (index {}).", tensor.report.name,
                                    kind.remedy, list.count, blocks.blocks, kind.damage, indices(list)));
  }
  if (blocks.clipped && blocks.clipped->count > 0) {
    sentences.push_back(fmt::format(
        "Quantize {} again, with a larger scale: {} of {} blocks clip values of the original (index {}).",
        tensor.report.name, blocks.clipped->count, blocks.blocks, indices(*blocks.clipped)));
  }
  return sentences;
}

/// Verdict on tensors without damage.
std::string sound_words(const std::vector<const AnalyzedTensor*>& tensors) {
  const std::size_t count = tensors.size();
  std::string text =
      fmt::format("No block of {} quantized tensor{} is damaged", count, count == 1 ? "" : "s");
  const bool compared = std::ranges::all_of(
      tensors, [](const AnalyzedTensor* tensor) { return tensor->blocks->clipped.has_value(); });
  if (compared) return text + ", and none clips.";
  std::int64_t blocks = 0, at_largest = 0;
  for (const AnalyzedTensor* tensor : tensors) {
    blocks += tensor->blocks->blocks;
    at_largest += tensor->blocks->at_largest.count;
  }
  if (at_largest == 0) return text + ".";
  return fmt::format(
      "{}. The codes do not tell whether the {} of {} blocks that reach the largest code clip; --against the "
      "original does.",
      text, at_largest, blocks);
}

std::vector<const AnalyzedTensor*> with_blocks(const Analysis& analysis) {
  std::vector<const AnalyzedTensor*> tensors;
  for (const AnalyzedTensor& tensor : analysis.tensors)
    if (tensor.blocks) tensors.push_back(&tensor);
  return tensors;
}

/// The verdict, a sentence each.
std::vector<std::string> verdict_of_blocks(const Analysis& analysis) {
  const std::vector<const AnalyzedTensor*> tensors = with_blocks(analysis);
  if (tensors.empty())
    return {"Leave out --group to see the blocks of quantized tensors: sums of several tensors have none."};
  std::vector<std::string> sentences;
  for (const AnalyzedTensor* tensor : tensors)
    std::ranges::move(damage_of(*tensor), std::back_inserter(sentences));
  if (sentences.empty()) sentences.push_back(sound_words(tensors));
  return sentences;
}

Table blocks_table(const std::vector<const AnalyzedTensor*>& tensors) {
  Table table{{{"tensor", "tensor"}, {"blocks", "blocks"}}, {}};
  for (const BlockKind& kind : block_kinds) table.columns.push_back({kind.key, kind.heading, kind.drop});
  const bool clipped = std::ranges::any_of(
      tensors, [](const AnalyzedTensor* tensor) { return tensor->blocks->clipped.has_value(); });
  if (clipped) table.columns.push_back({"clipped", "clipped"});
  for (const AnalyzedTensor* tensor : tensors) {
    const BlockFindings& blocks = *tensor->blocks;
    std::vector<Cell> row{tensor->report.name, count_cell(blocks.blocks)};
    for (const BlockKind& kind : block_kinds) row.push_back(count_cell((blocks.*kind.list).count));
    if (clipped) row.push_back(blocks.clipped ? count_cell(blocks.clipped->count) : Cell{"-"});
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// The layout, and the first indices of blocks that are no damage.
std::string layout_line(const AnalyzedTensor& tensor, std::size_t width) {
  std::string text = fmt::format("  {}: {}", tensor.report.name, tensor.blocks->layout);
  for (const BlockKind& kind : block_kinds) {
    const BlockList& list = (*tensor.blocks).*kind.list;
    if (kind.damage.empty() && list.count > 0) text += fmt::format("; {}: {}", kind.heading, indices(list));
  }
  return wrapped(text, width, "    ") + "\n";
}

Json list_json(const BlockList& list) {
  return {{"count", list.count}, {"indices", list.indices}, {"left_out", list.left_out()}};
}

}  // namespace

std::string blocks_verdict(const Analysis& analysis) {
  return fmt::format("{}", fmt::join(verdict_of_blocks(analysis), " "));
}

std::string damage_lines(const Analysis& analysis, std::size_t width) {
  std::string text;
  for (const std::string& sentence : verdict_of_blocks(analysis))
    text += wrapped(sentence, width, "  ") + "\n";
  return text;
}

std::string blocks_text(const Analysis& analysis, const View& view, std::size_t width) {
  if (!analysis.is_quantized) return "";
  std::vector<const AnalyzedTensor*> shown;
  std::ranges::copy_if(view.tensors, std::back_inserter(shown),
                       [](const AnalyzedTensor* tensor) { return tensor->blocks.has_value(); });
  std::string text = damage_lines(analysis, width) + "\n";
  if (shown.empty()) return text;
  text += write_table(blocks_table(shown), {.width = width});
  for (const AnalyzedTensor* tensor : shown) text += layout_line(*tensor, width);
  return text + "\n";
}

Json blocks_json(const BlockFindings& found) {
  Json json{{"layout", found.layout}, {"blocks", found.blocks}};
  for (const BlockKind& kind : block_kinds) json[kind.key] = list_json(found.*kind.list);
  if (found.clipped) json["clipped"] = list_json(*found.clipped);
  return json;
}

}  // namespace halfscope
