// FP8, FP6 and FP4 with scales, found by stem, type and shape: DeepSeek's blocks, MX, NVFP4, a scale for each
// tensor or row. Codes of which it cannot be decided what they stand for are no weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include <halfscope/core/escape.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/layouts/detail/layouts.hpp>
#include <halfscope/io/layouts/detail/scale_names.hpp>
#include <halfscope/io/layouts/detail/scaled_codes.hpp>
#include <halfscope/io/layouts/detail/square_scales.hpp>

namespace halfscope {
namespace {

/// Finds the scales of one payload.
class PayloadReader {
 public:
  PayloadReader(FileParts& parts, std::string name, CodeSource payload, bool is_byte)
      : parts_(parts), name_(std::move(name)), payload_(std::move(payload)), is_byte_(is_byte) {}

  void read() {
    sides_ = companions_by_role(parts_, name_);
    if (sides_.scales.empty() && sides_.wholes.empty()) return look_at_unknown();
    const std::string why = why_undecided();
    if (!why.empty()) return refuse_all(why);
    auto scales = parts_.find(sides_.scales[0].name, "F8_E8M0");
    ScaledParts tensor{name_, payload_.shape, payload_, *scales, std::nullopt};
    if (!sides_.wholes.empty()) {
      const Companion& whole = sides_.wholes[0];
      tensor.whole = {whole.name, *read_one_number(parts_, *parts_.find(whole.name)), whole.divides};
    }
    for (const std::string& activation : sides_.activations) parts_.take(activation);
    for (const Companion& zero : sides_.zeros) parts_.take(zero.name);
    add_scaled_codes(parts_, std::move(tensor));
  }

 private:
  /// The reason for which the codes are not read; empty where there is none.
  [[nodiscard]] std::string why_undecided() {
    for (const auto* const side : {&sides_.scales, &sides_.wholes}) {
      if (side->size() > 1)
        return fmt::format("it has two scales, {} and {}; one multiplies", excerpt((*side)[0].name),
                           excerpt((*side)[1].name));
    }
    if (sides_.scales.empty()) {
      const std::string scales = name_ + "_scale";
      return fmt::format("the scales of its blocks are {}, which is {}", excerpt(scales),
                         parts_.place_of(scales, name_));
    }
    if (!sides_.zeros.empty() && !is_zero(sides_.zeros[0].name))
      return fmt::format("it has a zero point, {}, which codes of floating point have not",
                         excerpt(sides_.zeros[0].name));
    const Companion& scale = sides_.scales[0];
    const auto source = parts_.find(scale.name, "F8_E8M0");
    if (!source) return fmt::format("its scales {} are of a type that is not read", excerpt(scale.name));
    if (is_byte_ && source->type == nullptr && !source->type_name.starts_with("F8_"))
      return fmt::format(
          "U8 with scales {} of type {} is UINT8 without its zero points, or four bits of a layout that is "
          "not known; convert it with the library that wrote it",
          excerpt(scale.name), source->type_name);
    if (is_byte_ && !has_known_blocks(*source))
      return fmt::format(
          "four bits have a scale for 32 of them in MX, and for 16 in NVFP4; U8 of shape {} with scales {} "
          "of shape "
          "{} has others, and may be FP8 or FP6 as bytes",
          to_string(half_shape()), excerpt(scale.name), to_string(source->shape));
    std::string why = why_no_factor(parts_, scale, name_);
    if (why.empty()) why = sides_.why_more_than_factors(parts_);
    if (why.empty())
      why = why_maybe_of_columns(
          payload_.shape, source->shape,
          [&](std::int64_t first, std::span<float> values) { payload_.read(parts_.file(), first, values); });
    return why.empty() ? why_whole_undecided() : why;
  }

