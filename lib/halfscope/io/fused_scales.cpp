// Finds the layers of one product by their names, and compares the scales of their tensors.
#include <halfscope/io/detail/fused_scales.hpp>

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

namespace halfscope {
namespace {

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

/// A scale of a whole tensor; 0 where it has none that is sound.
using ScaleOfTensor = float (*)(const BlockFindings& findings);

float whole_scale_of(const BlockFindings& findings) {
  const auto& whole = findings.whole_scale;
  return whole && whole->is_sound() ? whole->factor() : 0;
}

float single_scale_of(const BlockFindings& findings) {
  const float scale = findings.single_scale.value_or(0);
  return scale > 0 && std::isfinite(scale) ? scale : 0;
}

/// Products of layers of one kind, by their names without the layer's part.
std::map<std::string, FusedScales> fused_products(std::span<const NamedFindings> tensors,
                                                  std::span<const std::string_view> layers,
                                                  ScaleOfTensor scale_of) {
  std::map<std::string, FusedScales> products;
  for (const NamedFindings& tensor : tensors) {
    const float scale = scale_of(*tensor.findings);
    if (scale == 0) continue;
    for (const std::string_view layer : layers) {
      const auto at = layer.empty() ? std::nullopt : place_of_part(tensor.name, layer);
      if (!at) continue;
      const std::string product = tensor.name.substr(0, *at) + tensor.name.substr(*at + layer.size());
      products[product].add(tensor.name, double{scale});
    }
  }
  return products;
}

/// The products of one kind whose layers have different scales of their tensors.
struct DifferentScales {
  std::size_t count = 0;
  FusedScales worst{};

  [[nodiscard]] std::string others() const {
    return count > 1 ? fmt::format(", and {} more such layers", count - 1) : "";
  }
};

std::vector<DifferentScales> different_scales(std::span<const NamedFindings> tensors,
                                              ScaleOfTensor scale_of) {
  std::vector<DifferentScales> all;
  for (const auto& layers : fused_layers) {
    DifferentScales found;
    for (const auto& [product, scales] : fused_products(tensors, layers, scale_of)) {
      if (scales.high == scales.low) continue;
      if (found.count++ == 0 || scales.ratio() > found.worst.ratio()) found.worst = scales;
    }
    if (found.count > 0) all.push_back(std::move(found));
  }
  return all;
}

}  // namespace

std::vector<std::string> fused_sentences(std::span<const NamedFindings> tensors) {
  std::vector<std::string> sentences;
  for (const DifferentScales& found : different_scales(tensors, whole_scale_of))
    sentences.push_back(fmt::format(
        "Quantize {} and {} again with one scale of the tensor for all that a runtime fuses{}: theirs differ "
        "by {:g}. A runtime that fuses them uses one (vLLM the first's, TensorRT-LLM the larger), and the "
        "other tensor is off by that factor.",
        found.worst.smaller, found.worst.larger, found.others(), found.worst.ratio()));
  return sentences;
}

std::vector<std::string> single_scale_notes(std::span<const NamedFindings> tensors) {
  std::vector<std::string> notes;
  for (const DifferentScales& found : different_scales(tensors, single_scale_of))
    notes.push_back(
        fmt::format("The scales of {} and {} differ by {:g}{}: a runtime that fuses them uses the larger and "
                    "quantizes the other again, a second rounding that one scale for both would spare.",
                    found.worst.smaller, found.worst.larger, found.worst.ratio(), found.others()));
  return notes;
}

}  // namespace halfscope
