// Matrices of integers or of FP8 beside numbers that may be their scales, in a layout that is not known.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

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

/// Numbers of the codes' own, or of their module, that may be scales of them: biases are those of MLX, which
/// has scales as well.
std::vector<std::string> factors_beside(const FileParts& parts, const std::string& codes) {
  std::vector<std::string> factors;
  std::vector<std::string> places = modules_around(codes);
  places.push_back(codes + ".");
  for (const std::string& module : places) {
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

/// Integers that are called a weight are codes, whatever their factors are called.
void refuse_integer_weight(FileParts& parts, const std::string& name, std::string_view type,
                           const std::vector<std::int64_t>& shape) {
  constexpr std::array<std::string_view, 4> names{"weight", "qweight", "q_weight", "packed_weight"};
  if (std::ranges::find(names, std::string_view(name).substr(module_of(name).size())) == names.end()) return;
  parts.refuse(name,
               fmt::format("{} of shape {} is a quantized weight in a layout that is not known; convert it "
                           "with the library that wrote it",
                           type, to_string(shape)));
}

/// The type of codes by the reason for which a reader leaves them out: "int8", "|i1"; empty where they are
/// none.
std::string_view type_in(std::string_view reason) {
  constexpr std::array<std::string_view, 6> types{"int8", "int16", "int32", "float8", "float4", "bits"};
  for (const std::string_view begin : {"dtype ", "descr \""}) {
    if (!reason.starts_with(begin)) continue;
    const std::string_view type = reason.substr(begin.size(), reason.find('"', begin.size()) - begin.size());
    const bool is_of_numpy = type.size() == 3 && (type[1] == 'i' || type[1] == 'u') && type[2] != '8';
    return is_of_numpy || has_any_word(type, types) ? type : std::string_view();
  }
  return {};
}

/// Codes of a file whose reader lists their type alone, and tensors of PyTorch that are quantized.
void refuse_listed_codes(FileParts& parts, const SkippedTensor& skipped) {
  if (parts.is_taken(skipped.name) || parts.holds(skipped.name)) return;
  if (skipped.reason.find("_rebuild_qtensor") != std::string::npos) return parts.leave(skipped.name);
  const std::string_view type = type_in(skipped.reason);
  std::vector<std::string> scales;
  for (Companion& other : type.empty() ? std::vector<Companion>() : companions_of(parts, skipped.name))
    if (other.role == CompanionRole::scale || other.role == CompanionRole::whole_scale)
      scales.push_back(std::move(other.name));
  if (scales.empty()) return;
  for (const std::string& scale : scales) parts.take(scale);
  parts.refuse(
      skipped.name,
      fmt::format("{} beside {} may be quantized, and is not read from such a file; save it as safetensors",
                  type, excerpt(scales.front())));
}

void refuse_unknown(FileParts& parts, const std::string& name, std::string_view type,
                    const std::vector<std::int64_t>& shape) {
  if (!has_two_axes(shape) || parts.is_taken(name) || is_named_scale(name)) return;
  if (has_any_word(std::string_view(name).substr(module_of(name).size()), place_words)) return;
  const std::vector<std::string> factors = factors_beside(parts, name);
  if (factors.empty() && type == "FP8") return;
  if (factors.empty()) return refuse_integer_weight(parts, name, type, shape);
  for (const std::string& factor : factors) parts.take(factor);
  parts.refuse(
      name,
      fmt::format("{} of shape {} beside {} may be quantized, in a layout that is not known; convert it "
                  "with the library that wrote it",
                  type, to_string(shape), excerpt(factors.front())));
}

bool are_integers(const FileParts& parts, const CodeSource& source) {
  constexpr float largest = 256;
  bool are = true, has_large = false;
  parts.file().read(source.index, 0, source.elements(), [&](std::span<const float> values) {
    for (const float x : values) {
      are = are && std::abs(x) <= largest && x == std::floor(x);
      has_large = has_large || std::abs(x) > 1;
    }
  });
  return are && has_large;
}

/// Codes that were saved as numbers of a type for weights: whole numbers beside a scale of that name.
void refuse_stored_integers(FileParts& parts, const std::string& scales) {
  for (const char* const ending : {"_scale", "_scales", ".scale", ".scales", "_scale_inv"}) {
    const auto base = without_ending(scales, ending);
    const auto numbers = base ? parts.find_numbers(*base) : std::nullopt;
    if (!numbers || !has_two_axes(numbers->shape) || !are_integers(parts, *numbers)) continue;
    parts.take(scales);
    parts.refuse(*base,
                 fmt::format("its numbers are whole ones up to 256, and may be codes that {} multiplies; "
                             "save the product",
                             excerpt(scales)));
    return;
  }
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
  for (const SkippedTensor& skipped : file.skipped()) refuse_listed_codes(parts, skipped);
  for (const StoredTensor& tensor : file.tensors())
    if (is_named_scale(tensor.name) && !parts.is_taken(tensor.name))
      refuse_stored_integers(parts, tensor.name);
}

}  // namespace halfscope
