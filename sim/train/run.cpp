// The training loop with its records, checkpoints and summary.
#include "sim/train/run.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <map>

#include "sim/train/lint.hpp"
#include "sim/train/overflow_record.hpp"

namespace halfscope {
namespace {

/// Training loss of a summary: the mean over this many last steps, since single batches scatter.
constexpr std::size_t loss_window = 30;

using Clock = std::chrono::steady_clock;

/// Everything that the summary says, gathered from the records, so that a resumed run says the same.
class Summary {
 public:
  explicit Summary(const std::string& metrics) {
    for (const Json& record : parse_json_lines(metrics, "metrics.jsonl")) add(record);
  }

  void write_to(Json& summary) const {
    double sum = 0;
    for (const double loss : losses_) sum += loss;
    summary["train_loss"] = losses_.empty() ? Json() : Json(sum / static_cast<double>(losses_.size()));
    summary["lost_updates"] =
        nonzero_ == 0 ? Json() : Json(static_cast<double>(lost_) / static_cast<double>(nonzero_));
    summary["gradients"] = {{"nonzero", gradients_.nonzero},
                            {"flushed", gradients_.flushed},
                            {"subnormal", gradients_.subnormal},
                            {"overflow", gradients_.overflow}};
    summary["skipped"] = skipped_;
    summary["last_skipped_step"] = last_skipped_ == 0 ? Json() : Json(last_skipped_);
    summary["final_scale"] = scale_;
    const auto first = first_at_scale_.find(scale_);
    summary["first_at_final_scale"] = first == first_at_scale_.end() ? Json() : Json(first->second);
    summary["overflows"] = overflows_;
  }

 private:
  void add(const Json& record) {
    const Json& loss = record.at("loss");
    losses_.push_back(loss.is_null() ? std::nan("") : loss.get<double>());
    if (losses_.size() > loss_window) losses_.pop_front();
    const auto step = record.at("step").get<std::int64_t>();
    if (record.at("skipped").get<bool>()) {
      ++skipped_;
      last_skipped_ = step;
    }
    scale_ = record.at("scale").get<double>();
    first_at_scale_.emplace(scale_, step);
    if (record.contains("first_overflow") && record["first_overflow"].is_object()) {
      overflows_.push_back(overflow_in_words(step, record["first_overflow"]));
    }
    if (!record.contains("updates")) return;
    for (const Json& tensor : record["tensors"]) {
      const Role role = parse_enum<Role>("role", tensor.at("role").get_ref<const std::string&>());
      if (gradient_roles.contains(role)) gradients_.add(tensor);
    }
    for (const Json& update : record["updates"]) {
      nonzero_ += update.at("nonzero").get<std::int64_t>();
      lost_ += update.at("lost").get<std::int64_t>();
    }
  }

  /// Over all gradients of all observed steps.
  struct Gradients {
    std::int64_t nonzero = 0, flushed = 0, subnormal = 0, overflow = 0;

    void add(const Json& tensor) {
      const auto count = [&](const char* key) { return tensor.at(key).get<std::int64_t>(); };
      nonzero += count("elements") - count("zeros") - count("nonfinite");
      flushed += count("flushed");
      subnormal += count("subnormal");
      overflow += count("overflow");
    }
  };

  std::deque<double> losses_;
  Gradients gradients_;
  std::map<double, std::int64_t> first_at_scale_;
  Json overflows_ = Json::array();  // in words, a line per step
  std::int64_t skipped_ = 0, last_skipped_ = 0, nonzero_ = 0, lost_ = 0;
  double scale_ = 1;
};

/// One run in progress.
class Run {
 public:
  Run(const RunSettings& settings, const Dataset& dataset, const RunFolder& folder)
      : settings_(settings), config_(settings.config), folder_(folder), trainer_(settings, dataset) {}

  void resume() {
    auto saved = folder_.load();
    if (!saved) return;
    trainer_.restore(saved->checkpoint);
    records_ = std::move(saved->records);
    diverged_ = !trainer_.weights_finite();
  }

  void train(const StepFunction& after_step) {
    const std::int64_t first = trainer_.steps_done();
    while (trainer_.steps_done() < config_.steps && !diverged_) {
      const auto begin = Clock::now();
      reset_peak_device_bytes();
      const StepRecord record = trainer_.step();
      if (settings_.device == Device::cuda) peak_bytes_ = std::max(peak_bytes_, peak_device_bytes());
      seconds_ += std::chrono::duration<double>(Clock::now() - begin).count();
      finish_step(record);
      after_step(record);
    }
    steps_here_ = trainer_.steps_done() - first;
    if (steps_here_ == 0 && !diverged_)
      evaluation_ = trainer_.evaluate();  // killed after its last checkpoint
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
    Summary(records_.metrics).write_to(json);
    json["lint"] = Json::array();
    for (const Finding& finding : lint(settings_)) json["lint"].push_back(to_json(finding));
    // A library's sums have an order of their own, which changes with its version and the GPU.
    json["deterministic"] = settings_.policy.products.order != AccumulateOrder::cublas;
    json["peak_device_bytes"] = peak_bytes_ == 0 ? Json() : Json(peak_bytes_);
    json["seconds"] = seconds_;
    json["seconds_per_step"] = steps_here_ == 0 ? Json() : Json(seconds_ / static_cast<double>(steps_here_));
    return json;
  }

 private:
  void finish_step(const StepRecord& record) {
    const bool last = record.step == config_.steps;
    diverged_ = record.diverged;
    const bool evaluates = last || (config_.evaluate_every > 0 && record.step % config_.evaluate_every == 0);
    if (evaluates && !diverged_) evaluation_ = trainer_.evaluate();
    append_record(records_, record, evaluates && !diverged_ ? &evaluation_ : nullptr);
    const bool saves = config_.checkpoint_every > 0 && record.step % config_.checkpoint_every == 0;
    if (last || diverged_ || saves) folder_.save(records_, trainer_.checkpoint());
  }

  const RunSettings& settings_;
  const TrainConfig& config_;  ///< the settings' numbers
  const RunFolder& folder_;
  Trainer trainer_;
  RecordText records_;
  Evaluation evaluation_;
  bool diverged_ = false;
  double seconds_ = 0;
  std::int64_t steps_here_ = 0;
  std::int64_t peak_bytes_ = 0;  ///< of a training step's arrays on the device, these steps'
};

}  // namespace

void check_training(const RunSettings& settings, const Dataset& dataset) {
  Trainer(settings, dataset).try_example();
}

void run_training(const RunSettings& settings, const Dataset& dataset, const RunFolder& folder,
                  const StepFunction& after_step) {
  if (folder.exists()) folder.check_same(settings);
  if (folder.is_done()) return;
  try {
    Run run(settings, dataset, folder);
    run.resume();
    folder.begin(settings);
    run.train(after_step);
    folder.finish(run.summary());
  } catch (const std::exception& error) {
    folder.fail(error.what());
    throw;
  }
}

}  // namespace halfscope
