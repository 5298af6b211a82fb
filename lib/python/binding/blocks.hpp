// Rounding to block formats, for halfscope.round.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

#include <halfscope/core/random.hpp>

namespace halfscope::python {

/// `array` in a block format, with blocks along `axis`, as an array of its framework. Throws InvalidArgument
/// for a format or an axis that does not exist, and for an array on a GPU.
[[nodiscard]] nanobind::object round_in_blocks(nanobind::handle array, const std::string& format,
                                               std::int64_t axis, const RandomStream& stream);

}  // namespace halfscope::python
