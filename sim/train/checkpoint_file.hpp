// The file of a checkpoint, with a checksum over all that it holds.
#pragma once

#include <filesystem>

#include <halfscope/io/safetensors/safetensors.hpp>

namespace halfscope {

/// Writes `checkpoint` with the CRC-32 of its metadata, names, shapes and numbers as one more entry of the
/// metadata. Throws as `write_safetensors` does.
void write_checkpoint(const std::filesystem::path& path, SafetensorsFile checkpoint);

/// Reads a checkpoint, or weights of another program. Throws as `read_safetensors` does, and InvalidArgument
/// with both checksums where the contents are not what `write_checkpoint` wrote. A file without a checksum,
/// as earlier revisions wrote it, is read too.
[[nodiscard]] SafetensorsFile read_checkpoint(const std::filesystem::path& path);

}  // namespace halfscope
