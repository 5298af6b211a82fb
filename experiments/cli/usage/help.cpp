// CLI11's help, wrapped, and its errors with what would be right.
#include "experiments/cli/usage/help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include <halfscope/core/names.hpp>

#include "experiments/table/text_width.hpp"

namespace halfscope {
namespace {

constexpr std::size_t column = 30;  ///< column of the descriptions

std::size_t usable_width() {
  return std::min(help_width, output_width());
}

/// A name and its description beside it, or below where the name is long.
std::string help_row(const std::string& name, const std::string& description) {
  const std::string indent(column, ' ');
  std::string row = "  " + name;
  row += row.size() < column ? std::string(column - row.size(), ' ') : "\n" + indent;
  return row + wrapped(indent + description, usable_width(), indent).substr(column) + "\n";
}

class WrappedFormatter : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return help_row(make_option_name(option, is_positional) + make_option_opts(option),
                    make_option_desc(option));
  }
  [[nodiscard]] std::string make_subcommand(const CLI::App* command) const override {
    return help_row(command->get_display_name(true), command->get_description());
  }
};

/// The command whose words were read when the error was found.
const CLI::App* current_command(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? nullptr : commands.front();
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// Whether `word` is a number that begins with '-' but not with a digit, which CLI11 takes for options.
bool is_negative_number(std::string_view word) {
  return word.starts_with("-.") || word.starts_with("-inf") || word.starts_with("-nan") ||
         word.starts_with("-0x");
}

/// The first of the unexpected words.
std::string unexpected_word(const CLI::App& command, const std::string& word) {
  if (is_negative_number(word)) {
    return fmt::format(
        "'{}' is read as an option; put -- before the first operand, as in 'calc add -- 1 -.5'", word);
  }
  if (!word.starts_with('-'))
    return fmt::format("'{}' is one word too many for {}", word, command.get_name());
  const std::vector<std::string> names = option_names(command);
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string name = word.substr(0, word.find('='));
  return fmt::format("{} has no option '{}'{}", command.get_name(), name, did_you_mean(name, views));
}

}  // namespace

void format_help(CLI::App& app) {
  app.formatter(std::make_shared<WrappedFormatter>());
  app.get_formatter()->column_width(column);
}

void add_usages(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) {
    const auto usages = command_usages();
    const auto usage = std::find_if(usages.begin(), usages.end(), [&](const CommandUsage& entry) {
      return entry.command == command->get_name();
    });
    if (usage == usages.end()) throw std::logic_error("command without examples: " + command->get_name());
    std::string footer = "Examples:\n";
    for (const std::string_view example : usage->examples) footer += fmt::format("  {}\n", example);
    command->footer(footer + "\n" +
                    wrapped(fmt::format("Exit status: {}", usage->exit_statuses), usable_width(), "  "));
  }
}

std::vector<std::string> with_help_words(int count, const char* const* words) {
  std::vector<std::string> all(words + std::min(count, 1), words + count);
  if (all.empty()) return {"--help"};
  if (all[0] == "version") all[0] = "-V";
  if (all[0] != "help") return all;
  if (all.size() == 1) return {"--help"};
  return {all[1], "--help"};
}

std::string usage_error(const CLI::App& app, const CLI::Error& error) {
  const CLI::App* command = current_command(app);
  const std::string help = command == nullptr ? "see 'halfscope --help'"
                                              : fmt::format("see 'halfscope {} --help'", command->get_name());
  const std::vector<std::string> words = app.remaining(true);
  const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  if (!words.empty() && (is_extra || command == nullptr)) {
    return fmt::format("{}; {}", unexpected_word(command == nullptr ? app : *command, words.front()), help);
  }
  return fmt::format("{}; {}", error.what(), help);
}

}  // namespace halfscope
