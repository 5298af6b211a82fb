// Which tensors of a file are scales of a payload: by stem and by the word in the rest of the name.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/io/layouts/detail/file_parts.hpp>

namespace halfscope {

enum class CompanionRole : std::uint8_t {
  scale,        ///< multiplies blocks, rows or the whole tensor
  whole_scale,  ///< holds for the whole tensor, besides the scales of its blocks
  activation,   ///< a scale of the layer's input or output
  zero_point,
  unknown,  ///< a name that tells nothing
};

/// A tensor that stands beside a payload and belongs to it by its name.
struct Companion {
  std::string name;
  CompanionRole role = CompanionRole::unknown;
  bool is_usual = false;    ///< a name under which scales are known to multiply
  bool divides = false;     ///< a name under which a scale is known to divide
  bool may_divide = false;  ///< a name that speaks of an inverse, or of what quantizes
};

/// The companions of payload `name`, whatever they are called: `weight_scale`, `weight.scale`,
/// `scale_weight`, `qscale_weight`, and `scale` where the module has one payload.
[[nodiscard]] std::vector<Companion> companions_of(const FileParts& parts, const std::string& name);

/// Companions of a payload by what they do.
struct CompanionsByRole {
  std::vector<Companion> scales, wholes, zeros, unknown;
  std::vector<std::string> activations;

  /// Why a companion may do something else than multiply; empty where none may.
  [[nodiscard]] std::string why_more_than_factors(const FileParts& parts) const;
  /// Takes all of them from the file.
  void take_all(FileParts& parts) const;
};
[[nodiscard]] CompanionsByRole companions_by_role(const FileParts& parts, const std::string& name);

template <std::size_t count>
[[nodiscard]] bool has_any_word(std::string_view text, const std::array<std::string_view, count>& words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

/// Why a scale of payload `name` may divide as well as multiply, or lie in another order; empty where its
/// name, or a size of a factor, says that it multiplies.
[[nodiscard]] std::string why_no_factor(const FileParts& parts, const Companion& scale,
                                        const std::string& name);

/// Whether the last part of a name has the word.
[[nodiscard]] bool is_named_scale(std::string_view name);
/// The module that a tensor is of: the name up to its last dot, and it.
[[nodiscard]] std::string_view module_of(std::string_view name);

}  // namespace halfscope
