// Request and tensors of a comparison of formats: the limit, what is held against each other, what is shown.
#pragma once

#include <string_view>
#include <vector>

#include "experiments/cli/formats/formats.hpp"

namespace halfscope {

/// "5%" or "0.05", the norm of the error over that of the tensor; "26dB", signal over noise. Throws
/// InvalidArgument.
[[nodiscard]] ErrorLimit parse_error_limit(std::string_view text);

/// The compared formats over all tensors; valid as long as `found` is.
[[nodiscard]] FormatComparison compare_formats(const FormatsFound& found);

/// Indices of the tensors by their largest error, cut to `top` of them; in the order of the files where there
/// are no more.
[[nodiscard]] std::vector<std::size_t> worst_tensors(const FormatComparison& comparison, std::size_t top);

}  // namespace halfscope
