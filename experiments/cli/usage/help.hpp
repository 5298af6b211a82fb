// Help of the program and its commands: lines that fit, examples, exit statuses; and what is said of a wrong
// word.
#pragma once

#include <CLI/CLI.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope {

/// Columns of a line of help, where the terminal is not narrower.
inline constexpr std::size_t help_width = 100;

/// Makes the help of `app`, and of the commands that are added later, fit `help_width`.
void format_help(CLI::App& app);

/// How a command ends, and examples of it.
struct CommandUsage {
  std::string_view command;
  std::span<const std::string_view> examples;
  std::string_view exit_statuses;
};
[[nodiscard]] std::span<const CommandUsage> command_usages();
/// Puts examples and exit statuses under the help of each command. Throws std::logic_error for a command
/// without them.
void add_usages(CLI::App& app);

/// The words of the command line with "help COMMAND" and "version" as the options that they stand for, and no
/// words at all as --help.
[[nodiscard]] std::vector<std::string> with_help_words(int count, const char* const* words);

/// Text of `error` in one line, with the nearest option for an unknown one and the command whose help has
/// more.
[[nodiscard]] std::string usage_error(const CLI::App& app, const CLI::Error& error);

}  // namespace halfscope
