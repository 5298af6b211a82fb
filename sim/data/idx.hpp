// The IDX format of the MNIST family: bytes with a shape, plain or gzip-compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <halfscope/device/array.hpp>

namespace halfscope {

struct IdxArray {
  Shape shape;
  std::vector<std::uint8_t> values;  // row-major
};

/// Reads an IDX file of unsigned bytes with `dimensions` extents, none of them 0; gzip is told by the file's
/// first bytes, not by its name. Throws InvalidArgument with the file and the byte where it is not such a
/// file: wrong magic number, another number of dimensions, truncated, damaged (checksum) or with bytes left
/// over. Memory is bounded by what the file holds, not by what its header claims. Source: "The IDX file
/// format", yann.lecun.com/exdb/mnist; RFC 1952.
[[nodiscard]] IdxArray read_idx(const std::filesystem::path& path, std::size_t dimensions);

}  // namespace halfscope
