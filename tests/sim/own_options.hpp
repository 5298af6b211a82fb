// Options of several models, for a test that loops over them.
#pragma once

#include <string_view>

#include "sim/models/models.hpp"

namespace halfscope {

/// The options among `options` that the model takes.
[[nodiscard]] inline OptionValues own_options(std::string_view model, OptionValues options) {
  const OptionTable& own = find_in_table("model", model, model_table).kind.options;
  std::erase_if(options, [&](const auto& option) { return own.find(option.first) == nullptr; });
  return options;
}

}  // namespace halfscope
