// The text of a status line.
#include "experiments/run/progress.hpp"

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

RunsProgress::RunsProgress(const std::vector<QueuedRun>& runs) {
  for (const QueuedRun& run : runs) runs_.push_back({.experiment = run.experiment, .steps = run.steps});
}

void RunsProgress::begin(std::size_t run, std::string name, double time) {
  runs_.at(run).stage = Stage::running;
  runs_.at(run).name = std::move(name);
  runs_.at(run).time = time;
}

void RunsProgress::advance(std::size_t run, std::int64_t step, double loss, double time) {
  Run& its = runs_.at(run);
  for (Pace* pace : {&paces_[its.experiment], &all_}) {
    ++pace->steps;
    pace->seconds += time - its.time;
  }
  its.step = step;
  its.loss = loss;
  its.time = time;
}

std::int64_t RunsProgress::count(Stage stage) const {
  return std::count_if(runs_.begin(), runs_.end(), [&](const Run& run) { return run.stage == stage; });
}

double RunsProgress::seconds_per_step(const std::string& experiment) const {
  const auto own = paces_.find(experiment);
  const Pace& pace = own == paces_.end() ? all_ : own->second;
  return pace.seconds / static_cast<double>(pace.steps);
}

double RunsProgress::seconds_left() const {
  double seconds = 0;
  for (const Run& run : runs_) {
    if (run.stage == Stage::waiting || run.stage == Stage::running)
      seconds += static_cast<double>(run.steps - run.step) * seconds_per_step(run.experiment);
  }
  return seconds / static_cast<double>(std::max<std::int64_t>(count(Stage::running), 1));
}

std::string RunsProgress::position() const {
  return fmt::format("[{}/{}]", count(Stage::done), runs_.size());
}

std::string RunsProgress::text() const {
  const std::int64_t failed = count(Stage::failed);
  std::string text = fmt::format("[{}/{} done,{} {} running]", count(Stage::done), runs_.size(),
                                 failed > 0 ? fmt::format(" {} failed,", failed) : "", count(Stage::running));
  std::vector<std::string> running;
  for (const Run& run : runs_) {
    if (run.stage != Stage::running) continue;
    running.push_back(
        run.step == 0 ? run.name + " begins"
                      : fmt::format("{} step {}/{} loss {:.3f}", run.name, run.step, run.steps, run.loss));
  }
  if (all_.steps > 0) text += fmt::format(" {} left", duration(seconds_left()));
  return fmt::format("{}  {}", text, fmt::join(running, " | "));
}

}  // namespace halfscope
