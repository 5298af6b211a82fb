// The verdict on quantized tensors, and a table, lines and JSON of the kinds of their blocks.
#include "experiments/cli/analyze/analyze_blocks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include <halfscope/core/escape.hpp>
#include <halfscope/io/block_findings.hpp>
#include <halfscope/io/json/json_lines.hpp>

#include "experiments/table/table.hpp"

namespace halfscope {
namespace {

std::vector<const AnalyzedTensor*> with_blocks(const Analysis& analysis) {
  std::vector<const AnalyzedTensor*> tensors;
  for (const AnalyzedTensor& tensor : analysis.tensors)
    if (tensor.blocks) tensors.push_back(&tensor);
  return tensors;
}

/// The verdict, a sentence each.
std::vector<std::string> verdict_of_blocks(const Analysis& analysis) {
  std::vector<NamedFindings> found;
  for (const AnalyzedTensor* tensor : with_blocks(analysis))
    found.push_back({tensor->report.name, &*tensor->blocks});
  std::vector<std::string> sentences = quantized_verdict(found, analysis.read.unread);
  if (sentences.empty())
    sentences.emplace_back(
        "Leave out --group to see the blocks of quantized tensors: sums of several tensors have none.");
  return sentences;
}

/// A count of a kind; "-" where the blocks have none.
Cell kind_cell(const BlockFindings& blocks, const BlockKind& kind) {
  if (kind.is_of_codes && !blocks.has_codes) return Cell{"-"};
  return count_cell((blocks.*kind.list).count);
}

/// Kinds that have a column.
std::vector<BlockKind> shown_kinds(const std::vector<const AnalyzedTensor*>& tensors) {
  std::vector<BlockKind> kinds;
  for (const BlockKind& kind : block_kinds) {
    const auto has_one = [&](const AnalyzedTensor* tensor) {
      return ((*tensor->blocks).*kind.list).count > 0;
    };
    if (!kind.is_rare || std::ranges::any_of(tensors, has_one)) kinds.push_back(kind);
  }
  return kinds;
}

Table blocks_table(const std::vector<const AnalyzedTensor*>& tensors) {
  const std::vector<BlockKind> kinds = shown_kinds(tensors);
  Table table{{{"tensor", "tensor"}, {"blocks", "blocks"}}, {}};
  for (const BlockKind& kind : kinds) table.columns.push_back({kind.key, kind.heading, kind.drop});
  const bool clipped = std::ranges::any_of(
      tensors, [](const AnalyzedTensor* tensor) { return tensor->blocks->clipped.has_value(); });
  if (clipped) table.columns.push_back({"clipped", "clipped"});
  for (const AnalyzedTensor* tensor : tensors) {
    const BlockFindings& blocks = *tensor->blocks;
    std::vector<Cell> row{tensor->report.name, count_cell(blocks.blocks)};
    for (const BlockKind& kind : kinds) row.push_back(kind_cell(blocks, kind));
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
    if (kind.damage.empty() && list.count > 0)
      text += fmt::format("; {}: {}", kind.heading, first_indices(list));
  }
  const BlockFindings& blocks = *tensor.blocks;
  if (blocks.flushed.value_or(0) > 0)
    text +=
        fmt::format("; {} of the original's nonzero values are 0",
                    share_text(static_cast<double>(*blocks.flushed) / static_cast<double>(blocks.nonzero)));
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
                       [](const AnalyzedTensor* tensor) { return tensor->blocks != nullptr; });
  std::string text = damage_lines(analysis, width) + "\n";
  if (shown.empty()) return text;
  text += write_table(blocks_table(shown), {.width = width});
  for (const AnalyzedTensor* tensor : shown) text += layout_line(*tensor, width);
  return text + "\n";
}

Json blocks_json(const BlockFindings& found) {
  Json json{{"layout", found.layout}, {"blocks", found.blocks}};
  for (const BlockKind& kind : block_kinds)
    json[kind.key] = kind.is_of_codes && !found.has_codes ? Json() : list_json(found.*kind.list);
  if (found.flushed) json["flushed_of_original"] = {{"count", *found.flushed}, {"nonzero", found.nonzero}};
  if (found.growth) json["growth"] = *found.growth;
  if (found.whole_scale) json["whole_scale"] = shortest(found.whole_scale->value);
  if (found.clipped) json["clipped"] = list_json(*found.clipped);
  return json;
}

}  // namespace halfscope
