// Completion for shells and the manual page, out of the program's own options and tables.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace halfscope {

/// Words that can follow an option or stand for an argument.
struct WordList {
  std::string names;  ///< an option ("--format"), or of one command ("formats --format", "run EXPERIMENT")
  std::vector<std::string> words;  ///< none: files
};
[[nodiscard]] std::vector<WordList> word_lists();
/// The words of `name`; nothing where files may follow.
[[nodiscard]] std::vector<std::string> words_of(const std::string& command, const CLI::Option& option);

[[nodiscard]] std::string bash_completion(const CLI::App& app);
[[nodiscard]] std::string zsh_completion(const CLI::App& app);
/// In roff, for man.
[[nodiscard]] std::string manual_page(const CLI::App& app);

}  // namespace halfscope
