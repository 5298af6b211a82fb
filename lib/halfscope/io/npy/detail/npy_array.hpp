// An .npy array, alone in a file or as a member of an .npz archive: what its elements are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/io/detail/elements.hpp>
#include <halfscope/io/npy/detail/npy_header.hpp>

namespace halfscope {

struct NpyArray {
  NpyHeader header;
  std::int64_t elements = 0;
  std::vector<std::size_t> axes;            ///< see StoredTensor
  std::optional<ElementEncoding> encoding;  ///< nothing: not floating-point numbers that halfscope reads
};

/// Reads the header from `source`, the `size` bytes of the array, and checks that the elements fill the rest.
/// `void_type`, if given, is the type of elements that NumPy saves as raw bytes ("V2"). Throws
/// InvalidArgument.
[[nodiscard]] NpyArray read_npy_array(const ByteSource& source, std::uint64_t size, std::string_view where,
                                      const StatedType& void_type);

/// Reason of an array without an encoding: "descr "<i8" is not ...", and for raw bytes how to give them a
/// type.
[[nodiscard]] std::string why_not_read(std::string_view descr, std::string_view option);

}  // namespace halfscope
