// Matrices of integers or of FP8 beside numbers that may be their scales, in a layout that is not known.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <halfscope/core/escape.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/layouts/detail/layouts.hpp>
#include <halfscope/io/layouts/detail/scale_names.hpp>

namespace halfscope {
namespace {

constexpr std::array<std::string_view, 6> integer_types{"I8", "U8", "I16", "U16", "I32", "U32"};
/// Integers that are no weights: places of tokens, of neighbours, masks.
constexpr std::array<std::string_view, 4> place_words{"index", "ids", "mask", "position"};
constexpr std::array<std::string_view, 8> factor_words{"scal", "zero",      "absmax", "codebook",
                                                       "scb",  "quant_map", "bias",   "shift"};

template <std::size_t count>
bool has_any_word(std::string_view text, const std::array<std::string_view, count>& words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

bool has_two_axes(const std::vector<std::int64_t>& shape) {
  return shape.size() >= 2 && elements_of_shape(shape) > 1;
}

/// Modules whose tensors may belong to the codes: their own, and for "weight._data" the one above too.
std::vector<std::string> modules_around(std::string_view name) {
  std::vector<std::string> modules;
  while (!name.empty()) {
    const std::string_view module = module_of(name);
    modules.emplace_back(module);
    const bool is_inner = name.substr(module.size()).starts_with('_');
    name = is_inner && !module.empty() ? module.substr(0, module.size() - 1) : std::string_view();
  }
  return modules;
}

/// Numbers of the module that may be scales of the codes: biases are those of MLX, which has scales as well.
std::vector<std::string> factors_beside(const FileParts& parts, const std::string& codes) {
  std::vector<std::string> factors;
  for (const std::string& module : modules_around(codes)) {
    for (const std::string& other : parts.names_with(module)) {
      const std::string_view leaf = std::string_view(other).substr(module.size());
      if (other == codes || parts.is_taken(other) || leaf.find('.') != std::string_view::npos) continue;
      if ((leaf == "s" || has_any_word(leaf, factor_words)) && leaf != "bias" && parts.find_numbers(other))
        factors.push_back(other);
    }
  }
  const bool has_scale = std::ranges::any_of(factors, [](const std::string& factor) {
    return factor.find("bias") == std::string::npos && factor.find("shift") == std::string::npos;
  });
  return has_scale ? factors : std::vector<std::string>();
}

void refuse_unknown(FileParts& parts, const std::string& name, std::string_view type,
                    const std::vector<std::int64_t>& shape) {
  if (!has_two_axes(shape) || parts.is_taken(name) || is_named_scale(name)) return;
  if (has_any_word(std::string_view(name).substr(module_of(name).size()), place_words)) return;
  const std::vector<std::string> factors = factors_beside(parts, name);
  if (factors.empty()) return;
  for (const std::string& factor : factors) parts.take(factor);
  parts.refuse(
      name,
      fmt::format("{} of shape {} beside {} may be quantized, in a layout that is not known; convert it "
                  "with the library that wrote it",
                  type, to_string(shape), excerpt(factors.front())));
}

}  // namespace

void refuse_unknown_codes(FileParts& parts) {
  const TensorFile& file = parts.file();
  for (const StoredCodes& codes : file.codes())
    if (std::ranges::find(integer_types, codes.type) != integer_types.end())
      refuse_unknown(parts, codes.name, codes.type, codes.shape);
  for (const StoredTensor& tensor : file.tensors())
    if (tensor.type == DType::f8_e4m3 || tensor.type == DType::f8_e5m2)
      refuse_unknown(parts, tensor.name, "FP8", tensor.shape);
}

}  // namespace halfscope
