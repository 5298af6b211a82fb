// Progress of an experiment: how far its runs are, and how long the rest takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace halfscope {

/// Runs are known by their place in the queue.
class ExperimentProgress {
 public:
  /// The steps of each run.
  explicit ExperimentProgress(const std::vector<std::int64_t>& steps);

  void begin(std::size_t run, std::string name);
  /// The run has trained its step `step`; a resumed one begins with a later step than 1.
  void advance(std::size_t run, std::int64_t step, double loss);
  /// The run is done, whatever number of steps it has trained.
  void finish(std::size_t run) { runs_.at(run).stage = Stage::done; }
  void fail(std::size_t run) { runs_.at(run).stage = Stage::failed; }

  /// "[3/12" and "]": the runs that are done, without the failed ones, of all.
  [[nodiscard]] std::string position() const;
  /// "[3/12 done, 2 running] 41 s left  fp16_s8 seed 1 step 120/200 loss 0.610 | fp32 seed 0 ...", at so many
  /// seconds after the first run began. The time left is that of all runs: their steps at the rate so far.
  [[nodiscard]] std::string text(double seconds) const;

 private:
  enum class Stage : std::uint8_t { waiting, running, done, failed };
  struct Run {
    std::int64_t steps = 0;
    Stage stage = Stage::waiting;
    std::string name{};
    std::int64_t step = 0;  ///< the latest
    double loss = 0;
  };

  [[nodiscard]] std::int64_t count(Stage stage) const;

  std::vector<Run> runs_{};
  std::int64_t trained_ = 0;  ///< steps, of all runs
};

}  // namespace halfscope
