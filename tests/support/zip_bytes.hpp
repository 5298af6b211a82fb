// The bytes of zip archives, right ones and, by changing a part before it is written, wrong ones.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/tensor_bytes.hpp"

namespace halfscope {

/// A member of an archive as it will be written.
struct ZipPart {
  std::string name;
  std::string packed;  ///< the bytes in the file
  std::uint16_t method = 0;
  std::uint64_t size = 0;  ///< unpacked
  std::uint64_t crc = 0;   ///< CRC-32 of the unpacked bytes
  std::uint16_t flags = 0;
};

enum class ZipNumbers { narrow, zip64 };

[[nodiscard]] inline ZipPart stored_part(std::string name, std::string data) {
  const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size()));
  const std::size_t size = data.size();
  return {std::move(name), std::move(data), 0, size, crc};
}

[[nodiscard]] inline ZipPart deflated_part(std::string name, std::string_view data) {
  ZipPart part = stored_part(std::move(name), std::string(data));
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  std::string packed(deflateBound(&stream, data.size()), '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  part.packed = std::move(packed);
  part.method = 8;
  return part;
}

namespace detail {
/// The fields that a local header and a directory entry have in common, from the version on.
inline std::string zip_fields(const ZipPart& part, ZipNumbers numbers, std::size_t extra) {
  const bool wide = numbers == ZipNumbers::zip64;
  return little_endian(wide ? 45 : 20, 2) + little_endian(part.flags, 2) + little_endian(part.method, 2) +
         little_endian(0x21u << 16, 4) + little_endian(part.crc, 4) +
         little_endian(wide ? ~0u : part.packed.size(), 4) + little_endian(wide ? ~0u : part.size, 4) +
         little_endian(part.name.size(), 2) + little_endian(extra, 2);
}

inline std::string zip64_extra(const std::vector<std::uint64_t>& values) {
  std::string field = little_endian(1, 2) + little_endian(8 * values.size(), 2);
  for (const std::uint64_t value : values) field += little_endian(value, 8);
  return field;
}

inline std::string local_header(const ZipPart& part, ZipNumbers numbers) {
  const std::string extra =
      numbers == ZipNumbers::zip64 ? zip64_extra({part.size, part.packed.size()}) : std::string();
  return "PK\3\4" + zip_fields(part, numbers, extra.size()) + part.name + extra;
}

inline std::string directory_entry(const ZipPart& part, std::uint64_t offset, ZipNumbers numbers) {
  const bool wide = numbers == ZipNumbers::zip64;
  const std::string extra = wide ? zip64_extra({part.size, part.packed.size(), offset}) : std::string();
  return "PK\1\2" + little_endian(20, 2) + zip_fields(part, numbers, extra.size()) + std::string(10, '\0') +
         little_endian(wide ? ~0u : offset, 4) + part.name + extra;
}
}  // namespace detail

[[nodiscard]] inline std::string zip_bytes(const std::vector<ZipPart>& parts,
                                           ZipNumbers numbers = ZipNumbers::narrow) {
  const bool wide = numbers == ZipNumbers::zip64;
  std::string bytes, directory;
  for (const ZipPart& part : parts) {
    directory += detail::directory_entry(part, bytes.size(), numbers);
    bytes += detail::local_header(part, numbers) + part.packed;
  }
  const std::size_t begin = bytes.size(), end = begin + directory.size(), count = parts.size();
  bytes += directory;
  if (wide) {
    bytes += "PK\6\6" + little_endian(44, 8) + little_endian(45, 2) + little_endian(45, 2) +
             little_endian(0, 8) + little_endian(count, 8) + little_endian(count, 8) +
             little_endian(directory.size(), 8) + little_endian(begin, 8);
    bytes += "PK\6\7" + little_endian(0, 4) + little_endian(end, 8) + little_endian(1, 4);
  }
  return bytes + "PK\5\6" + little_endian(0, 4) + little_endian(wide ? 0xFFFF : count, 2) +
         little_endian(wide ? 0xFFFF : count, 2) + little_endian(wide ? ~0u : directory.size(), 4) +
         little_endian(wide ? ~0u : begin, 4) + little_endian(0, 2);
}

}  // namespace halfscope
