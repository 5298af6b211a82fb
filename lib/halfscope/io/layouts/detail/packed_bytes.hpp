// Bytes that may be two codes of four bits each.
#pragma once

#include <string>

#include <halfscope/io/layouts/detail/block_layout.hpp>
#include <halfscope/io/layouts/detail/file_parts.hpp>

namespace halfscope {

/// Whether integers have zero points, so that their range lies anywhere.
enum class ZeroPoints : std::uint8_t { none, own };

/// Why bytes with scales may be packed codes of four bits; empty where they are integers of eight, or of
/// fewer that lie in a byte each.
[[nodiscard]] std::string why_maybe_packed(const FileParts& parts, const StoredCodes& codes,
                                           const BlockLayout& layout, ZeroPoints zeros);

}  // namespace halfscope
