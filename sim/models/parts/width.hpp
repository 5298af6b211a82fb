// Channels of a published network at another width.
#pragma once

#include <cstdint>

#include "sim/models/model.hpp"

namespace halfscope {

/// `channels` times the model's width, rounded to a multiple of `groups`: at width 1 the channels themselves.
/// Throws InvalidArgument where none is left.
[[nodiscard]] std::int64_t at_width(const ModelSpec& spec, std::int64_t channels, std::int64_t groups = 1);

}  // namespace halfscope
