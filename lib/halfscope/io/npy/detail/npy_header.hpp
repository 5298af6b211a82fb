// The header of an .npy array (NumPy's "NEP 1" format, versions 1 to 3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <halfscope/device/array.hpp>
#include <halfscope/io/detail/input_file.hpp>

namespace halfscope {

struct NpyHeader {
  std::string descr;           ///< "<f4"; a structured type as it is written, with its brackets
  Shape shape;                 ///< the extents as the user indexes them, whatever the order in the file
  bool fortran_order = false;  ///< the first axis moves fastest in the file
  std::uint64_t data_begin = 0;
};

inline constexpr std::string_view npy_magic = "\x93NUMPY";

/// Reads the header of an array that takes `size` bytes, header included, in the file or archive member
/// `where`. Throws InvalidArgument with the byte that is wrong.
[[nodiscard]] NpyHeader read_npy_header(const ByteSource& source, std::uint64_t size, std::string_view where);

}  // namespace halfscope
