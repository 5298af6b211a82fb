// Matrices of integers or of FP8 beside numbers that may be their scales, in a layout that is not known.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <halfscope/core/escape.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/layouts/detail/block_layout.hpp>
#include <halfscope/io/layouts/detail/layouts.hpp>
#include <halfscope/io/layouts/detail/scale_names.hpp>

namespace halfscope {
namespace {

constexpr std::array<std::string_view, 7> integer_types{"I8", "U8", "I16", "U16", "I32", "U32", "I64"};
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

/// Vectors of a module whose one matrix is of integers, biases left out; none where it has another matrix.
std::vector<std::string> vectors_beside(const FileParts& parts, const std::string& codes) {
  std::vector<std::string> vectors;
  const std::string module(module_of(codes));
  if (module.empty()) return vectors;
  for (const std::string& other : parts.names_with(module)) {
    const std::string_view leaf = std::string_view(other).substr(module.size());
    const auto numbers = leaf.find('.') == std::string_view::npos ? parts.find_numbers(other) : std::nullopt;
    if (!numbers || leaf == "bias") continue;
    if (has_two_axes(numbers->shape)) return {};
    vectors.push_back(other);
  }
  return vectors;
}

void refuse_lone_integers(FileParts& parts, const std::string& name, std::string_view type,
                          const std::vector<std::int64_t>& shape) {
  const std::vector<std::string> vectors = vectors_beside(parts, name);
  if (vectors.empty()) return refuse_integer_weight(parts, name, type, shape);
  for (const std::string& vector : vectors) parts.take(vector);
  parts.refuse(name, fmt::format("{} of shape {} is the one matrix of its module, beside {}, and may be "
                                 "quantized; convert it with the library that wrote it",
                                 type, to_string(shape), excerpt(vectors.front())));
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
  if (factors.empty()) return refuse_lone_integers(parts, name, type, shape);
  for (const std::string& factor : factors) parts.take(factor);
  parts.refuse(
      name,
      fmt::format("{} of shape {} beside {} may be quantized, in a layout that is not known; convert it "
                  "with the library that wrote it",
                  type, to_string(shape), excerpt(factors.front())));
}

/// Types of codes that numbers may be of, all of them.
struct CodesAsNumbers {
  bool are_integers = true, are_fp8 = true;
  bool has_large = false;  ///< beyond 1
};

bool is_fp8(float x) {
  const float rounded = from_bits(to_bits(std::abs(x)) & 0xFFF00000u);  // three bits of the significand
  return x == 0 || (std::abs(x) == rounded && rounded <= 448 && rounded >= 0x1p-6f) ||
         (std::abs(x) < 0x1p-6f && std::ldexp(x, 9) == std::floor(std::ldexp(x, 9)));
}

CodesAsNumbers look_at(const FileParts& parts, const CodeSource& source) {
  constexpr float largest = 256;
  CodesAsNumbers found;
  parts.file().read(source.index, 0, source.elements(), [&](std::span<const float> values) {
    for (const float x : values) {
      found.are_integers = found.are_integers && std::abs(x) <= largest && x == std::floor(x);
      found.are_fp8 = found.are_fp8 && is_fp8(x);
      found.has_large = found.has_large || std::abs(x) > 1;
    }
  });
  return found;
}

/// Codes that were saved as numbers of a type for weights, and scales that were left beside weights.
void refuse_stored_codes(FileParts& parts, const std::string& scales) {
  for (const char* const ending : {"_scale", "_scales", ".scale", ".scales", "_scale_inv"}) {
    const auto base = without_ending(scales, ending);
    const auto numbers = base ? parts.find_numbers(*base) : std::nullopt;
    const auto factors = parts.find_numbers(scales);
    if (!numbers || !has_two_axes(numbers->shape)) continue;
    const CodesAsNumbers found = look_at(parts, *numbers);
    if (found.has_large && (found.are_integers || found.are_fp8)) {
      parts.take(scales);
      return parts.refuse(
          *base, fmt::format("its numbers are {}, and may be codes that {} multiplies; "
                             "save the product",
                             found.are_integers ? "whole ones up to 256" : "all of FP8", excerpt(scales)));
    }
    if (!factors || factors->elements() >= numbers->elements() || !fit_blocks(numbers->shape, factors->shape))
      continue;
    parts.take(scales);
    return parts.note(*base,
                      fmt::format("is read as it is, without {} beside it: its numbers are no codes, so "
                                  "that the scale is a leftover, or another product is meant; remove "
                                  "it, or save the product",
                                  excerpt(scales)));
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
    if (is_named_scale(tensor.name) && !parts.is_taken(tensor.name)) refuse_stored_codes(parts, tensor.name);
}

}  // namespace halfscope
