// Words of a text for language models: the King James Bible of Debian's bible-kjv, or any UTF-8 text.
#pragma once

#include <memory>
#include <string>

#include "sim/data/dataset.hpp"

namespace halfscope {

/// An example is a window of spec.sequence_length tokens with the token that follows each as its label; see
/// sim/data/words.hpp for what a token is. The last 5 % of the tokens are the test split, cut into
/// consecutive windows; training windows start at every token before. `spec.data` is a text, or empty for
/// what the program `bible` prints. Throws InvalidArgument where there is no text, no word in it or not
/// enough of them, and for a vocabulary below 2.
[[nodiscard]] std::unique_ptr<Dataset> open_kjv_text(const DatasetSpec& spec);

}  // namespace halfscope
