// Damage first, tensor by tensor.
#include <halfscope/io/block_findings.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include <halfscope/core/escape.hpp>

namespace halfscope {
namespace {

/// Damage by the scale of the whole tensor; empty where there is none.
std::string whole_scale_damage(const NamedFindings& tensor) {
  const auto& whole = tensor.findings->whole_scale;
  if (!whole || whole->is_sound()) return "";
  const bool is_zero = whole->value == 0;
  const std::string cause = is_zero            ? (whole->divides ? "it divides" : "every value becomes 0")
                            : whole->value < 0 ? "every value changes its sign"
                                               : "no value is a number";
  return fmt::format(
      "Quantize {} again, with a scale of the tensor that is positive and finite: {} is {:g}, and {}.",
      tensor.name, escaped(whole->name), whole->value, cause);
}

/// Every damage of a tensor, a sentence each: what to do, and why.
std::vector<std::string> damage_of(const NamedFindings& tensor) {
  std::vector<std::string> sentences;
  const BlockFindings& blocks = *tensor.findings;
  if (std::string whole = whole_scale_damage(tensor); !whole.empty()) sentences.push_back(std::move(whole));
  for (const BlockKind& kind : block_kinds) {
    const BlockList& list = blocks.*kind.list;
    if (list.count == 0 || kind.damage.empty()) continue;
    if (kind.list == &BlockFindings::saturated_scales && blocks.whole_scale) continue;
    sentences.push_back(fmt::format("Quantize {} again, {}: {} of {} {} (index {}).", tensor.name,
                                    kind.remedy, list.count, blocks.blocks, kind.damage,
                                    first_indices(list)));
  }
  if (blocks.clipped && blocks.clipped->count > 0) {
    sentences.push_back(fmt::format(
        "Quantize {} again, with a larger scale: {} of {} blocks clip values of the original (index {}).",
        tensor.name, blocks.clipped->count, blocks.blocks, first_indices(*blocks.clipped)));
  }
  return sentences;
}

/// Verdict on tensors without damage.
std::string sound_words(std::span<const NamedFindings> tensors) {
  const std::size_t count = tensors.size();
  std::string text =
      fmt::format("No block of {} quantized tensor{} is damaged", count, count == 1 ? "" : "s");
  const bool compared = std::ranges::all_of(
      tensors, [](const NamedFindings& tensor) { return tensor.findings->clipped.has_value(); });
  if (compared) return text + ", and none clips.";
  std::int64_t blocks = 0, at_largest = 0;
  for (const NamedFindings& tensor : tensors) {
    if (!tensor.findings->has_codes) continue;
    blocks += tensor.findings->blocks;
    at_largest += tensor.findings->at_largest.count;
  }
  if (at_largest == 0) return text + ".";
  return fmt::format(
      "{}. The codes do not tell whether the {} of {} blocks that reach the largest code clip; --against the "
      "original does.",
      text, at_largest, blocks);
}

}  // namespace

std::vector<std::string> quantized_verdict(std::span<const NamedFindings> tensors) {
  std::vector<std::string> sentences;
  for (const NamedFindings& tensor : tensors)
    std::ranges::move(damage_of(tensor), std::back_inserter(sentences));
  if (sentences.empty()) sentences.push_back(sound_words(tensors));
  return sentences;
}

std::string first_indices(const BlockList& list) {
  constexpr std::size_t shown = 8;
  const auto first = std::span(list.indices).first(std::min(shown, list.indices.size()));
  return fmt::format("{}{}", fmt::join(first, ", "), list.count > std::ssize(first) ? ", ..." : "");
}

}  // namespace halfscope
