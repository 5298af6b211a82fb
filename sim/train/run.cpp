// The training loop with its records, checkpoints and summary.
#include "sim/train/run.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

#include <halfscope/core/stderr_text.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/folder_lock.hpp>

#include "sim/train/lint.hpp"
#include "sim/train/processes.hpp"
#include "sim/train/rank_gradients.hpp"
#include "sim/train/run_summary.hpp"
#include "sim/train/start_weights.hpp"
#include "sim/train/step_memory.hpp"
#include "sim/train/worker.hpp"

namespace halfscope {
namespace {

using Clock = std::chrono::steady_clock;

void start_trainer(Trainer& trainer, const TrainConfig& config, const SafetensorsFile& weights) {
  try {
    trainer.start_from(weights);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("start_from = {}: {}", config.start_from, error.what()));
  }
}

std::string memory_advice(const RunSettings& settings, const std::bad_alloc& error) {
  const auto* known = dynamic_cast<const OutOfMemory*>(&error);
  return fmt::format("{}; the model is {}, the batch {}: ask for smaller sizes, or for fewer --jobs",
                     known != nullptr ? known->what() : "out of memory", settings.config.model,
                     settings.config.batch);
}

std::string reason_of(const RunSettings& settings, const std::exception& error) {
  const auto* memory = dynamic_cast<const std::bad_alloc*>(&error);
  return memory != nullptr ? memory_advice(settings, *memory) : error.what();
}

void add_gap(const LogProbabilityGap& gap, Json& summary) {
  summary["log_probability_gap"] = gap.rms;
  summary["log_probability_bias"] = gap.mean;
  summary["largest_log_probability_gap"] = gap.largest;
  summary["kl_divergence"] = gap.divergence;
}

/// One run in progress.
class Run {
 public:
  Run(const RunSettings& settings, const Dataset& dataset, const RunFolder& folder, const FolderLock& lock)
      : settings_(settings),
        config_(settings.config),
        data_summary_(dataset.summary()),
        memory_(step_memory(settings, dataset).items),
        folder_(folder),
        lock_(lock),
        trainer_(settings, dataset),
        records_(folder.path()) {}

  void begin() {
    const std::string metrics = printable(folder_.path() / "metrics.jsonl");
    folder_.load(
        records_,
        [&](std::string_view line, std::size_t number) {
          recorded_.add(parse_json(line, fmt::format("{}: line {}", metrics, number)));
        },
        [&](const SafetensorsFile& checkpoint) { trainer_.restore(checkpoint); });
    diverged_ = trainer_.steps_done() > 0 && !trainer_.weights_finite();
    saved_step_ = trainer_.steps_done();
    if (trainer_.steps_done() == 0) start();
    folder_.begin(settings_, trainer_.steps_done(), data_summary_);
  }

  RunEnd train(const StepFunction& after_step, const StopFunction& should_stop) {
    const std::int64_t first = trainer_.steps_done();
    const Workers workers(settings_, trainer_);
    while (trainer_.steps_done() < config_.steps && !diverged_) {
      const auto begin = Clock::now();
      reset_peak_device_bytes();
      const StepRecord record = step(workers);
      if (settings_.device == Device::cuda) peak_bytes_ = std::max(peak_bytes_, peak_device_bytes());
      seconds_ += std::chrono::duration<double>(Clock::now() - begin).count();
      finish_step(record);
      after_step(record);
      if (should_stop && should_stop() && !is_at_end()) return stop();
    }
    steps_here_ = trainer_.steps_done() - first;
    if (steps_here_ == 0 && !diverged_)
      evaluation_ = trainer_.evaluate();  // killed after its last checkpoint
    if (!diverged_) gap_ = trainer_.compare_executions();
    return RunEnd::done;
  }

  [[nodiscard]] Json summary() const {
    const RunIdentity& identity = folder_.identity();
    Json json{{"format_version", results_format_version},
              {"experiment", identity.experiment},
              {"arm", identity.arm},
              {"seed", identity.seed},
              {"steps", trainer_.steps_done()},
              {"diverged", diverged_},
              {"diverged_step", diverged_ ? Json(trainer_.steps_done()) : Json()},
              {"metric", diverged_ ? Json() : Json(evaluation_.metric)},
              {"test_loss", diverged_ ? Json() : Json(evaluation_.loss)}};
    if (!diverged_ && evaluation_.accuracy) json["accuracy"] = *evaluation_.accuracy;
    recorded_.write_to(json);
    if (gap_) add_gap(*gap_, json);
    add_initial(json);
    json["lint"] = Json::array();
    for (const Finding& finding : lint(settings_)) json["lint"].push_back(to_json(finding));
    // A library's sums have an order of their own, which changes with its version and the GPU.
    json["deterministic"] = settings_.policy.products.order != AccumulateOrder::cublas;
    json["memory"] = to_json(memory_);
    json["peak_device_bytes"] = peak_bytes_ == 0 ? Json() : Json(peak_bytes_);
    json["seconds"] = seconds_;
    json["seconds_per_step"] = steps_here_ == 0 ? Json() : Json(seconds_ / static_cast<double>(steps_here_));
    return json;
  }

 private:
  void start() {
    if (!config_.start_from.empty())
      start_trainer(trainer_, config_, read_weights(start_of(config_), folder_));
  }

