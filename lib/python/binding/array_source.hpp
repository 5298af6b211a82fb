// Import of a Python caller's arrays, with what makes one of them unreadable said in a line.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <halfscope/core/dtype.hpp>

namespace halfscope::python {

using Dlpack = nanobind::ndarray<nanobind::ro>;

/// `source` by DLPack or the buffer protocol. A PyTorch tensor is detached from the graph first, and a
/// negation that it puts off is made. Throws TypeError for what is no array, ValueError for a tensor without
/// its elements: freed storage, and wrappers such as DTensor and FakeTensor; `argument` opens the message,
/// which asks for `elements`. float8 and its relatives come as float32, which holds each of their numbers.
[[nodiscard]] Dlpack import_array(nanobind::handle source, std::string_view argument,
                                  std::string_view elements = "float32");

/// The same array once more, now with the promise that `stream` sees what was queued for it before.
[[nodiscard]] Dlpack import_for_stream(nanobind::handle source, std::uintptr_t stream);

[[nodiscard]] bool in_host_memory(const Dlpack& array);
/// In row-major order, without gaps.
[[nodiscard]] bool is_contiguous(const Dlpack& array);
/// In any order of the axes, without gaps and overlap: its elements are `size()` from `data()` on.
[[nodiscard]] bool is_dense(const Dlpack& array);
/// f16, bf16, f32 or f64; none for other types.
[[nodiscard]] std::optional<DType> float_type(const Dlpack& array);

}  // namespace halfscope::python
