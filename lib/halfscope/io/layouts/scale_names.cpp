// A name is its module, its payload's leaf and a rest; the rest tells the role.
#include <halfscope/io/layouts/detail/scale_names.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <halfscope/io/detail/parse_error.hpp>

namespace halfscope {
namespace {

bool has_word(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

template <std::size_t count>
bool is_one_of(std::string_view text, const std::array<std::string_view, count>& words) {
  return std::ranges::find(words, text) != words.end();
}

/// Whether a part of the name, between dots and underscores, begins with one of the words.
template <std::size_t count>
bool has_part(std::string_view text, const std::array<std::string_view, count>& words) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool begins = at == 0 || text[at - 1] == '_' || text[at - 1] == '.';
    const auto is_it = [&](std::string_view word) { return text.substr(at).starts_with(word); };
    if (begins && std::ranges::any_of(words, is_it)) return true;
  }
  return false;
}

constexpr std::array<std::string_view, 3> activation_words{"input", "act", "output"};
constexpr std::array<std::string_view, 2> zero_words{"zero", "zp"};
constexpr std::array<std::string_view, 3> whole_words{"scale_2", "scale2", "global"};
/// Rests of names under which libraries multiply: DeepSeek's, ModelOpt's, compressed-tensors', ComfyUI's,
/// Mistral's.
constexpr std::array<std::string_view, 6> usual_rests{"scale",  "scale_inv", "scales",
                                                      "qscale", "scale_2",   "weight_scale"};
/// A module's one scale, which does not name its payload.
constexpr std::array<std::string_view, 6> lone_leaves{"scale",   "scales",        "scale_inv",
                                                      "descale", "dequant_scale", "weight_scale"};

/// "inv_scale", "scale_reciprocal", "quant_scale": whether `rest` may name what the codes are divided by.
bool may_be_inverse(std::string_view rest) {
  constexpr std::array<std::string_view, 4> words{"inv", "recip", "rcp", "div"};
  const bool quantizes = has_word(rest, "quant") && !has_word(rest, "dequant");
  return has_any_word(rest, words) || quantizes;
}

std::string_view leaf_of(std::string_view name) {
  return name.substr(module_of(name).size());
}

Companion companion(std::string name, std::string_view rest) {
  Companion result{.name = std::move(name)};
  if (has_part(rest, zero_words)) {
    result.role = CompanionRole::zero_point;
  } else if (!has_word(rest, "scal") || has_word(rest, "log")) {
    return result;
  } else if (has_part(rest, activation_words)) {
    result.role = CompanionRole::activation;
  } else if (has_any_word(rest, whole_words)) {
    result.role = CompanionRole::whole_scale;
    result.divides = rest == "global_scale";
    result.is_usual = result.divides || rest == "scale_2";
  } else {
    result.role = CompanionRole::scale;
    result.is_usual = is_one_of(rest, usual_rests);
    result.may_divide = !result.is_usual && may_be_inverse(rest);
  }
  return result;
}

/// Whether the module has no other payload.
bool is_alone(const FileParts& parts, const std::string& name) {
  const std::string module(module_of(name));
  const std::vector<std::string> names = parts.names_with(module);
  return names.size() < FileParts::most_names && std::ranges::none_of(names, [&](const std::string& other) {
           return other != name && module_of(other) == module && !is_named_scale(other) &&
                  parts.has_codes(other);
         });
}

/// `weight_scale`, `weight.scale`: the payload's name comes first.
void add_named_after(const FileParts& parts, const std::string& name, std::vector<Companion>& companions) {
  for (const char between : {'_', '.'}) {
    for (const std::string& other : parts.names_with(name + between)) {
      if (other.size() > name.size() + 1 && !parts.is_taken(other))
        companions.push_back(companion(other, std::string_view(other).substr(name.size() + 1)));
    }
  }
}

/// `scale_weight`, `qscale_weight`: the payload's leaf comes last; `scale`: it is the module's only one.
void add_named_before(const FileParts& parts, const std::string& name, std::vector<Companion>& companions) {
  const std::string module(module_of(name)), ending = "_" + std::string(leaf_of(name));
  const bool has_scale = std::ranges::any_of(
      companions, [](const Companion& companion) { return companion.role == CompanionRole::scale; });
  for (const char* const begin : {"scal", "qscal", "descal", "dequant_scal", "weight_scal", "input_scal"}) {
    for (const std::string& other : parts.names_with(module + begin)) {
      const std::string_view leaf = std::string_view(other).substr(module.size());
      const bool is_known = std::ranges::any_of(
          companions, [&](const Companion& companion) { return companion.name == other; });
      if (is_known || other == name || has_word(leaf, ".") || parts.is_taken(other)) continue;
      if (leaf.size() > ending.size() && leaf.ends_with(ending))
        companions.push_back(companion(other, leaf.substr(0, leaf.size() - ending.size())));
      else if (has_part(leaf, activation_words) ||
               (!has_scale && is_one_of(leaf, lone_leaves) && is_alone(parts, name)))
        companions.push_back(companion(other, leaf));
    }
  }
}

}  // namespace

std::vector<Companion> companions_of(const FileParts& parts, const std::string& name) {
  std::vector<Companion> companions;
  add_named_after(parts, name, companions);
  add_named_before(parts, name, companions);
  return companions;
}

CompanionsByRole companions_by_role(const FileParts& parts, const std::string& name) {
  CompanionsByRole roles;
  for (Companion& companion : companions_of(parts, name)) {
    switch (companion.role) {
      case CompanionRole::scale:
        roles.scales.push_back(std::move(companion));
        break;
      case CompanionRole::whole_scale:
        roles.wholes.push_back(std::move(companion));
        break;
      case CompanionRole::zero_point:
        roles.zeros.push_back(std::move(companion));
        break;
      case CompanionRole::activation:
        roles.activations.push_back(std::move(companion.name));
        break;
      case CompanionRole::unknown:
        roles.unknown.push_back(std::move(companion));
    }
  }
  return roles;
}

std::string CompanionsByRole::why_more_than_factors(const FileParts& parts) const {
  constexpr std::array<std::string_view, 4> added{"offset", "min", "shift", "beta"};
  for (const Companion& other : unknown)
    if (parts.find_numbers(other.name) && has_any_word(leaf_of(other.name), added))
      return fmt::format("{} may be added to its products, which no layout that is known does",
                         excerpt(other.name));
  return "";
}

std::string why_no_factor(const FileParts& parts, const Companion& scale, const std::string& name) {
  constexpr std::array<std::string_view, 5> orders{"interleav", "swizzl", "shuffl", "tiled", "permut"};
  if (has_any_word(leaf_of(scale.name), orders))
    return fmt::format(
        "its scales {} may lie in another order than their blocks; save them in that of the rows as {}",
        excerpt(scale.name), excerpt(name + "_scale"));
  const auto source = parts.find(scale.name, "F8_E8M0");
  if (scale.is_usual || !source) return "";
  const float largest = parts.largest_of(*source);
  if (largest <= 1 && !scale.may_divide) return "";
  return fmt::format("its scale {}, up to {:g}, may multiply or divide; rename it {} if it multiplies",
                     excerpt(scale.name), largest, excerpt(name + "_scale"));
}

void CompanionsByRole::take_all(FileParts& parts) const {
  for (const auto* const side : {&scales, &wholes, &zeros, &unknown})
    for (const Companion& companion : *side) parts.take(companion.name);
  for (const std::string& activation : activations) parts.take(activation);
}

bool is_named_scale(std::string_view name) {
  return has_word(leaf_of(name), "scal");
}

std::string_view module_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot + 1);
}

}  // namespace halfscope
