// NumPy's type strings: byte order, kind, bytes per element.
#include <halfscope/io/npy/detail/npy_array.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <halfscope/io/detail/element_order.hpp>
#include <halfscope/io/detail/parse_error.hpp>

namespace halfscope {
namespace {

struct NamedEncoding {
  std::string_view descr;
  ElementEncoding encoding;
};

constexpr std::array encodings{
    NamedEncoding{"<f2", {DType::f16}},
    NamedEncoding{"<f4", {DType::f32}},
    NamedEncoding{"<f8", {DType::f64}},
    NamedEncoding{">f2", {DType::f16, std::endian::big}},
    NamedEncoding{">f4", {DType::f32, std::endian::big}},
    NamedEncoding{">f8", {DType::f64, std::endian::big}},
    // As ml_dtypes writes them: one byte that is no raw byte is E5M2, and some versions write the name.
    NamedEncoding{"<f1", {DType::f8_e5m2}},
    NamedEncoding{"|f1", {DType::f8_e5m2}},
    NamedEncoding{"bfloat16", {DType::bf16}},
    NamedEncoding{"float8_e5m2", {DType::f8_e5m2}},
    NamedEncoding{"float8_e4m3fn", {DType::f8_e4m3}},
};

/// Kinds of numpy.dtype that are known and not read: booleans, integers, complex numbers, longer floats,
/// text, times, raw bytes, Python objects.
constexpr std::string_view other_kinds = "?biucfSaUMmVO";

/// "V2" and `bf16`: the elements are bfloat16, as a user says who knows. Other packages have other letters
/// for types that NumPy lacks.
bool may_be(std::string_view descr, DType type) {
  constexpr std::string_view kinds_of_numpy = "?biucSaUMmO";
  return descr.size() == 3 && (descr[0] == '|' || descr[0] == '<') &&
         kinds_of_numpy.find(descr[1]) == std::string_view::npos &&
         descr.substr(2) == std::to_string(bytes_per_element(type));
}

/// Reading these would run what the file says.
bool is_object(std::string_view descr) {
  return descr.substr(descr.find_first_of("<>|=") == 0 ? 1 : 0).starts_with('O');
}

std::optional<ElementEncoding> find_encoding(std::string_view descr, const StatedType& void_type,
                                             std::string_view where) {
  constexpr std::array<std::string_view, 3> of_numpy{"<f2", "<f4", "<f8"};
  const bool is_certain = std::ranges::find(of_numpy, descr) != of_numpy.end();
  if (void_type.type && !is_certain && may_be(descr, *void_type.type))
    return ElementEncoding{*void_type.type};
  for (const NamedEncoding& entry : encodings) {
    if (entry.descr == descr) return entry.encoding;
  }
  const bool has_order = descr.find_first_of("<>|=") == 0;
  const std::string_view kind = descr.substr(has_order ? 1 : 0, 1);
  const bool is_known =
      descr.starts_with('[') || (!kind.empty() && other_kinds.find(kind) != std::string::npos);
  if (!is_known)
    refuse(where, fmt::format("descr {} is no type of NumPy's; {} says what its elements are", excerpt(descr),
                              void_type.option));
  return {};
}

}  // namespace

NpyArray read_npy_array(const ByteSource& source, std::uint64_t size, std::string_view where,
                        const StatedType& void_type) {
  NpyArray array;
  array.header = read_npy_header(source, size, where);
  array.encoding = find_encoding(array.header.descr, void_type, where);
  if (!array.encoding) return array;
  const std::size_t width = bytes_per_element(array.encoding->type);
  const std::uint64_t wanted = checked_size(array.header.shape, width, where);
  const std::uint64_t held = size - array.header.data_begin;
  if (held != wanted) {
    refuse(where, fmt::format("{}: {} {} takes {} bytes from byte {} on, there are {}",
                              held < wanted ? "truncated" : "too long", excerpt(array.header.descr),
                              to_string(array.header.shape), wanted, array.header.data_begin, held));
  }
  array.elements = static_cast<std::int64_t>(wanted / width);
  if (array.header.fortran_order) array.axes = column_major(array.header.shape);
  return array;
}

std::string why_not_read(std::string_view descr, std::string_view option) {
  if (descr.substr(1).starts_with('V')) {
    return fmt::format("descr {}: raw bytes, as NumPy saves bfloat16 and float8 of ml_dtypes; {} says which",
                       excerpt(descr), option);
  }
  if (is_object(descr)) {
    return fmt::format("descr {}: pickled Python objects are not read; save numbers", excerpt(descr));
  }
  return fmt::format("descr {}: only f2, f4 and f8 are read", excerpt(descr));
}

}  // namespace halfscope
