// Scripts that complete the program's words in bash and zsh.
#include <fmt/format.h>

#include "experiments/cli/usage/generate.hpp"
#include "experiments/cli/usage/shell_words.hpp"

namespace halfscope {
namespace {

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : command.get_options()) {
    if (option->nonpositional() && !option->get_group().empty()) options.push_back(option);
  }
  return options;
}

/// "-q" and "--quiet" of an option that has both.
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

bool takes_value(const CLI::Option& option) {
  return option.get_type_size() != 0;
}

std::string joined_options(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : options_of(command)) {
    for (const std::string& name : names_of(*option)) words += (words.empty() ? "" : " ") + name;
  }
  return words;
}

/// The words after one of a command's options, and those that stand for its first argument.
std::string bash_values(const CLI::App& command) {
  std::string cases;
  for (const CLI::Option* option : options_of(command)) {
    if (!takes_value(*option)) continue;
    const std::vector<std::string> words = words_of(command.get_name(), *option);
    for (const std::string& name : names_of(*option)) {
      cases += words.empty() ? fmt::format("    {}:{}) values=; files=1 ;;\n", command.get_name(), name)
                             : fmt::format("    {}:{}) values={} ;;\n", command.get_name(), name,
                                           quoted_for_shell(fmt::format("{}", fmt::join(words, " "))));
    }
  }
  return cases;
}

std::string bash_arguments(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::vector<std::string> words = words_of(command.get_name(), *option);
    const std::string list = fmt::format(" {}", fmt::join(words, " "));
    return words.empty() ? fmt::format("    {}) values={}; files=1 ;;\n", command.get_name(),
                                       quoted_for_shell(joined_options(command)))
                         : fmt::format("    {}) values={} ;;\n", command.get_name(),
                                       quoted_for_shell(joined_options(command) + list));
  }
  return fmt::format("    {}) values={} ;;\n", command.get_name(), quoted_for_shell(joined_options(command)));
}

std::string zsh_description(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const CLI::App& command, const CLI::Option& option) {
  const std::vector<std::string> words = words_of(command.get_name(), option);
  if (words.empty()) return ":value:_files";
  std::string list;
  for (const std::string& word : words) {
    for (const char c : word) {
      if (c == '(' || c == ')' || c == ' ') list += '\\';
      list += c;
    }
    list += ' ';
  }
  list.pop_back();
  return ":value:(" + list + ")";
}

std::string zsh_arguments(const CLI::App& command) {
  std::string lines;
  const auto add = [&](const std::string& specification) {
    lines += " \\\n        " + quoted_for_shell(specification);
  };
  for (const CLI::Option* option : options_of(command)) {
    for (const std::string& name : names_of(*option)) {
      add(fmt::format("*{}[{}]{}", name, zsh_description(option->get_description()),
                      takes_value(*option) ? zsh_action(command, *option) : ""));
    }
  }
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) add("*" + zsh_action(command, *option));
  }
  return lines;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string values, arguments, commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    values += bash_values(*command);
    arguments += bash_arguments(*command);
    commands += (commands.empty() ? "" : " ") + command->get_name();
  }
  return fmt::format(R"(# bash completion for halfscope, written by 'halfscope generate bash'
_halfscope() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
  local values= files=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '{} {}' -- "$current")
    return
  fi
  case $command:$previous in
{}    *) case $command in
{}    esac ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current"; [[ -z $files ]] || compgen -f -- "$current")
}}
complete -o filenames -F _halfscope halfscope
)",
                     commands, joined_options(app), values, arguments);
}

std::string zsh_completion(const CLI::App& app) {
  std::string names, cases;
  for (const CLI::App* command : app.get_subcommands({})) {
    names += "    " +
             quoted_for_shell(command->get_name() + ":" + zsh_description(command->get_description())) + "\n";
    cases += fmt::format("    {})\n      _arguments -S{}\n      ;;\n", command->get_name(),
                         zsh_arguments(*command));
  }
  return fmt::format(R"(#compdef halfscope
# zsh completion, written by 'halfscope generate zsh'
_halfscope() {{
  local -a commands
  commands=(
{}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{}  esac
}}
_halfscope "$@"
)",
                     names, cases);
}

}  // namespace halfscope
