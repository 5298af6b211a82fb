// Where the user's cache is.
#pragma once

#include <filesystem>

namespace halfscope {

/// `halfscope` in $XDG_CACHE_HOME, or in ~/.cache; empty where no environment variable tells.
[[nodiscard]] std::filesystem::path cache_folder();

}  // namespace halfscope
