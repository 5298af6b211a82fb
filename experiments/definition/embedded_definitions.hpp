// The files of experiments/definitions as text.
#pragma once

#include <span>
#include <string_view>

namespace halfscope {

struct EmbeddedDefinition {
  std::string_view name;  ///< file name without .toml
  std::string_view text;
};

/// By name.
[[nodiscard]] std::span<const EmbeddedDefinition> embedded_definitions();

}  // namespace halfscope
