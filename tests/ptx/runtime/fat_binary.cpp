// PTX texts in a fat binary: a header, then entries with headers of their own.
#include "tests/ptx/runtime/fat_binary.hpp"

#include <fmt/format.h>
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {
namespace {

struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const std::byte* data;
  const void* unused;
};
struct Header {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t bytes;  ///< bytes of all entries
};
struct EntryHeader {
  std::uint16_t kind;  ///< 1: PTX, 2: machine code
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;             ///< bytes behind the header
  std::uint32_t compressed_bytes;  ///< 0: not compressed
  std::uint32_t unused;
  std::uint16_t minor, major;
  std::uint32_t target;
  std::uint32_t more_unused[6];
  std::uint64_t text_bytes;  ///< bytes of a compressed text
};
constexpr std::uint32_t wrapper_magic = 0x466243B1, header_magic = 0xBA55ED50;
constexpr std::uint16_t kind_ptx = 1;

template <typename T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// nvcc compresses by Zstandard unless it is told otherwise.
std::string decompressed(const EntryHeader& entry, const std::byte* begin) {
  std::string text(entry.text_bytes, '\0');
  const std::size_t bytes = ZSTD_decompress(text.data(), text.size(), begin, entry.compressed_bytes);
  if (ZSTD_isError(bytes) != 0 || bytes != text.size()) {
    throw ParseError(
        "a fat binary has PTX that is not compressed by Zstandard; nvcc does with --compress-mode=size");
  }
  return text;
}

EmbeddedText text_of(const EntryHeader& entry, const std::byte* begin) {
  std::string text = entry.compressed_bytes != 0
                         ? decompressed(entry, begin)
                         : std::string(reinterpret_cast<const char*>(begin), entry.bytes);
  text.resize(std::strlen(text.c_str()));  // padded with zeros
  if (text.find(".version") == std::string::npos) throw ParseError("a fat binary has a text that is no PTX");
  return {static_cast<int>(entry.target), std::move(text)};
}

}  // namespace

std::vector<EmbeddedText> embedded_texts(const void* wrapper) {
  const auto outer = read<Wrapper>(static_cast<const std::byte*>(wrapper));
  if (outer.magic != wrapper_magic) throw ParseError("the program registers what is no fat binary");
  const auto header = read<Header>(outer.data);
  if (header.magic != header_magic) throw ParseError("a fat binary has an unknown header");
  std::vector<EmbeddedText> texts;
  const std::byte* const end = outer.data + header.header_bytes + header.bytes;
  for (const std::byte* at = outer.data + header.header_bytes; at < end;) {
    const auto entry = read<EntryHeader>(at);
    if (entry.kind == kind_ptx) texts.push_back(text_of(entry, at + entry.header_bytes));
    at += entry.header_bytes + entry.bytes;
  }
  return texts;
}

}  // namespace halfscope::ptx
