// The checksum is of the contents, not of the file's bytes: it stands among them.
#include "sim/train/checkpoint_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>

#include <halfscope/core/error.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/growing_file.hpp>

namespace halfscope {
namespace {

constexpr const char* checksum_key = "checkpoint_crc32";

/// Numbers as they stand in the file, where every NaN is the same one.
void add_numbers(std::span<const float> values, FileExtent& extent) {
  std::array<float, 4096> stored;
  while (!values.empty()) {
    const auto piece = values.first(std::min(values.size(), stored.size()));
    std::ranges::transform(piece, stored.begin(), [](float x) { return with_one_nan(x); });
    extent.add({reinterpret_cast<const char*>(stored.data()), piece.size_bytes()});
    values = values.subspan(piece.size());
  }
}

std::string checksum_of(const SafetensorsFile& checkpoint) {
  FileExtent extent;
  for (const auto& [key, value] : checkpoint.metadata)
    if (key != checksum_key) extent.add(fmt::format("{}={}\n", key, value));
  for (const auto& [name, array] : checkpoint.tensors) {
    extent.add(fmt::format("{} {}\n", name, fmt::join(array.shape(), ",")));
    add_numbers(array.values(), extent);
  }
  return fmt::format("{:08x}", extent.crc32);
}

}  // namespace

void write_checkpoint(const std::filesystem::path& path, SafetensorsFile checkpoint) {
  checkpoint.metadata[checksum_key] = checksum_of(checkpoint);
  write_safetensors(path, checkpoint);
}

SafetensorsFile read_checkpoint(const std::filesystem::path& path) {
  SafetensorsFile checkpoint = read_safetensors(path);
  const auto stored = checkpoint.metadata.find(checksum_key);
  if (stored == checkpoint.metadata.end()) return checkpoint;
  const std::string found = checksum_of(checkpoint);
  if (stored->second != found) {
    throw InvalidArgument(fmt::format("{}: damaged: the checksum of its contents is {}, it notes '{:.40}'",
                                      printable(path), found, stored->second));
  }
  return checkpoint;
}

}  // namespace halfscope
