// compressed-tensors: weight_packed with weight_scale; FP4 in bytes, integers in words. Its global scale
// divides.
#include <fmt/format.h>

#include <cmath>

#include <halfscope/core/escape.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/layouts/detail/grouped_integers.hpp>
#include <halfscope/io/layouts/detail/layouts.hpp>
#include <halfscope/io/layouts/detail/scaled_codes.hpp>

namespace halfscope {
namespace {

/// Names of one weight's parts.
struct PackedNames {
  std::string weight, packed, scale, zero, shape, groups, whole;

  explicit PackedNames(std::string base)
      : weight(std::move(base)),
        packed(weight + "_packed"),
        scale(weight + "_scale"),
        zero(weight + "_zero_point"),
        shape(weight + "_shape"),
        groups(weight + "_g_idx"),
        whole(weight + "_global_scale") {}
};

void take_packed(FileParts& parts, const PackedNames& names) {
  for (const std::string* name :
       {&names.packed, &names.scale, &names.zero, &names.shape, &names.groups, &names.whole})
    parts.take(*name);
  if (const auto module = without_ending(names.weight, "weight"))
    for (const char* const other : {"input_scale", "input_global_scale", "input_zero_point"})
      parts.take(*module + other);
}

/// Integers of a small tensor of I64 or I32; empty where it is another one.
std::vector<std::int64_t> small_integers(const FileParts& parts, const std::string& name) {
  constexpr std::uint64_t longest = 1 << 26;
  const StoredCodes* codes = parts.find_codes(name);
  if (codes == nullptr || codes->bytes > longest) return {};
  const auto read = [&]<typename Integer>(Integer) {
    std::vector<Integer> values(codes->bytes / sizeof(Integer));
    parts.file().read_bytes(*codes, 0, std::as_writable_bytes(std::span(values)));
    return std::vector<std::int64_t>(values.begin(), values.end());
  };
  if (codes->type == "I64") return read(std::int64_t{});
  return codes->type == "I32" ? read(std::int32_t{}) : std::vector<std::int64_t>{};
}

void add_packed_floats(FileParts& parts, const PackedNames& names, const StoredCodes& codes,
                       const CodeSource& scales) {
  CodeSource payload = *source_of(codes, "F4");
  ScaledParts tensor{names.weight, payload.shape, payload, scales, std::nullopt};
  if (scales.type == nullptr && !scales.type_name.starts_with("F8_"))
    return parts.refuse(names.packed,
                        fmt::format("its scales are {}; E4M3 or E8M0 would be FP4's", scales.type_name));
  if (const auto whole = parts.find(names.whole)) {
    const auto value = read_one_number(parts, *whole);
    if (!value)
      return parts.refuse(names.packed, fmt::format("{} has shape {}; one number is right",
                                                    excerpt(names.whole), to_string(whole->shape)));
    tensor.whole = {names.whole, *value, true};
  } else if (scales.type_name.starts_with("F8_E4M3")) {
    parts.refuse(names.packed, fmt::format("the scale of the tensor, {}, which NVFP4 has, is {}",
                                           excerpt(names.whole), parts.place_of(names.whole, names.packed)));
    return take_packed(parts, names);
  }
  take_packed(parts, names);
  add_scaled_codes(parts, std::move(tensor));
}

/// Reads the integers of one weight, or says why not.
class PackedWords {
 public:
  PackedWords(FileParts& parts, const PackedNames& names, const StoredCodes& codes, CodeSource scales)
      : parts_(parts), names_(names), codes_(codes), scales_(std::move(scales)) {}

  void read() {
    const std::string why = why_not();
    take_packed(parts_, names_);
    if (!why.empty()) return parts_.refuse(names_.packed, why);
    parts_.add(grouped_integers(std::move(tensor_)));
  }

