// halfscope bench: how fast this build is on this machine, each case beside a yardstick timed in the same
// run.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

#include <halfscope/core/isa.hpp>
#include <halfscope/core/names.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/device/device.hpp>
#include <halfscope/io/json/json_lines.hpp>

#include "experiments/cli/bench/bench.hpp"
#include "experiments/cli/commands.hpp"
#include "sim/train/environment.hpp"

namespace halfscope {
namespace {

struct BenchOptions {
  std::vector<std::string> names;
  std::string device = "cpu";
  bool json = false;
};

std::vector<BenchCase> cases_of_device(const std::string& device) {
  const std::span<const BenchCase> all = bench_cases();
  std::vector<BenchCase> cases(all.begin(), all.end());
  const Device wanted = parse_enum<Device>("device", device);
  std::erase_if(cases, [&](const BenchCase& entry) { return entry.device != wanted; });
  return cases;
}

/// The named cases, or all of the device; names are looked up before anything is timed.
std::vector<BenchCase> chosen(const BenchOptions& options) {
  if (options.names.empty()) return cases_of_device(options.device);
  const std::span<const BenchCase> all = bench_cases();
  const std::vector<std::string>& names = options.names;
  std::vector<BenchCase> cases;
  cases.reserve(names.size());
  for (const std::string& name : names) cases.push_back(find_in_table("benchmark", name, all));
  return cases;
}

/// "AMD EPYC, avx512": the processor, its instruction set in use, and the GPU if there is one.
std::string machine() {
  const auto gpu = describe_cuda_device();
  return fmt::format("{}, {}{}", processor_name(), name_of(active_isa()), gpu ? ", " + gpu->name : "");
}

Json bench_record(const BenchCase& entry, const BenchResult& result) {
  Json record{{"name", std::string(entry.name)},
              {"value", result.value},
              {"unit", result.unit},
              {"ratio", result.ratio},
              {"against", result.against}};
  if (!result.skipped.empty()) {
    record["value"] = record["ratio"] = nullptr;
    record["skipped"] = result.skipped;
  }
  return record;
}

std::string table_line(const BenchCase& entry, const BenchResult& result) {
  if (!result.skipped.empty()) return fmt::format("{:<26} skipped: {}", entry.name, result.skipped);
  return fmt::format("{:<26} {:>8.2f} {:<8} {:>7.2f}  {}", entry.name, result.value, result.unit,
                     result.ratio, result.against);
}

/// Where the case's device cannot be used it says why, as everything that asks for the device does.
BenchResult measure(const BenchCase& entry) {
  try {
    const DeviceScope usable(entry.device);
  } catch (const std::exception& missing) {
    BenchResult result;
    result.skipped = missing.what();
    return result;
  }
  return entry.run();
}

void run(const BenchOptions& options) {
  const std::vector<BenchCase> cases = chosen(options);
  set_thread_count(1);
  Json list = Json::array();
  if (!options.json) {
    std::cout << fmt::format("on {}, one thread\n\n{:<26} {:>8} {:<8} {:>7}  {}\n", machine(), "case",
                             "value", "unit", "ratio", "against");
  }
  for (const BenchCase& entry : cases) {
    const BenchResult result = measure(entry);
    if (options.json) {
      list.push_back(bench_record(entry, result));
    } else {
      std::cout << table_line(entry, result) << std::endl;
    }
  }
  if (options.json) std::cout << to_text(Json{{"machine", machine()}, {"cases", list}});
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "how fast this build is on this machine");
  std::string names;
  for (const BenchCase& entry : bench_cases()) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  command->add_option("NAME", options->names, "of " + names + "; by default all of the device");
  command->add_option("--device", options->device, "cpu or cuda: the cases that run there")
      ->capture_default_str();
  command->add_flag("--json", options->json, "as JSON on stdout");
  command->callback([options] { run(*options); });
}

}  // namespace halfscope
