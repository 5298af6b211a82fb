// Words of the command line before 0.1, which are refused until 0.2.
#pragma once

#include <string>
#include <vector>

namespace halfscope {

/// Throws InvalidArgument for a word of an older version, with the command line to type instead.
void refuse_old_words(const std::vector<std::string>& words);

}  // namespace halfscope