  /// Loss and metric of the model before its first update, null where unknown: no training that works ends
  /// far beyond them.
  void add_initial(Json& json) const {
    const std::optional<double> loss = recorded_.initial_loss();
    const std::optional<double> metric = loss ? trainer_.metric_at_loss(*loss) : std::nullopt;
    json["initial_loss"] = loss ? Json(*loss) : Json();
    json["initial_metric"] = metric ? Json(*metric) : Json();
  }

  StepRecord step(const Workers& workers) {
    workers.step();
    if (process_count() == 1) return trainer_.step();
    try {
      return trainer_.step();
    } catch (const std::exception& error) {  // the others may be in the middle of the step
      const std::string reason = reason_of(settings_, error);
      folder_.fail(reason);
      print_stderr(fmt::format("halfscope: process 1 of {}: {}\n", process_count(), reason));
      abort_processes(3);
    }
  }

  [[nodiscard]] bool is_at_end() const { return diverged_ || trainer_.steps_done() == config_.steps; }

  void finish_step(const StepRecord& record) {
    diverged_ = record.diverged;
    const bool last = record.step == config_.steps;
    const bool evaluates =
        last || (config_.evaluation.every > 0 && record.step % config_.evaluation.every == 0);
    if (evaluates && !diverged_) evaluation_ = trainer_.evaluate();
    RecordText text;
    recorded_.add(append_record(text, record, evaluates && !diverged_ ? &evaluation_ : nullptr));
    records_.add(text);
    const bool saves = config_.checkpoint_every > 0 && record.step % config_.checkpoint_every == 0;
    if (is_at_end() || saves) save();
  }

  void save() {
    lock_.renew();
    if (is_at_end() && !evaluation_.samples.empty()) folder_.save_samples(evaluation_.samples);
    folder_.save(records_, trainer_.checkpoint());
    saved_step_ = trainer_.steps_done();
  }

  RunEnd stop() {
    if (saved_step_ != trainer_.steps_done()) save();
    folder_.stop(saved_step_);
    return RunEnd::stopped;
  }

  const RunSettings& settings_;
  const TrainConfig& config_;  ///< the settings' numbers
  std::string data_summary_;
  std::vector<MemoryItem> memory_;  ///< a step's memory, counted
  const RunFolder& folder_;
  const FolderLock& lock_;
  Trainer trainer_;
  RecordLog records_;
  RunSummary recorded_;  ///< by all records, earlier ones included
  Evaluation evaluation_;
  std::optional<LogProbabilityGap> gap_{};
  bool diverged_ = false;
  double seconds_ = 0;
  std::int64_t steps_here_ = 0, saved_step_ = 0;
  std::int64_t peak_bytes_ = 0;  ///< most bytes of a step's arrays on the device, in the steps so far
};

struct StepFunctions {
  const StepFunction& after_step;
  const StopFunction& should_stop;
};

/// A run's folder, which nobody else writes to.
struct HeldFolder {
  const RunFolder& folder;
  const FolderLock& lock;
};

/// A link in a run's folder, which somebody else may have made, would replace a file outside of it. Links to
/// folders pass: a checkpoint may lie on another disk.
void refuse_links(const std::filesystem::path& folder) {
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::end(entry); entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_symlink(ignored) || entry->is_directory(ignored)) continue;
    throw InvalidArgument(
        fmt::format("{}: a link to a file, which the run would replace; put a copy of the file in its place, "
                    "or remove it",
                    printable(entry->path())));
  }
}

RunEnd train_in(const HeldFolder& held, const RunSettings& settings, const Dataset& dataset,
                const StepFunctions& functions) {
  const RunFolder& folder = held.folder;
  const RunSettings taught = with_teacher(settings, &folder);
  Run run(taught, dataset, folder, held.lock);
  run.begin();
  if (run.train(functions.after_step, functions.should_stop) == RunEnd::stopped) return RunEnd::stopped;
  folder.check_files();
  held.lock.renew();
  folder.finish(run.summary());
  return RunEnd::done;
}

}  // namespace

void check_training(const RunSettings& settings, const Dataset& dataset) {
  const TrainConfig& config = settings.config;
  check_processes(settings);
  try {
    Trainer trainer(with_teacher(settings), dataset);
    const WeightsSetting start = start_of(config);
    if (!start.value.empty() && !start.arm()) start_trainer(trainer, config, read_weights(start));
    trainer.try_example();
  } catch (const std::bad_alloc& error) {
    throw RuntimeFailure(memory_advice(settings, error));
  }
}

RunEnd run_training(const RunSettings& settings, const Dataset& dataset, const RunFolder& folder,
                    const StepFunction& after_step, const StopFunction& should_stop) {
  const FolderLock lock(folder.path(),
                        {"is training this run; wait for it and add --resume, or give another --out"});
  refuse_links(folder.path());
  refuse_links(folder.path() / "checkpoint");
  if (folder.exists()) folder.check_same(settings);
  if (folder.is_done()) return RunEnd::done;
  try {
    return train_in({folder, lock}, settings, dataset, {after_step, should_stop});
  } catch (const LockLost&) {
    throw;  // the folder, its status too, is somebody else's
  } catch (const std::bad_alloc& error) {
    const std::string reason = memory_advice(settings, error);
    folder.fail(reason);
    throw RuntimeFailure(reason);
  } catch (const std::exception& error) {
    folder.fail(error.what());
    throw;
  }
}

}  // namespace halfscope
