// Files whose tensors lie uncompressed in them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <halfscope/io/detail/input_file.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// Readers that `open_tensor_file` calls, one for each format; `name` is the tensor's.
[[nodiscard]] std::unique_ptr<TensorFile> open_safetensors(InputFile file);
[[nodiscard]] std::unique_ptr<TensorFile> open_npy(InputFile file, std::string name,
                                                   const StatedType& void_type);
[[nodiscard]] std::unique_ptr<TensorFile> open_raw(InputFile file, std::string name, DType type);

}  // namespace halfscope
