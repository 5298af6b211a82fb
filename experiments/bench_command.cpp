// halfscope bench: how fast this build is on this machine, each case beside a yardstick timed in the same
// run.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include <halfscope/core/names.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/io/json_lines.hpp>

#include "experiments/bench.hpp"
#include "experiments/commands.hpp"

namespace halfscope {
namespace {

struct Options {
  std::vector<std::string> names;
  bool json = false;
};

/// The named cases, or all; names are looked up before anything is timed.
std::vector<BenchCase> chosen(const std::vector<std::string>& names) {
  const std::span<const BenchCase> all = bench_cases();
  if (names.empty()) return {all.begin(), all.end()};
  std::vector<BenchCase> cases;
  for (const std::string& name : names) cases.push_back(find_in_table("benchmark", name, all));
  return cases;
}

void run(const Options& options) {
  const std::vector<BenchCase> cases = chosen(options.names);
  set_thread_count(1);
  Json list = Json::array();
  if (!options.json) {
    std::cout << fmt::format("{:<25} {:>8} {:<8} {:>7}  {}\n", "case", "value", "unit", "ratio", "against");
  }
  for (const BenchCase& entry : cases) {
    const BenchResult result = entry.run();
    if (options.json) {
      list.push_back({{"name", std::string(entry.name)},
                      {"value", result.value},
                      {"unit", result.unit},
                      {"ratio", result.ratio},
                      {"against", result.against}});
    } else {
      std::cout << fmt::format("{:<25} {:>8.2f} {:<8} {:>7.2f}  {}", entry.name, result.value, result.unit,
                               result.ratio, result.against)
                << std::endl;
    }
  }
  if (options.json) std::cout << to_text(Json{{"cases", list}});
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("bench", "how fast this build is on this machine");
  std::string names;
  for (const BenchCase& entry : bench_cases()) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  command->add_option("NAME", options->names, "of " + names + "; all of them by default");
  command->add_flag("--json", options->json, "as JSON on stdout");
  command->callback([options] { run(*options); });
}

}  // namespace halfscope
