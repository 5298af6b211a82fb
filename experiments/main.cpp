// The program: parses the command line and turns errors into exit statuses.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include <halfscope/core/error.hpp>
#include <halfscope/core/names.hpp>
#include "experiments/commands.hpp"

namespace halfscope {
namespace {

enum ExitStatus { done = 0, wrong_request = 2, failed_run = 3 };

std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

int complain(ExitStatus status, const std::string& message) {
  fmt::print(stderr, "halfscope: {}\n", one_line(message));
  return status;
}

/// A word that is no command gets the nearest one offered.
void check_command(const CLI::App& app, int count, const char* const* words) {
  if (count < 2 || words[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const std::vector<std::string_view> views(names.begin(), names.end());
  if (std::find(views.begin(), views.end(), words[1]) == views.end()) {
    throw RequestError(unknown_name("command", words[1], views));
  }
}

int run(int count, const char* const* words) {
  CLI::App app{"halfscope shows what half precision does to training.", "halfscope"};
  app.set_version_flag("--version", std::string("halfscope ") + HALFSCOPE_VERSION);
  app.require_subcommand(1);
  add_list_command(app);
  add_run_command(app);
  add_report_command(app);
  add_replay_command(app);
  add_calc_command(app);
  add_bench_command(app);
  try {
    check_command(app, count, words);
    app.parse(count, words);
    std::cout.flush();
    if (!std::cout) throw RunError("standard output cannot be written");
    return done;
  } catch (const CLI::Success& request) {
    return app.exit(request);  // --help and --version
  } catch (const CLI::Error& error) {
    return complain(wrong_request, std::string(error.what()) + "; see 'halfscope --help'");
  } catch (const RequestError& error) {
    return complain(wrong_request, error.what());
  } catch (const std::exception& error) {
    return complain(failed_run, error.what());
  }
}

}  // namespace
}  // namespace halfscope

int main(int count, char** words) {
  // A file that may not grow, or a reader that is gone, is an error to report, not a signal to die of.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  return halfscope::run(count, words);
}
