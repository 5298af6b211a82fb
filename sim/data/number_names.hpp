// Numbers in words, in English and in French.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace halfscope {

/// 0 to 1,000,000 in American English ("two hundred one"). Throws InvalidArgument for other numbers.
[[nodiscard]] std::vector<std::string> english_number(std::int64_t number);

/// The same in the French of France ("deux cent un"), without its hyphens: "quatre vingts" is two words.
[[nodiscard]] std::vector<std::string> french_number(std::int64_t number);

}  // namespace halfscope
