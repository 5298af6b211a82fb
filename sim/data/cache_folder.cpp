// Looks at the environment.
#include "sim/data/cache_folder.hpp"

#include <cstdlib>

namespace halfscope {

std::filesystem::path cache_folder() {
  const char *const cache = std::getenv("XDG_CACHE_HOME"), *const home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return std::filesystem::path(cache) / "halfscope";
  if (home != nullptr && *home != '\0') return std::filesystem::path(home) / ".cache" / "halfscope";
  return {};
}

}  // namespace halfscope
