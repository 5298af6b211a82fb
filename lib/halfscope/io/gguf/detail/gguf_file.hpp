// GGUF: the format of llama.cpp, whose tensors are of a floating-point type or quantized in blocks.
#pragma once

#include <memory>
#include <string_view>

#include <halfscope/io/detail/input_file.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

inline constexpr std::string_view gguf_magic = "GGUF";

/// Versions 2 and 3, little-endian. Tensors of F64, F32, F16 and BF16 are read, those in blocks are codes,
/// all of them as many bytes as their type takes. Throws InvalidArgument with the byte.
[[nodiscard]] std::unique_ptr<TensorFile> open_gguf(InputFile file);

}  // namespace halfscope
