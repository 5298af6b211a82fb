// Steps that language models take with a batch of texts.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "sim/models/model.hpp"

namespace halfscope {

/// Throws InvalidArgument, naming the model, unless the examples are texts whose labels are the next words.
void check_text(std::string_view model, const ModelSpec& spec);

/// (batch, time) -> (time, batch), in which a time step is contiguous.
[[nodiscard]] std::vector<std::int32_t> time_major(const std::vector<std::int32_t>& values, std::size_t time);

}  // namespace halfscope
