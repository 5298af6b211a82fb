// Words as a shell reads them.
#pragma once

#include <string>

namespace halfscope {

/// `text` within single quotes of a shell.
[[nodiscard]] std::string quoted_for_shell(const std::string& text);
/// The same for a word that a shell would not read as it stands.
[[nodiscard]] std::string shell_word(const std::string& text);

}  // namespace halfscope