  /// Whether bytes may be two codes of four bits each: MX has blocks of 32 under E8M0, NVFP4 of 16 under
  /// E4M3.
  [[nodiscard]] bool has_known_blocks(const CodeSource& scales) const {
    const auto layout = fit_blocks(payload_.shape, scales.shape);
    if (!layout) return true;  // refused as such
    const std::int64_t block = scales.type_name == "F8_E8M0" ? 32 : 16;
    return layout->block_rows == 1 && layout->block_columns == std::min(block, layout->columns);
  }

  /// The shape of the bytes.
  [[nodiscard]] std::vector<std::int64_t> half_shape() const {
    std::vector<std::int64_t> shape = payload_.shape;
    if (!shape.empty()) shape.back() /= 2;
    return shape;
  }

  [[nodiscard]] std::string why_whole_undecided() {
    if (sides_.wholes.empty()) return why_no_whole();
    const Companion& whole = sides_.wholes[0];
    const auto source = parts_.find(whole.name);
    if (!source || source->elements() != 1)
      return fmt::format("{} has shape {}; one number is right", excerpt(whole.name),
                         source ? to_string(source->shape) : "of another type");
    if (whole.is_usual || *read_one_number(parts_, *source) == 1) return "";
    return fmt::format("its scale {} may multiply or divide; rename it {} if it multiplies",
                       excerpt(whole.name), excerpt(name_ + "_scale_2"));
  }

  /// NVFP4's scales are E4M3, so that a lone number beside them may be the scale of the tensor.
  [[nodiscard]] std::string why_no_whole() {
    const auto scales = parts_.find(sides_.scales[0].name);
    if (!scales || !scales->type_name.starts_with("F8_E4M3")) return "";
    for (const Companion& other : sides_.unknown) {
      const auto source = parts_.find_numbers(other.name);
      if (source && source->elements() == 1 && *read_one_number(parts_, *source) != 1)
        return fmt::format("{} may be the scale of the whole tensor; rename it {} if it multiplies",
                           excerpt(other.name), excerpt(name_ + "_scale_2"));
    }
    if (payload_.type == nullptr || payload_.type->bits != 4) return "";
    const std::string whole = name_ + "_scale_2";
    return fmt::format("its blocks have scales in E4M3, as NVFP4 has, whose scale of the tensor, {}, is {}",
                       excerpt(whole), parts_.place_of(whole, name_));
  }

  [[nodiscard]] bool is_zero(const std::string& name) const {
    if (const StoredCodes* codes = parts_.find_codes(name)) return parts_.is_all_zero(*codes);
    const auto numbers = parts_.find_numbers(name);
    return numbers && parts_.largest_of(*numbers) == 0;
  }

  /// Without scales codes are numbers, unless a small tensor that goes by their name might be scales.
  void look_at_unknown() {
    if (is_byte_) return;
    for (const auto* const side : {&sides_.zeros, &sides_.unknown}) {
      for (const Companion& other : *side) {
        const auto shape = shape_of(other.name);
        if (!shape || !fit_blocks(payload_.shape, *shape)) continue;
        return refuse_all(
            fmt::format("{} of shape {} may be its scales; rename it {} if it multiplies the codes",
                        excerpt(other.name), to_string(*shape), excerpt(name_ + "_scale")));
      }
    }
    look_at_module();
  }

  /// Numbers of its module that have the shape of scales, whatever they are called, but for biases.
  void look_at_module() {
    const std::string module(module_of(name_));
    if (module.empty() || !name_.ends_with("weight") || payload_.shape.size() < 2) return;
    for (const std::string& other : parts_.names_with(module)) {
      const std::string_view leaf = std::string_view(other).substr(module.size());
      const auto source = parts_.find_numbers(other);
      const bool may_be = source && leaf.find('.') == std::string_view::npos &&
                          leaf.find("bias") == std::string_view::npos &&
                          !source->type_name.starts_with("F8_") && source->elements() < payload_.elements();
      if (!may_be || !fit_blocks(payload_.shape, source->shape)) continue;
      parts_.take(other);
      return refuse_all(
          fmt::format("{} of shape {} may be its scales; rename it {} if it multiplies the codes",
                      excerpt(other), to_string(source->shape), excerpt(name_ + "_scale")));
    }
  }