 private:
  [[nodiscard]] std::string why_not() {
    const std::vector<std::int64_t> shape = small_integers(parts_, names_.shape);
    constexpr std::int64_t longest = std::int64_t{1} << 48;
    const bool is_matrix = shape.size() == 2 && codes_.shape.size() == 2 && shape[0] == codes_.shape[0];
    if (!is_matrix || shape[1] <= 0 || shape[1] > longest)
      return fmt::format("{} says no shape of two axes that its words {} fit", excerpt(names_.shape),
                         to_string(codes_.shape));
    const auto bits = bits_of(shape[1]);
    if (!bits)
      return fmt::format("{} words a row hold {} integers of no number of bits that is known",
                         codes_.shape[1], shape[1]);
    tensor_ = {.name = names_.weight,
               .method = fmt::format("INT{} of compressed-tensors", *bits),
               .library = "compressed-tensors",
               .shape = shape,
               .integers = {&codes_, *bits, false, BitPacking::along_columns, shape[0], shape[1]},
               .scales = scales_,
               .zero_offset = 1 << (*bits - 1)};
    if (!tensor_.integers.fits()) return "its words do not fit its shape";
    const auto layout = fit_blocks(shape, scales_.shape);
    if (!layout)
      return fmt::format("scales {} do not fit its shape {}", to_string(scales_.shape), to_string(shape));
    tensor_.layout = *layout;
    const std::string why = why_no_zeros();
    return why.empty() ? why_no_groups() : why;
  }

  /// Four bits, where several numbers of them fit the words of a short row.
  [[nodiscard]] std::optional<unsigned> bits_of(std::int64_t columns) const {
    for (const unsigned bits : {4u, 8u, 2u, 3u, 5u, 6u, 7u, 1u})
      if ((columns * bits + 31) / 32 == codes_.shape[1]) return bits;
    return std::nullopt;
  }

  [[nodiscard]] std::string why_no_zeros() {
    if (!parts_.holds(names_.zero)) return "";
    const StoredCodes* zeros = parts_.find_codes(names_.zero, "I32");
    const std::int64_t columns = tensor_.layout.scale_columns;
    const unsigned bits = tensor_.integers.bits;
    if (zeros == nullptr) return fmt::format("{} is not of type I32", excerpt(names_.zero));
    tensor_.zeros =
        PackedIntegers{zeros, bits, false, BitPacking::along_rows, scales_.elements() / columns, columns};
    tensor_.zero_offset = 0;
    return tensor_.zeros->fits() ? "" : fmt::format("{} does not fit the scales", excerpt(names_.zero));
  }

  [[nodiscard]] std::string why_no_groups() {
    if (!parts_.holds(names_.groups)) return "";
    const std::vector<std::int64_t> groups = small_integers(parts_, names_.groups);
    if (std::ssize(groups) != tensor_.layout.columns)
      return fmt::format("{} has {} entries for {} columns", excerpt(names_.groups), groups.size(),
                         tensor_.layout.columns);
    bool in_order = true, is_unset = true;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const auto column = static_cast<std::int64_t>(i);
      is_unset = is_unset && groups[i] == -1;
      in_order = in_order && groups[i] == column / tensor_.layout.block_columns;
      if (!is_unset && (groups[i] < 0 || groups[i] >= tensor_.layout.scale_columns))
        return fmt::format("{} says group {}, and there are {}", excerpt(names_.groups), groups[i],
                           tensor_.layout.scale_columns);
    }
    if (!in_order && !is_unset) tensor_.column_groups.assign(groups.begin(), groups.end());
    return "";
  }

  FileParts& parts_;
  const PackedNames& names_;
  const StoredCodes& codes_;
  CodeSource scales_;
  GroupedParts tensor_{};
};

}  // namespace

void read_compressed_tensors(FileParts& parts) {
  for (const StoredCodes& codes : parts.file().codes()) {
    const auto base = without_ending(codes.name, "_packed");
    if (!base || parts.is_taken(codes.name) || (codes.type != "U8" && codes.type != "I32")) continue;
    const PackedNames names(*base);
    const auto scales = parts.find(names.scale, "F8_E8M0");
    if (!scales) {
      parts.refuse(codes.name, fmt::format("its scales are {}, which is {}", excerpt(names.scale),
                                           parts.place_of(names.scale, codes.name)));
      take_packed(parts, names);
    } else if (codes.type == "U8") {
      add_packed_floats(parts, names, codes, *scales);
    } else {
      PackedWords(parts, names, codes, *scales).read();
    }
  }
}

}  // namespace halfscope
