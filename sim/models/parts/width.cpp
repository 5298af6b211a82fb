// Rounding of channels.
#include "sim/models/parts/width.hpp"

#include <fmt/format.h>

#include <cmath>

#include "sim/models/parts/model_options.hpp"

namespace halfscope {

std::int64_t at_width(const ModelSpec& spec, std::int64_t channels, std::int64_t groups) {
  const double width = value_of(width_option, spec.options);
  const double exact = static_cast<double>(channels) * width / static_cast<double>(groups);
  const std::int64_t result = groups * std::llround(exact);
  if (result > 0) return result;
  throw InvalidArgument(fmt::format("width = {} leaves none of a layer's {} channels; give {:.2g} or more",
                                    width, channels,
                                    0.5 * static_cast<double>(groups) / static_cast<double>(channels)));
}

}  // namespace halfscope
