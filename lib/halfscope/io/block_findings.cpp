// Damage first, tensor by tensor.
#include <halfscope/io/block_findings.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include <halfscope/core/escape.hpp>
#include <halfscope/io/detail/fused_scales.hpp>

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

constexpr double growth_beyond_rounding = 0.05;

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
  if (blocks.growth && std::abs(*blocks.growth - 1) > growth_beyond_rounding)
    sentences.push_back(fmt::format(
        "Quantize {} again: its median block is {:.2f} times the original's, as after a change of scales "
        "without their codes.",
        tensor.name, *blocks.growth));
  const auto& relations = blocks.relations;
  if (!blocks.growth && relations && relations->are_powers && relations->all_reach_largest &&
      !relations->all_ones)
    sentences.push_back(fmt::format(
        "Compare {} with --against the original: its scales are powers of two and every block reaches the "
        "largest code, as after scales were rounded up without their codes; blocks are then up to twice too "
        "large.",
        tensor.name));
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

/// Scales that are all 1, in as many tensors as there are.
std::string ones_note(std::span<const NamedFindings> tensors) {
  std::size_t count = 0;
  const NamedFindings* largest = nullptr;
  for (const NamedFindings& tensor : tensors) {
    if (!tensor.findings->relations || !tensor.findings->relations->all_ones) continue;
    ++count;
    if (largest == nullptr ||
        tensor.findings->relations->largest_code > largest->findings->relations->largest_code)
      largest = &tensor;
  }
  if (largest == nullptr) return "";
  const std::string others = count > 1 ? fmt::format(" and of {} more tensors", count - 1) : "";
  return fmt::format(
      "Every scale of {}{} is 1, and its largest magnitude {:g}: the scales were lost if the original's is "
      "another.",
      largest->name, others, largest->findings->relations->largest_code);
}

/// FP32 scales of blocks that a runtime with powers of two cannot take.
std::string powers_note(std::span<const NamedFindings> tensors) {
  std::size_t count = 0;
  const NamedFindings* widest = nullptr;
  for (const NamedFindings& tensor : tensors) {
    const auto& relations = tensor.findings->relations;
    if (!relations || relations->largest_step == 1 || tensor.findings->blocks < 2) continue;
    ++count;
    if (widest == nullptr || relations->largest_step > widest->findings->relations->largest_step)
      widest = &tensor;
  }
  if (widest == nullptr) return "";
  return fmt::format(
      "{} tensor{} scales of blocks that are no powers of two: a runtime with UE8M0 scales (DeepGEMM on "
      "Blackwell) must quantize again; scales rounded up alone would make blocks up to {:.1f} % too large "
      "({}).",
      count, count == 1 ? " has" : "s have", 100 * (widest->findings->relations->largest_step - 1),
      widest->name);
}

}  // namespace

std::vector<std::string> quantized_verdict(std::span<const NamedFindings> tensors, std::size_t unread) {
  std::vector<std::string> sentences;
  for (const NamedFindings& tensor : tensors)
    std::ranges::move(damage_of(tensor), std::back_inserter(sentences));
  std::ranges::move(fused_sentences(tensors), std::back_inserter(sentences));
  if (sentences.empty() && !tensors.empty()) sentences.push_back(sound_words(tensors));
  for (std::string note : {ones_note(tensors), powers_note(tensors)})
    if (!note.empty()) sentences.push_back(std::move(note));
  std::ranges::move(single_scale_notes(tensors), std::back_inserter(sentences));
  if (unread > 0)
    sentences.push_back(
        fmt::format("{} quantized tensor{} not read: no scale of a loss belongs to such a file.", unread,
                    unread == 1 ? " is" : "s are"));
  return sentences;
}

std::string first_indices(const BlockList& list) {
  constexpr std::size_t shown = 8;
  const auto first = std::span(list.indices).first(std::min(shown, list.indices.size()));
  return fmt::format("{}{}", fmt::join(first, ", "), list.count > std::ssize(first) ? ", ..." : "");
}

}  // namespace halfscope
