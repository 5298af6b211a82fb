// .npz: a zip archive of .npy arrays.
#pragma once

#include <memory>
#include <optional>

#include <halfscope/io/detail/input_file.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// Opens a .npz for `open_tensor_file`; `void_type` as in read_npy_array.
[[nodiscard]] std::unique_ptr<TensorFile> open_npz(InputFile file, const StatedType& void_type,
                                                   const NameFilter& wanted);

}  // namespace halfscope
