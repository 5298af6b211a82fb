// Python's dictionaries, lists and numbers as JSON values.
#pragma once

#include <nanobind/nanobind.h>

#include <halfscope/io/json/json_lines.hpp>

namespace halfscope::python {

/// `value` as json.dumps would have it, NaN and infinity kept, NumPy scalars as numbers and a Histogram as
/// its record; the text of its repr where JSON has no such value. Throws InvalidArgument for nesting deeper
/// than 64, and for a Histogram of another format than FP16, which no record tells.
[[nodiscard]] Json json_of(nanobind::handle value);

}  // namespace halfscope::python
