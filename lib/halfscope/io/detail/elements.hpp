// From the bytes of a tensor as a file holds them to pieces of little-endian elements.
#pragma once

#include <bit>
#include <cstdint>

#include <halfscope/core/dtype.hpp>
#include <halfscope/io/detail/input_file.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// How a file writes an element.
struct ElementEncoding {
  DType type{};
  std::endian order = std::endian::little;
};

/// Elements [first, first + count) of a tensor.
struct ElementRange {
  ElementEncoding encoding;
  std::int64_t first = 0, count = 0;
};

/// Takes `count` elements from `source` and hands them to `sink`, see
/// TensorFile::read_stored.
void read_elements(const ElementEncoding& encoding, std::int64_t count, const ByteSource& source,
                   const StoredSink& sink);

/// Throws InvalidArgument unless `tensor` has the elements [first, first + count).
void check_range(const StoredTensor& tensor, std::int64_t first, std::int64_t count);

}  // namespace halfscope
