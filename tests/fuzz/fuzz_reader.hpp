// Body of every fuzz target: open the input as a file and read it; only InvalidArgument is a right error.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <halfscope/core/error.hpp>
#include <halfscope/io/detail/input_file.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// Bytes that have a path and never reach a disk.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* bytes, std::size_t size)
      : descriptor_(::memfd_create("input", MFD_CLOEXEC)) {
    if (::write(descriptor_.number(), bytes, size) != static_cast<ssize_t>(size)) std::abort();
  }
  [[nodiscard]] std::filesystem::path path() const {
    return "/proc/self/fd/" + std::to_string(descriptor_.number());
  }

 private:
  Descriptor descriptor_;
};

/// Reads elements from the start and from the middle, so that compressed data is left and found again. Stops
/// before a bomb costs the fuzzer its time.
inline void read_all_tensors(const TensorFile& file) {
  constexpr std::int64_t most = 1 << 18;
  std::int64_t left = most;
  for (std::size_t i = 0; i < file.tensors().size() && left > 0; ++i) {
    const std::int64_t elements = file.tensors()[i].elements, count = std::min(elements, left);
    const std::int64_t part = count / 3;
    std::int64_t seen = 0;
    const ElementSink sink = [&](std::span<const float> piece) {
      seen += static_cast<std::int64_t>(piece.size());
      if (std::count(piece.begin(), piece.end(), 0x1.234p5f) < 0) std::abort();  // touches every element
    };
    file.read(i, 0, part, sink);
    file.read(i, part, count - part, sink);
    if (seen != count) std::abort();
    left -= count + 1;
  }
}

/// Runs `read` on the input as a file. Any error but a InvalidArgument of one line escapes, which ends the
/// fuzzer.
template <typename Read>
int fuzz_file(const std::uint8_t* bytes, std::size_t size, Read&& read) {
  const MemoryFile input(bytes, size);
  try {
    read(InputFile(input.path()));
  } catch (const InvalidArgument& error) {
    const std::string_view message = error.what();
    if (message.size() > 1000 || message.find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}

}  // namespace halfscope
