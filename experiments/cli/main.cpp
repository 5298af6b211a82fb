// The program: parses the command line and turns errors into exit statuses.
#include <fmt/format.h>
#include <unistd.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <csignal>
#include <iostream>
#include <limits>

#include <halfscope/core/error.hpp>
#include <halfscope/core/names.hpp>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/exit_status.hpp"

namespace halfscope {
namespace {

int end_with(ExitStatus status, const std::string& message) {
  print_error(message);
  return status;
}

/// What a command wrote must have arrived.
void flush_output() {
  std::cout.flush();
  if (!std::cout) throw RuntimeFailure("standard output cannot be written");
}

/// A word that is no command gets the nearest one offered.
void check_command(const CLI::App& app, int count, const char* const* words) {
  if (count < 2 || words[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const std::vector<std::string_view> views(names.begin(), names.end());
  if (std::find(views.begin(), views.end(), words[1]) == views.end()) {
    throw InvalidArgument(unknown_name("command", words[1], views));
  }
}

/// A step frees its arrays, and the next one asks for as many: glibc would give some back to the system in
/// between, and every page that comes back costs a fault.
void keep_freed_memory() {
#if defined(__GLIBC__)
  constexpr int most_glibc_takes = 32 << 20;
  mallopt(M_MMAP_THRESHOLD, most_glibc_takes);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

int run(int count, const char* const* words) {
  keep_freed_memory();
  CLI::App app{"halfscope shows what half precision does to training.", "halfscope"};
  app.set_version_flag("--version", std::string("halfscope ") + HALFSCOPE_VERSION);
  app.require_subcommand(1);
  add_list_command(app);
  add_run_command(app);
  add_report_command(app);
  add_compare_command(app);
  add_analyze_command(app);
  add_replay_command(app);
  add_calc_command(app);
  add_bench_command(app);
  try {
    check_command(app, count, words);
    ExitStatus status = done;
    try {
      app.parse(count, words);
    } catch (const Exit& exit) {
      status = exit.status;
    }
    flush_output();
    return status;
  } catch (const CLI::Success& request) {
    return app.exit(request);  // --help and --version
  } catch (const CLI::Error& error) {
    return end_with(wrong_request, std::string(error.what()) + "; see 'halfscope --help'");
  } catch (const InvalidArgument& error) {
    return end_with(wrong_request, error.what());
  } catch (const std::exception& error) {
    return end_with(failed_run, error.what());
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