  /// Numbers, or integers, which may be exponents.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> shape_of(const std::string& name) const {
    if (const auto source = parts_.find(name, "F8_E8M0")) return source->shape;
    const StoredCodes* codes = parts_.find_codes(name);
    return codes == nullptr ? std::nullopt : std::optional(codes->shape);
  }

  void refuse_all(const std::string& why) {
    sides_.take_all(parts_);
    parts_.refuse(name_, why);
  }

  FileParts& parts_;
  std::string name_;
  CodeSource payload_;
  bool is_byte_;
  CompanionsByRole sides_{};
};

bool is_eight_bits(DType type) {
  return type == DType::f8_e4m3 || type == DType::f8_e5m2;
}

/// Whether a module has codes in rows and columns that no layout has taken: integers, or FP8.
bool has_other_codes(const FileParts& parts, std::string_view module) {
  if (module.empty()) return false;
  return std::ranges::any_of(parts.names_with(std::string(module)), [&](const std::string& other) {
    if (module_of(other) != module || is_named_scale(other)) return false;
    const StoredCodes* codes = parts.find_codes(other);
    const auto numbers = parts.find(other);
    const bool is_fp8 = numbers && numbers->type_name.starts_with("F8_") && numbers->shape.size() > 1;
    return is_fp8 || (codes != nullptr && codes->shape.size() > 1);
  });
}

/// Scales without a payload mean nothing by themselves; the rest of the file is read.
void refuse_strays(FileParts& parts, const std::string& name) {
  if (parts.is_taken(name)) return;
  for (const char* const ending : {"_scale_inv", "_scale", "_scale_2"}) {
    const auto payload = without_ending(name, ending);
    if (!payload || !payload->ends_with("weight") || parts.is_skipped(*payload) || parts.holds(*payload))
      continue;
    if (has_other_codes(parts, module_of(name))) continue;  // codes of another name
    return parts.refuse(name, fmt::format("its payload is {}, which is {}", excerpt(*payload),
                                          parts.place_of(*payload, name)));
  }
}

/// Codes that another file has scales for are no weights; without such a file they are numbers.
void refuse_lone_codes(FileParts& parts, const std::string& name) {
  if (parts.is_taken(name)) return;
  for (const char* const ending : {"_scale_inv", "_scale"}) {
    const std::string scales = name + ending;
    if (!parts.reading().beside(scales, name)) continue;
    return parts.refuse(
        name, fmt::format("its scales are {}, which is {}", excerpt(scales), parts.place_of(scales, name)));
  }
}

}  // namespace

void read_scaled_codes(FileParts& parts) {
  const TensorFile& file = parts.file();
  for (const StoredCodes& codes : file.codes()) {
    const bool is_byte = codes.type == "U8";
    if (is_named_scale(codes.name) || parts.is_taken(codes.name) || codes.type == "F8_E8M0") continue;
    if (auto payload = source_of(codes, "F4")) PayloadReader(parts, codes.name, *payload, is_byte).read();
  }
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const StoredTensor& tensor = file.tensors()[i];
    if (!is_eight_bits(tensor.type) || is_named_scale(tensor.name) || parts.is_taken(tensor.name)) continue;
    PayloadReader(parts, tensor.name, source_of(file, i), false).read();
  }
  for (const StoredTensor& tensor : file.tensors()) refuse_strays(parts, tensor.name);
  for (const StoredCodes& codes : file.codes()) refuse_strays(parts, codes.name);
  if (!parts.reading().beside) return;
  for (const StoredTensor& tensor : file.tensors())
    if (is_eight_bits(tensor.type)) refuse_lone_codes(parts, tensor.name);
  for (const StoredCodes& codes : file.codes())
    if (source_of(codes, "F4")) refuse_lone_codes(parts, codes.name);
}

}  // namespace halfscope
