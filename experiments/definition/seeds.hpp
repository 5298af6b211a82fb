// Seeds of runs: whole numbers from 0 to 4294967295.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace halfscope {

/// The seed that `text` writes in decimal. Throws InvalidArgument out of range and for anything else.
[[nodiscard]] std::int64_t parse_seed(std::string_view text);

/// Seeds separated by commas, "3,7". Throws InvalidArgument for a seed that is given twice.
[[nodiscard]] std::vector<std::int64_t> parse_seed_list(std::string_view text);

/// 0, 1, ..., `count` - 1.
[[nodiscard]] std::vector<std::int64_t> first_seeds(std::int64_t count);

}  // namespace halfscope
