// Globs of layers' names.
#pragma once

#include <fnmatch.h>

#include <string>
#include <string_view>

namespace halfscope {

/// Whether a layer's name matches a glob of the shell; "*" matches all.
[[nodiscard]] inline bool matches_glob(const std::string& glob, std::string_view layer) {
  return glob == "*" || fnmatch(glob.c_str(), std::string(layer).c_str(), 0) == 0;
}

}  // namespace halfscope
