// GPTQ and AWQ: qweight, qzeros and scales, inputs by outputs; the tensor is called weight, outputs by
// inputs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <halfscope/device/array.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/layouts/detail/grouped_integers.hpp>
#include <halfscope/io/layouts/detail/layouts.hpp>

namespace halfscope {
namespace {

constexpr std::string_view packed_end = "qweight";

/// Parts of one module, as the file has them.
struct PackedModule {
  std::string prefix;  ///< with the dot
  const StoredCodes* weight = nullptr;
  const StoredCodes* zeros = nullptr;
  const StoredCodes* groups = nullptr;  ///< g_idx
  CodeSource scales{};
};

bool is_matrix(const std::vector<std::int64_t>& shape) {
  return shape.size() == 2;
}

/// Bits of `count` integers in `words` words; nothing where no number of them fits.
std::optional<unsigned> bits_in(std::int64_t count, std::int64_t words) {
  for (const unsigned bits : {4u, 8u, 3u, 2u})
    if (count * bits % 32 == 0 && count * bits / 32 == words) return bits;
  return std::nullopt;
}

/// The values of g_idx.
std::vector<std::int32_t> group_indices(const TensorFile& file, const StoredCodes& codes) {
  std::vector<std::int32_t> groups(codes.bytes / sizeof(std::int32_t));
  file.read_bytes(codes, 0, std::as_writable_bytes(std::span(groups)));
  return groups;
}

/// Reads the parts of one module, or says why not.
class PackedModuleReader {
 public:
  PackedModuleReader(FileParts& parts, PackedModule module) : parts_(parts), module_(std::move(module)) {}

  void read() {
    const std::string why = why_not();
    for (const char* const part : {"qweight", "qzeros", "scales", "g_idx"})
      parts_.take(module_.prefix + part);
    if (!why.empty()) return parts_.refuse(module_.weight->name, why);
    parts_.add(grouped_integers(std::move(tensor_)));
  }

 private:
  /// Fills in `tensor_`; empty where nothing is in the way.
  [[nodiscard]] std::string why_not() {
    const auto& words = module_.weight->shape;
    const auto& scales = module_.scales.shape;
    if (!is_matrix(words) || !is_matrix(scales) || !is_matrix(module_.zeros->shape) || scales[0] == 0 ||
        scales[1] == 0 || module_.weight->bytes == 0)
      return other_form();
    const std::int64_t outputs = scales[1];
    const bool is_awq = words[1] != outputs && words[1] * 8 == outputs;
    const auto bits = bits_in(outputs, module_.zeros->shape[1]);
    if (!bits || (words[1] != outputs && !is_awq) || (is_awq && *bits != 4)) return other_form();
    const std::int64_t inputs = is_awq ? words[0] : words[0] * 32 / *bits;
    tensor_.integers = {module_.weight, *bits,  false, is_awq ? BitPacking::awq : BitPacking::along_rows,
                        inputs,         outputs};
    tensor_.zeros =
        PackedIntegers{module_.zeros, *bits,  false, is_awq ? BitPacking::awq : BitPacking::along_columns,
                       scales[0],     outputs};
    if (!tensor_.integers.fits() || !tensor_.zeros->fits()) return other_form();
    tensor_.name = module_.prefix + "weight";
    tensor_.shape = {outputs, inputs};
    if (inputs > 1 && outputs > 1) tensor_.axes = {1, 0};
    tensor_.scales = module_.scales;
    tensor_.library = is_awq ? "AWQ" : "GPTQ";
    tensor_.method = fmt::format("{}, {} bits", tensor_.library, *bits);
    const std::string why = why_no_groups(inputs);
    return !why.empty() || is_awq ? why : why_no_zero_points();
  }

  [[nodiscard]] std::string other_form() const {
    return fmt::format(
        "its qweight {}, qzeros {} and scales {} are neither GPTQ's nor AWQ's (GEMM); dequantize it with the "
        "library that wrote it",
        to_string(module_.weight->shape), to_string(module_.zeros->shape), to_string(module_.scales.shape));
  }

