// The commands of the program, each adding itself to the command line.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace halfscope {

/// Each registers a subcommand that runs when it has been parsed; machine output goes to stdout.
void add_analyze_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_calc_command(CLI::App& app);
void add_compare_command(CLI::App& app);
void add_formats_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_list_command(CLI::App& app);
void add_memory_command(CLI::App& app);
void add_run_command(CLI::App& app);
void add_replay_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_updates_command(CLI::App& app);

/// The kinds of names that `halfscope list` takes.
[[nodiscard]] std::vector<std::string> list_kinds();

}  // namespace halfscope
