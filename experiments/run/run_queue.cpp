// Threads that take runs from a queue, and their common status line.
#include "experiments/run/run_queue.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

#include <halfscope/core/stderr_text.hpp>

#include "experiments/run/progress.hpp"
#include "experiments/run/status_line.hpp"
#include "experiments/run/stop_signals.hpp"
#include "sim/train/run.hpp"
#include "sim/train/start_weights.hpp"

namespace halfscope {
namespace {

std::string name_of(const RunIdentity& run) {
  return fmt::format("{} seed {}", run.arm, run.seed);
}

std::vector<QueuedRun> queued(const std::vector<PlannedRun>& runs) {
  std::vector<QueuedRun> queue;
  queue.reserve(runs.size());
  for (const PlannedRun& run : runs)
    queue.push_back({run.folder.identity().experiment, run.is_done() ? 0 : run.settings.config.steps});
  return queue;
}

std::string full_name_of(const RunIdentity& run) {
  return fmt::format("{} {}", run.experiment, name_of(run));
}

/// A run's last step, as its last line tells it.
struct LastStep {
  std::int64_t step = 0;
  float loss = 0;
  double scale = 1;
  bool skipped = false;
};

/// The line that a run leaves; one without a step was done before.
std::string last_line(const PlannedRun& run, const std::optional<LastStep>& last) {
  if (!last) return run.folder.path().string() + ": done before";
  return fmt::format("{}  step {}/{}  loss {:.4f}  scale {:g}{}", full_name_of(run.folder.identity()),
                     last->step, run.settings.config.steps, last->loss, last->scale,
                     last->skipped ? "  skipped" : "");
}

/// Prints the threads' messages, one at a time.
class Reporter {
 public:
  explicit Reporter(const std::vector<PlannedRun>& runs)
      : names_experiments_(are_of_several_experiments(runs)), progress_(queued(runs)) {}
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;
  ~Reporter() { status_.clear(); }

  void begin(std::size_t run, const RunIdentity& identity) {
    const std::lock_guard lock(mutex_);
    progress_.begin(run, names_experiments_ ? full_name_of(identity) : name_of(identity), passed());
  }
  void advance(std::size_t run, const StepRecord& record) {
    const std::lock_guard lock(mutex_);
    progress_.advance(run, record.step, record.loss, passed());
    if (status_.is_due()) status_.update(progress_.text());
  }
  void finish(std::size_t run, const std::string& line) {
    const std::lock_guard lock(mutex_);
    progress_.finish(run);
    status_.finish(fmt::format("{} {}", progress_.position(), line));
  }
  void fail(std::size_t run) {
    const std::lock_guard lock(mutex_);
    progress_.fail(run);
  }

 private:
  [[nodiscard]] double passed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

  bool names_experiments_;
  std::mutex mutex_;
  RunsProgress progress_;
  StatusLine status_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

class RunQueue {
 public:
  explicit RunQueue(const std::vector<PlannedRun>& runs)
      : runs_(runs), reasons_(runs.size()), ended_(runs.size(), false), reporter_(runs) {}

  /// Trains one run after the other until none is left; for several threads at once.
  void work() {
    for (std::size_t run = next_++; run < runs_.size() && StopSignals::received() == 0; run = next_++) {
      try {
        if (await_sources(run)) train(run);
      } catch (const std::bad_alloc&) {
        fail(run, "out of memory");
      } catch (const std::exception& error) {
        fail(run, error.what());
      }
      end(run);
    }
  }

  /// How to go on after a signal, once no thread is at work.
  [[nodiscard]] std::string stopped_line() const {
    return fmt::format(
        "stopped by {}: runs done: {} of {}, checkpoints saved: {}; go on with the same command and --resume",
        signal_name(StopSignals::received()), done_.load(), runs_.size(), stopped_.load());
  }

  /// Once no thread is at work.
  [[nodiscard]] std::vector<std::string> failures() const {
    std::vector<std::string> lines;
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      if (!reasons_[run]) continue;
      lines.push_back(fmt::format("{}: {}", full_name_of(runs_[run].folder.identity()), *reasons_[run]));
    }
    return lines;
  }

