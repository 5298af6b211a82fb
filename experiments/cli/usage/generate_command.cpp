// halfscope generate: completion for bash and zsh, and the manual page.
#include <iostream>
#include <memory>

#include <halfscope/core/error.hpp>
#include <halfscope/core/names.hpp>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/usage/generate.hpp"

namespace halfscope {
namespace {

struct Kind {
  std::string_view name;
  std::string (*write)(const CLI::App& app);
};
constexpr std::array kinds{Kind{"bash", bash_completion}, Kind{"zsh", zsh_completion},
                           Kind{"man", manual_page}};

}  // namespace

void add_generate_command(CLI::App& app) {
  auto kind = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("generate", "completion for a shell, or the manual page");
  command->add_option("KIND", *kind, "bash, zsh or man")->required();
  command->callback([kind, &app] { std::cout << find_in_table("kind", *kind, kinds).write(app); });
}

}  // namespace halfscope
