// The text of a status line.
#include "experiments/runner/progress.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace halfscope {
namespace {

/// "41 s", "12 min", "3.4 h".
std::string duration(double seconds) {
  constexpr double minute = 60, hour = 3600;
  if (seconds < 2 * minute) return fmt::format("{:.0f} s", seconds);
  if (seconds < 2 * hour) return fmt::format("{:.0f} min", seconds / minute);
  return fmt::format("{:.1f} h", seconds / hour);
}

}  // namespace

ExperimentProgress::ExperimentProgress(const std::vector<std::int64_t>& steps) {
  for (const std::int64_t count : steps) runs_.push_back({.steps = count});
}

void ExperimentProgress::begin(std::size_t run, std::string name) {
  runs_.at(run).stage = Stage::running;
  runs_.at(run).name = std::move(name);
}

void ExperimentProgress::advance(std::size_t run, std::int64_t step, double loss) {
  runs_.at(run).step = step;
  runs_.at(run).loss = loss;
  ++trained_;
}

std::int64_t ExperimentProgress::count(Stage stage) const {
  return std::count_if(runs_.begin(), runs_.end(), [&](const Run& run) { return run.stage == stage; });
}

std::string ExperimentProgress::position() const {
  return fmt::format("[{}/{}]", count(Stage::done), runs_.size());
}

std::string ExperimentProgress::text(double seconds) const {
  const std::int64_t failed = count(Stage::failed);
  std::string text = fmt::format("[{}/{} done,{} {} running]", count(Stage::done), runs_.size(),
                                 failed > 0 ? fmt::format(" {} failed,", failed) : "", count(Stage::running));
  std::int64_t left = 0;
  std::vector<std::string> running;
  for (const Run& run : runs_) {
    if (run.stage == Stage::waiting || run.stage == Stage::running) left += run.steps - run.step;
    if (run.stage != Stage::running) continue;
    running.push_back(
        run.step == 0 ? run.name + " begins"
                      : fmt::format("{} step {}/{} loss {:.3f}", run.name, run.step, run.steps, run.loss));
  }
  if (trained_ > 0) {
    const double rate = static_cast<double>(trained_) / seconds;
    text += fmt::format(" {} left", duration(static_cast<double>(left) / rate));
  }
  return fmt::format("{}  {}", text, fmt::join(running, " | "));
}

}  // namespace halfscope