 private:
  /// The places of the runs whose weights `run` starts or learns from, all before it.
  [[nodiscard]] std::vector<std::size_t> sources_of(std::size_t run) const {
    std::vector<std::size_t> sources;
    for (const std::string& arm : source_arms(runs_[run].settings.config)) {
      const auto path = runs_[run].folder.of_arm(arm).path();
      for (std::size_t i = 0; i < run; ++i)
        if (runs_[i].folder.path() == path) sources.push_back(i);
    }
    return sources;
  }

  /// Waits until the sources of `run` are trained; false where a signal has stopped one before. Sources stand
  /// before what needs them, so that another thread has taken it.
  bool await_sources(std::size_t run) {
    if (runs_[run].is_done()) return true;
    std::unique_lock lock(ended_mutex_);
    for (const std::size_t source : sources_of(run)) {
      ended_change_.wait(lock, [&] { return ended_[source]; });
      if (reasons_[source])
        throw RuntimeFailure(
            fmt::format("{}, whose weights it needs, failed", name_of(runs_[source].folder.identity())));
    }
    return StopSignals::received() == 0;
  }
  void end(std::size_t run) {
    const std::lock_guard lock(ended_mutex_);
    ended_[run] = true;
    ended_change_.notify_all();
  }

  void fail(std::size_t run, const char* reason) {
    reasons_[run] = reason;
    reporter_.fail(run);
  }

  void train(std::size_t index) {
    const PlannedRun& run = runs_[index];
    std::optional<LastStep> last;
    reporter_.begin(index, run.folder.identity());
    const auto after_step = [&](const StepRecord& record) {
      last = {record.step, record.loss, record.scale, record.skipped};
      reporter_.advance(index, record);
    };
    const auto should_stop = [] { return StopSignals::received() != 0; };
    if (run.is_done()) run.folder.check_files();
    if (!run.is_done() &&
        run_training(run.settings, *run.dataset, run.folder, after_step, should_stop) == RunEnd::stopped) {
      ++stopped_;
      return;
    }
    ++done_;
    reporter_.finish(index, last_line(run, last));
  }

  const std::vector<PlannedRun>& runs_;
  std::vector<std::optional<std::string>> reasons_;  ///< why a run failed
  std::mutex ended_mutex_;
  std::condition_variable ended_change_;
  std::vector<bool> ended_;  ///< whether a run is over, done or not
  Reporter reporter_;
  std::atomic<std::size_t> next_ = 0, done_ = 0, stopped_ = 0;
};

/// Works on the queue with `jobs` threads, or with half of those that the system gives: memory is left for
/// the runs.
void work_in_threads(RunQueue& queue, std::size_t jobs) {
  std::atomic<std::size_t> workers = 0;  // not known yet
  std::vector<std::jthread> others;
  others.reserve(jobs);
  const auto work = [&](std::size_t number) {
    workers.wait(0);
    if (number < workers) queue.work();
  };
  for (std::size_t number = 1; number < jobs; ++number) {
    try {
      others.emplace_back(work, number);
    } catch (const std::exception& error) {  // no more threads, or no memory for one
      const std::size_t possible = (number + 1) / 2;
      print_stderr(fmt::format("note: {} runs at a time instead of {}: a thread cannot be started: {}\n",
                               possible, jobs, error.what()));
      jobs = possible;
    }
  }
  workers = jobs;
  workers.notify_all();
  work(0);
}

}  // namespace

std::vector<std::string> train_runs(const std::vector<PlannedRun>& runs, std::size_t jobs) {
  RunQueue queue(runs);
  work_in_threads(queue, jobs);
  std::vector<std::string> lines = queue.failures();
  const int signal = StopSignals::received();
  if (signal == 0) return lines;
  lines.push_back(queue.stopped_line());
  throw StoppedBySignal{signal, std::move(lines)};
}

}  // namespace halfscope
