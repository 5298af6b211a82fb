// Damage first, tensor by tensor.
#include <halfscope/io/block_findings.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>

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

/// Layers that runtimes fuse into one product, by a part of their names.
constexpr std::array<std::array<std::string_view, 3>, 5> fused_layers{{{"gate_proj", "up_proj", ""},
                                                                       {"w1", "w3", ""},
                                                                       {"q_proj", "k_proj", "v_proj"},
                                                                       {"to_q", "to_k", "to_v"},
                                                                       {"wq", "wk", "wv"}}};

/// The place in a name of a part between dots; nothing where there is none.
std::optional<std::size_t> place_of_part(std::string_view name, std::string_view part) {
  for (std::size_t at = name.find(part); at != std::string_view::npos; at = name.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    const bool begins = at == 0 || name[at - 1] == '.' || name[at - 1] == ':';
    if (begins && (end == name.size() || name[end] == '.')) return at;
  }
  return std::nullopt;
}

/// Smallest and largest scale of the layers of one fused product.
struct FusedScales {
  std::string smaller{}, larger{};  ///< names
  double low = 0, high = 0;

  void add(const std::string& name, double factor) {
    if (smaller.empty() || factor < low) {
      low = factor;
      smaller = name;
    }
    if (larger.empty() || factor > high) {
      high = factor;
      larger = name;
    }
  }
  [[nodiscard]] double ratio() const { return high / low; }
};

/// Products of layers of one kind, by their names without the layer's part.
std::map<std::string, FusedScales> fused_products(std::span<const NamedFindings> tensors,
                                                  std::span<const std::string_view> layers) {
  std::map<std::string, FusedScales> products;
  for (const NamedFindings& tensor : tensors) {
    const auto& whole = tensor.findings->whole_scale;
    if (!whole || !whole->is_sound()) continue;
    for (const std::string_view layer : layers) {
      const auto at = layer.empty() ? std::nullopt : place_of_part(tensor.name, layer);
      if (!at) continue;
      const std::string product = tensor.name.substr(0, *at) + tensor.name.substr(*at + layer.size());
      products[product].add(tensor.name, double{whole->factor()});
    }
  }
  return products;
}

/// A sentence for each kind of layers that a runtime fuses and that have different scales of their tensors.
std::vector<std::string> fused_sentences(std::span<const NamedFindings> tensors) {
  std::vector<std::string> sentences;
  for (const auto& layers : fused_layers) {
    std::size_t different = 0;
    FusedScales worst;
    for (const auto& [product, scales] : fused_products(tensors, layers)) {
      if (scales.high == scales.low) continue;
      if (different++ == 0 || scales.ratio() > worst.ratio()) worst = scales;
    }
    if (different == 0) continue;
    sentences.push_back(fmt::format(
        "Quantize {} and {} again with one scale of the tensor for all that a runtime fuses{}: theirs differ "
        "by {:g}. A runtime that fuses them uses one (vLLM the first's, TensorRT-LLM the larger), and the "
        "other tensor is off by that factor.",
        worst.smaller, worst.larger,
        different > 1 ? fmt::format(", and {} more such layers", different - 1) : "", worst.ratio()));
  }
  return sentences;
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
