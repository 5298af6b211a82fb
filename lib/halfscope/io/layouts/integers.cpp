// INT8 and UINT8 with scales and zero points of their own, whatever they are called.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <halfscope/core/escape.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/layouts/detail/grouped_integers.hpp>
#include <halfscope/io/layouts/detail/layouts.hpp>
#include <halfscope/io/layouts/detail/packed_bytes.hpp>
#include <halfscope/io/layouts/detail/scale_names.hpp>
#include <halfscope/io/layouts/detail/square_scales.hpp>

namespace halfscope {
namespace {

/// Reads one tensor of bytes, or says why not.
class ByteReader {
 public:
  ByteReader(FileParts& parts, const StoredCodes& codes)
      : parts_(parts), codes_(codes), sides_(companions_by_role(parts, codes.name)) {}

  void read() {
    const bool is_signed = codes_.type == "I8";
    if (sides_.scales.empty() || (!is_signed && sides_.zeros.empty())) return;
    const auto scales = parts_.find(sides_.scales[0].name);
    if (!is_signed && (!scales || scales->type_name.starts_with("F8_"))) return;  // packed FP4, say
    std::string why = scales ? "" : "its scales are of a type that is not read";
    if (scales) why = why_not(*scales);
    sides_.take_all(parts_);
    parts_.take(codes_.name);
    if (!why.empty()) return parts_.refuse(codes_.name, why);
    parts_.add(grouped_integers(std::move(tensor_)));
  }

 private:
  [[nodiscard]] std::string why_not(const CodeSource& scales) {
    if (sides_.scales.size() + sides_.wholes.size() > 1 || sides_.zeros.size() > 1)
      return "it has two scales or two zero points, and one of each is known";
    const auto layout = fit_blocks(codes_.shape, scales.shape);
    if (!layout)
      return fmt::format("scales {} of shape {} do not fit its shape {}", excerpt(scales.name),
                         to_string(scales.shape), to_string(codes_.shape));
    const bool is_signed = codes_.type == "I8";
    tensor_ = {.name = codes_.name,
               .method = is_signed ? "INT8" : "UINT8",
               .shape = codes_.shape,
               .integers = {&codes_, 8, is_signed, BitPacking::along_columns, layout->rows, layout->columns},
               .scales = scales,
               .layout = *layout};
    if (!tensor_.integers.fits()) return "its bytes do not fit its shape";
    std::string why = sides_.scales.empty() ? "" : why_no_factor(parts_, sides_.scales[0], codes_.name);
    if (why.empty()) why = sides_.why_more_than_factors(parts_);
    if (why.empty() && !sides_.zeros.empty()) why = why_no_zero_points(sides_.zeros[0].name);
    if (why.empty())
      why = why_maybe_of_columns(
          codes_.shape, scales.shape,
          [&](std::int64_t first, std::span<float> values) { read_bytes(first, is_signed, values); });
    if (!why.empty()) return why;
    return why_maybe_packed(parts_, codes_, *layout, tensor_.zeros ? ZeroPoints::own : ZeroPoints::none);
  }

  void read_bytes(std::int64_t first, bool is_signed, std::span<float> values) const {
    std::vector<std::byte> bytes(values.size());
    parts_.file().read_bytes(codes_, static_cast<std::uint64_t>(first), bytes);
    std::ranges::transform(bytes, values.begin(), [&](std::byte byte) {
      const int code = std::to_integer<int>(byte);
      return static_cast<float>(is_signed && code > 127 ? code - 256 : code);
    });
  }

  [[nodiscard]] std::string why_no_zero_points(const std::string& name) {
    const StoredCodes* zeros = parts_.find_codes(name);
    if (zeros == nullptr) return fmt::format("its zero points {} are no integers", excerpt(name));
    if (zeros->type != "I8" && zeros->type != "U8")
      return parts_.is_all_zero(*zeros)
                 ? ""
                 : fmt::format("its zero points {} are {}; I8 and U8 are read", excerpt(name), zeros->type);
    const std::int64_t columns = tensor_.layout.scale_columns, count = tensor_.scales.elements();
    tensor_.zeros =
        PackedIntegers{zeros, 8, zeros->type == "I8", BitPacking::along_columns, count / columns, columns};
    return tensor_.zeros->fits()
               ? ""
               : fmt::format("its zero points {} are not as many as its scales", excerpt(name));
  }

  FileParts& parts_;
  const StoredCodes& codes_;
  CompanionsByRole sides_;
  GroupedParts tensor_{};
};

}  // namespace

void read_integers(FileParts& parts) {
  for (const StoredCodes& codes : parts.file().codes()) {
    const bool is_byte = codes.type == "I8" || codes.type == "U8";
    if (is_byte && !parts.is_taken(codes.name) && !is_named_scale(codes.name))
      ByteReader(parts, codes).read();
  }
}

}  // namespace halfscope
