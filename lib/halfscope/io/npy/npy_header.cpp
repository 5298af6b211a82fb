// Layout: magic, version (2 bytes), length (2 bytes, from version 2 on 4), and a Python dictionary.
#include <halfscope/io/npy/detail/npy_header.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/npy/detail/python_literal.hpp>

namespace halfscope {
namespace {

constexpr std::size_t version_end = 8;
constexpr std::uint32_t longest_header = 1 << 20;  // NumPy's own arrays need some hundred bytes

void check_version(std::span<const std::byte> first, std::string_view where) {
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  if (!text.starts_with(npy_magic)) refuse(where, "byte 0: not an .npy array; one starts with \\x93NUMPY");
  const auto major = static_cast<unsigned>(first[6]), minor = static_cast<unsigned>(first[7]);
  if (major < 1 || major > 3 || minor != 0) {
    refuse(where, fmt::format("byte 6: version {}.{} of the format cannot be read; 1.0, 2.0 and 3.0 can",
                              major, minor));
  }
}

/// The dictionary must have these three keys and no other.
NpyHeader parse_dictionary(std::string_view text, std::uint64_t begin, std::string_view where) {
  PythonLiteral literal(text, begin, where);
  NpyHeader header;
  std::array<bool, 3> seen{};
  constexpr std::array<std::string_view, 3> keys{"descr", "fortran_order", "shape"};
  literal.expect('{');
  while (!literal.accept('}')) {
    const std::string key = literal.string();
    const auto index = static_cast<std::size_t>(std::find(keys.begin(), keys.end(), key) - keys.begin());
    if (index == keys.size()) literal.fail(fmt::format("unknown key {}", excerpt(key)));
    if (std::exchange(seen[index], true))
      literal.fail(fmt::format("the key {} is given twice", excerpt(key)));
    literal.expect(':');
    if (index == 0) header.descr = literal.string_or_list();
    if (index == 1) header.fortran_order = literal.boolean();
    if (index == 2) header.shape = literal.extents();
    if (!literal.accept(',')) {
      literal.expect('}');
      break;
    }
  }
  literal.expect_end();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!seen[i]) refuse(where, fmt::format("byte {}: the header lacks the key '{}'", begin, keys[i]));
  }
  return header;
}

}  // namespace

NpyHeader read_npy_header(const ByteSource& source, std::uint64_t size, std::string_view where) {
  const auto truncated = [&](std::uint64_t wanted) {
    refuse(where, fmt::format("truncated: the .npy header ends at byte {}, the array at {}", wanted, size));
  };
  std::array<std::byte, version_end> first;
  if (size < first.size()) truncated(first.size());
  source(first);
  check_version(first, where);

  std::uint32_t length = 0;
  const std::size_t length_bytes = first[6] == std::byte{1} ? 2 : 4;
  const std::uint64_t text_begin = version_end + length_bytes;
  if (size < text_begin) truncated(text_begin);
  source(std::as_writable_bytes(std::span(&length, 1)).first(length_bytes));
  if (length > longest_header) {
    refuse(where, fmt::format("byte {}: header length {} is over the limit of {}", version_end, length,
                              longest_header));
  }
  if (size < text_begin + length) truncated(text_begin + length);
  std::string text(length, '\0');
  source(std::as_writable_bytes(std::span(text)));
  NpyHeader header = parse_dictionary(text, text_begin, where);
  header.data_begin = text_begin + length;
  return header;
}

}  // namespace halfscope
