// The manual page: every command with its options, examples and exit statuses.
#include <fmt/format.h>

#include "experiments/cli/usage/generate.hpp"
#include "experiments/cli/usage/help.hpp"
#include "experiments/cli/usage/version.hpp"

namespace halfscope {
namespace {

/// Text that roff prints as it is: no line begins with a command, and no hyphen becomes a dash.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += "\\&";
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string option_entry(const CLI::Option& option) {
  const bool is_positional = option.get_positional();
  const std::string name = is_positional ? option.get_name(true, false) : option.get_name(false, true);
  const bool takes_value = !is_positional && option.get_type_size() != 0;
  return fmt::format(".TP\n.B {}{}\n{}\n", roff(name),
                     takes_value ? " \\fI" + roff(option.get_type_name()) + "\\fR" : "",
                     roff(option.get_description()));
}

std::string command_section(const CLI::App& command) {
  std::string text =
      fmt::format(".SS halfscope {}\n{}\n", roff(command.get_name()), roff(command.get_description()));
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_group().empty()) text += option_entry(*option);
  }
  for (const CommandUsage& usage : command_usages()) {
    if (usage.command != command.get_name()) continue;
    text += ".P\nExamples:\n.nf\n";
    for (const std::string_view example : usage.examples) text += roff(example) + "\n";
    text += fmt::format(".fi\n.P\nExit status: {}\n", roff(usage.exit_statuses));
  }
  return text;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string text = fmt::format(
      ".TH HALFSCOPE 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\nhalfscope \\- half precision in training\n"
      ".SH SYNOPSIS\n.B halfscope\n.I command\n[\\fIoptions\\fR]\n.SH DESCRIPTION\n{}\n.SH COMMANDS\n",
      roff(version_line()), roff(app.get_description()));
  for (const CLI::App* command : app.get_subcommands({})) text += command_section(*command);
  return text;
}

}  // namespace halfscope