  [[nodiscard]] std::string why_no_groups(std::int64_t inputs) {
    const std::int64_t groups = module_.scales.shape[0];
    BlockLayout& layout = tensor_.layout;
    layout = {.rows = inputs,
              .columns = module_.scales.shape[1],
              .row_extent = std::max<std::int64_t>(inputs, 1),
              .scale_rows = groups,
              .scale_columns = module_.scales.shape[1]};
    layout.block_rows = std::max<std::int64_t>((inputs + groups - 1) / groups, 1);
    if (module_.groups == nullptr)
      return inputs % groups == 0 ? "" : fmt::format("{} inputs in {} groups without g_idx", inputs, groups);
    std::vector<std::int32_t> indices = group_indices(parts_.file(), *module_.groups);
    if (std::ssize(indices) != inputs)
      return fmt::format("g_idx has {} entries for {} inputs", indices.size(), inputs);
    bool in_order = true;
    for (std::int64_t i = 0; i < inputs; ++i) {
      const std::int32_t group = indices[static_cast<std::size_t>(i)];
      if (group < 0 || group >= groups)
        return fmt::format("g_idx says group {}, and there are {}", group, groups);
      in_order = in_order && group == i / layout.block_rows;
    }
    if (!in_order) tensor_.row_groups = std::move(indices);
    return "";
  }

  /// GPTQ's first form stores zero points less one.
  [[nodiscard]] std::string why_no_zero_points() {
    const int middle = 1 << (tensor_.integers.bits - 1);
    const std::optional<int> all = common_zero_point();
    std::optional<bool> as_are = parts_.reading().stated.zeros_as_are;
    if (!as_are && (all == middle || all == middle - 1)) as_are = all == middle;
    if (!as_are)
      return fmt::format(
          "{}: its zero points may be stored as they are (form v2) or less one (v1); quantize_config.json "
          "beside it tells by checkpoint_format",
          tensor_.method);
    const int other = *as_are ? middle - 1 : middle;
    if (parts_.reading().stated.is_symmetric.value_or(false) && all == other)
      return fmt::format(
          "{}: the configuration says symmetric and form v{}, and all zero points are stored as {}, which is "
          "form v{}; correct checkpoint_format",
          tensor_.method, *as_are ? 2 : 1, other, *as_are ? 1 : 2);
    tensor_.method += *as_are ? ", form v2" : ", form v1";
    tensor_.zero_offset = *as_are ? 0 : 1;
    tensor_.zero_mask = tensor_.integers.largest();
    return "";
  }

  /// The stored zero point that all groups have; nothing where they differ.
  [[nodiscard]] std::optional<int> common_zero_point() const {
    IntegerRows rows(parts_.file(), *tensor_.zeros);
    std::vector<int> zeros(static_cast<std::size_t>(tensor_.zeros->columns));
    std::optional<int> common;
    for (std::int64_t row = 0; row < tensor_.zeros->rows; ++row) {
      rows.read(row, 0, zeros);
      if (!common) common = zeros[0];
      if (std::ranges::any_of(zeros, [&](int zero) { return zero != *common; })) return std::nullopt;
    }
    return common;
  }

  FileParts& parts_;
  PackedModule module_;
  GroupedParts tensor_{};
};

}  // namespace

void read_gptq_and_awq(FileParts& parts) {
  for (const StoredCodes& codes : parts.file().codes()) {
    const bool is_whole = codes.name == packed_end || codes.name.ends_with("." + std::string(packed_end));
    if (codes.type != "I32" || !is_whole) continue;
    PackedModule module{codes.name.substr(0, codes.name.size() - packed_end.size()), &codes};
    module.zeros = parts.find_codes(module.prefix + "qzeros", "I32");
    module.groups = parts.find_codes(module.prefix + "g_idx", "I32");
    const std::string scales = module.prefix + "scales", zeros = module.prefix + "qzeros";
    const auto found = parts.find_numbers(scales);
    if (!found || module.zeros == nullptr) {
      const std::string& missing = found ? zeros : scales;
      parts.refuse(codes.name, fmt::format("it needs {}, which is {}", excerpt(missing),
                                           parts.place_of(missing, codes.name)));
      for (const std::string& part : {scales, zeros, module.prefix + "g_idx"}) parts.take(part);
      continue;
    }
    module.scales = *found;
    PackedModuleReader(parts, std::move(module)).read();
  }
}

}  // namespace halfscope
