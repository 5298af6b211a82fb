// The directory of a zip archive: which members lie where in the file (PKWARE's APPNOTE 6.3, zip64 included).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <halfscope/io/detail/input_file.hpp>

namespace halfscope {

enum class Packing : std::uint16_t { stored = 0, deflated = 8 };

struct ZipMember {
  std::string name;
  Packing packing{};
  std::uint32_t crc = 0;          ///< CRC-32 of the unpacked bytes
  std::uint64_t packed_size = 0;  ///< bytes in the file
  std::uint64_t size = 0;         ///< bytes when unpacked, as declared
  std::uint64_t begin = 0;        ///< the byte of the file where the packed ones start
};

/// The members of `file` in the order of its directory. Throws InvalidArgument with the byte or the member
/// for a damaged, encrypted or split archive, for a packing other than these two, for members that overlap,
/// lie outside or have one name, and for sizes that deflate cannot reach.
[[nodiscard]] std::vector<ZipMember> read_zip_directory(const InputFile& file);

/// "FILE: member NAME", which opens messages.
[[nodiscard]] std::string place_of(const ZipMember& member, const InputFile& file);

}  // namespace halfscope
