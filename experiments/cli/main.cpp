// The program: parses the command line and turns errors into exit statuses.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <limits>

#include <halfscope/core/error.hpp>
#include <halfscope/core/isa.hpp>
#include <halfscope/core/names.hpp>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/exit_status.hpp"
#include "experiments/cli/usage/help.hpp"
#include "experiments/cli/usage/old_words.hpp"
#include "experiments/cli/usage/version.hpp"
#include "experiments/run/stop_signals.hpp"
#include "sim/train/processes.hpp"
#include "sim/train/worker.hpp"

namespace halfscope {
namespace {

int end_with(ExitStatus status, const std::string& message) {
  print_error(message);
  return status;
}

/// Throws unless stdout has taken all that a command wrote.
void flush_output() {
  std::cout.flush();
  if (!std::cout) throw RuntimeFailure("standard output cannot be written");
}

/// A word that is no command gets the nearest one offered.
void check_command(const CLI::App& app, const std::vector<std::string>& words) {
  if (words[0].starts_with('-')) return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const std::vector<std::string_view> views(names.begin(), names.end());
  if (std::find(views.begin(), views.end(), words[0]) == views.end()) {
    throw InvalidArgument(unknown_name("command", words[0], views));
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

ExitStatus run_command(CLI::App& app, std::vector<std::string> words) {
  try {
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    app.parse(std::move(words));
  } catch (const Exit& exit) {
    return exit.status;
  } catch (const CLI::Success& request) {
    app.exit(request);  // --help and --version
  }
  return done;
}

/// Ends as a program without a handler does: a shell's $? is 128 and the signal's number. After SIGTERM, by
/// which schedulers end a job that is to go on later, it ends with a status of its own.
ExitStatus end_by_signal(const StoppedBySignal& stop) {
  for (const std::string& line : stop.lines) print_error(line);
  Workers::end_program();
  if (stop.signal == SIGTERM) return failed_run;
  std::signal(stop.signal, SIG_DFL);
  static_cast<void>(std::raise(stop.signal));
  std::_Exit(failed_run);  // the signal is blocked
}

int run_program(int count, const char* const* given) {
  CLI::App app{"halfscope shows what half precision does to training.", "halfscope"};
  format_help(app);
  app.set_version_flag("--version", version_line());
  app.add_flag_callback(
      "-V", [] { throw CLI::CallForVersion(version_details(), 0); },
      "Display version, revision, compiler and whether CUDA is in it, and exit");
  app.require_subcommand(1);
  add_list_command(app);
  add_run_command(app);
  add_report_command(app);
  add_compare_command(app);
  add_analyze_command(app);
  add_formats_command(app);
  add_updates_command(app);
  add_replay_command(app);
  add_memory_command(app);
  add_calc_command(app);
  add_bench_command(app);
  add_generate_command(app);
  add_usages(app);
  try {
    (void)active_isa();  // refuses a wrong HALFSCOPE_ISA before any command begins
    const std::vector<std::string> words = with_help_words(count, given);
    check_command(app, words);
    refuse_old_words(words);
    const ExitStatus status = run_command(app, words);
    flush_output();
    return status;
  } catch (const StoppedBySignal& stop) {
    return end_by_signal(stop);
  } catch (const CLI::Error& error) {
    return end_with(wrong_request, usage_error(app, error));
  } catch (const InvalidArgument& error) {
    return end_with(wrong_request, error.what());
  } catch (const OutOfMemory& error) {
    return end_with(failed_run, error.what());
  } catch (const std::bad_alloc&) {
    return end_with(failed_run, "out of memory");
  } catch (const std::exception& error) {
    return end_with(failed_run, error.what());
  }
}

/// Signals reach all processes of an mpirun. The first ends its step and saves it; the others go on until it
/// tells them to end.
int follow() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  try {
    work_for_first_process();
    return done;
  } catch (const std::exception& error) {
    print_error(fmt::format("process {} of {}: {}", process_index() + 1, process_count(), error.what()));
    abort_processes(failed_run);
  }
}

int run(int count, const char* const* given) {
  keep_freed_memory();
  try {
    const ProcessGroup group;
    if (process_index() > 0) return follow();
    const int status = run_program(count, given);
    Workers::end_program();
    return status;
  } catch (const std::exception& error) {
    return end_with(wrong_request, error.what());
  }
}

}  // namespace
}  // namespace halfscope

/// A file opened later would get the number of a standard stream that is closed, and the stream's text.
void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // Opened for reading alone: writing to it fails as to the closed stream.
    if (::fcntl(stream, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDONLY));
  }
}

int main(int count, char** words) {
  occupy_closed_streams();
  // A file that may not grow is an error to report, not a signal to die of.
  std::signal(SIGXFSZ, SIG_IGN);
  // As other filters: a reader of stdout that is gone, `| head`, ends the program without a word.
  std::signal(SIGPIPE, SIG_DFL);
  return halfscope::run(count, words);
}
