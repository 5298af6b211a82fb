// Text in small letters, as names are compared.
#pragma once

#include <string>
#include <string_view>

namespace halfscope {

/// ASCII's capital letters become small ones.
[[nodiscard]] inline std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

}  // namespace halfscope
