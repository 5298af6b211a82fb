// Progress of a request: how far its runs are, and how long the rest takes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace halfscope {

/// A run in the queue. Steps of one experiment take about as long as each other.
struct QueuedRun {
  std::string experiment;
  std::int64_t steps = 0;
};

/// Runs are known by their place in the queue, times are seconds after a common begin.
class RunsProgress {
 public:
  explicit RunsProgress(const std::vector<QueuedRun>& runs);

  void begin(std::size_t run, std::string name, double time);
  /// The run has trained its step `step`; a resumed one begins with a later step than 1.
  void advance(std::size_t run, std::int64_t step, double loss, double time);
  /// The run is done, whatever number of steps it has trained.
  void finish(std::size_t run) { runs_.at(run).stage = Stage::done; }
  void fail(std::size_t run) { runs_.at(run).stage = Stage::failed; }

  /// "[3/12" and "]": the runs that are done, without the failed ones, of all.
  [[nodiscard]] std::string position() const;
  /// "[3/12 done, 2 running] 41 s left  fp16_s8 seed 1 step 120/200 loss 0.610 | fp32 seed 0 ...". The time
  /// left is that of all runs: their steps at their experiment's rate so far, or at that of all steps where
  /// none of it is known, as many runs at a time as there are now.
  [[nodiscard]] std::string text() const;

 private:
  enum class Stage : std::uint8_t { waiting, running, done, failed };
  struct Run {
    std::string experiment;
    std::int64_t steps = 0;
    Stage stage = Stage::waiting;
    std::string name{};
    std::int64_t step = 0;  ///< the latest
    double loss = 0;
    double time = 0;  ///< time of its latest step, or of its begin
  };
  /// Steps that were trained, and the runs' time for them.
  struct Pace {
    std::int64_t steps = 0;
    double seconds = 0;
  };

  [[nodiscard]] std::int64_t count(Stage stage) const;
  [[nodiscard]] double seconds_per_step(const std::string& experiment) const;
  [[nodiscard]] double seconds_left() const;

  std::vector<Run> runs_{};
  std::map<std::string, Pace> paces_{};  ///< by experiment
  Pace all_{};
};

}  // namespace halfscope
