// halfscope_capture: writes what this machine's GPU makes of every captured set, and compares it with the
// models.
//
//   halfscope_capture --out FOLDER    one SET.capture file per set; exit status 1 where a binding one differs
//   halfscope_capture --check FILE... compares captures with the models; no GPU is needed
//   halfscope_capture --toolkit       the CUDA toolkit of this build
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <sstream>

#include <halfscope/core/error.hpp>

#include "tests/captures/capture_device.hpp"

namespace halfscope {
namespace {

enum Status { good = 0, differs = 1, wrong_request = 2, failed = 3 };

std::string verdict_of(const CaptureComparison& comparison) {
  if (comparison.different == 0) return fmt::format("equal in all {} outputs", comparison.outputs);
  return fmt::format("{} of {} differ{}: {}", comparison.different, comparison.outputs,
                     comparison.binding ? "" : " (no claim of the model)", comparison.first);
}

/// Counts what is said of captures.
struct CountSums {
  int equal = 0, different = 0, other = 0, skipped = 0;

  void add(const std::string& name, const CaptureComparison& comparison) {
    (comparison.different == 0 ? equal : comparison.binding ? different : other) += 1;
    std::cout << fmt::format("{:<24} {}\n", name, verdict_of(comparison)) << std::flush;
  }
  [[nodiscard]] Status status() const {
    std::cout << fmt::format("{} sets equal their model, {} differ, {} differ without a claim, {} skipped\n",
                             equal, different, other, skipped);
    return different == 0 ? good : differs;
  }
};

void write_capture(const std::filesystem::path& folder, const Capture& capture) {
  const std::filesystem::path path = folder / (capture.set + ".capture");
  std::ofstream file(path);
  file << to_text(capture);
  if (!file.flush()) throw RuntimeFailure(fmt::format("capture: {} cannot be written", path.string()));
}

Status capture_all(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const CaptureOrigin origin = capture_origin();
  std::cout << fmt::format("{} ({}), driver {}, toolkit {}\n", origin.device, origin.capability,
                           origin.driver, origin.toolkit);
  CountSums counters;
  const auto take = [&](std::string_view name, const std::vector<std::uint32_t>& results) {
    const Capture capture = make_capture(name, origin, results);
    write_capture(folder, capture);
    counters.add(capture.set, compare_with_model(capture));
  };
  for (const CaptureSet& set : capture_sets) {
    const std::string obstacle = obstacle_to(set);
    if (obstacle.empty()) {
      take(set.name, run_set(set));
      continue;
    }
    ++counters.skipped;
    std::cout << fmt::format("{:<24} skipped: {}\n", set.name, obstacle);
  }
  for (const CaptureFunction& function : capture_functions())
    take(function.name, run_function(function.name));
  return counters.status();
}

Status check_files(std::span<const std::string> paths) {
  CountSums counters;
  for (const std::string& path : paths) {
    std::ifstream file(path);
    if (!file) throw InvalidArgument(fmt::format("capture: {} cannot be read", path));
    std::ostringstream text;
    text << file.rdbuf();
    counters.add(path, compare_with_model(parse_capture(text.str())));
  }
  return counters.status();
}

Status run(const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == "--toolkit") {
    std::cout << toolkit_version() << '\n';
    return good;
  }
  if (words.size() == 2 && words[0] == "--out") return capture_all(words[1]);
  if (words.size() > 1 && words[0] == "--check") return check_files(std::span(words).subspan(1));
  throw InvalidArgument("usage: halfscope_capture --out FOLDER | --check FILE... | --toolkit");
}

}  // namespace
}  // namespace halfscope

int main(int count, char** words) {
  try {
    return halfscope::run({words + 1, words + count});
  } catch (const halfscope::InvalidArgument& error) {
    std::cerr << "halfscope_capture: " << error.what() << '\n';
    return halfscope::wrong_request;
  } catch (const std::exception& error) {
    std::cerr << "halfscope_capture: " << error.what() << '\n';
    return halfscope::failed;
  }
}
