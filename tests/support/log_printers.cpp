// Lines of logs as trainers print them: one entry of the table per trainer.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/support/random_run.hpp"

namespace halfscope {
namespace log_printers_of_tests {
namespace {

using Lines = std::vector<std::string>;

void print_deepspeed_overflow(const PrintedStep& at, Lines& lines) {
  if (at.step.ends) {
    lines.emplace_back(
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.");
  } else if (at.step.skipped) {
    const std::string then = at.step.next < at.step.scale ? fmt::format("reducing to {}", at.step.next)
                                                          : "but hysteresis is 2. Reducing hysteresis to 1";
    lines.push_back(fmt::format("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {}, {}",
                                at.step.scale, then));
  }
}

void print_bar(const PrintedStep& at, Lines& lines) {
  lines.push_back(fmt::format(" 9%|#   | {}/{} [00:01<00:10,  2.00it/s]", at.counters.step, at.total));
}

/// As Python prints a float.
std::string python_float(double scale) {
  return scale == std::floor(scale) ? fmt::format("{:.1f}", scale) : fmt::format("{}", scale);
}

/// The counter is that of `skipped`.
void print_iteration(const PrintedStep& at, std::int64_t skipped, Lines& lines) {
  const std::string norm = at.step.is_lost() ? "nan" : fmt::format("{:.3f}", 1.5 * at.step.largest);
  lines.push_back(fmt::format(
      " iteration {:8}/ {:8} | lm loss: 2.5E+00 | loss scale: {:.1f} | grad norm: {} | number of skipped "
      "iterations: {:3} | number of nan iterations:   0 |",
      at.counters.step, at.total, at.step.next, at.step.skipped ? "0.000" : norm, skipped));
}

void print_fairseq_overflow(const PrintedStep& at, Lines& lines) {
  if (at.step.ends) {
    lines.emplace_back(
        "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.");
  } else if (at.step.skipped) {
    lines.push_back(
        fmt::format("2026-02-03 10:00:00 | INFO | fairseq.trainer | NOTE: gradient overflow "
                    "detected, ignoring gradient, setting loss scale to: {}",
                    python_float(at.step.next)));
  }
}

/// As fairseq rounds it.
double fairseq_scale(const PrintedStep& at) {
  return std::round(at.step.next * 1e4) / 1e4;
}

/// fairseq's loop does not come to its progress line after a skipped step.
bool has_update_line(const PrintedStep& at) {
  return !at.step.skipped && at.counters.updates % at.every == 0;
}

void deepspeed(const PrintedStep& at, Lines& lines) {
  print_deepspeed_overflow(at, lines);
  if (at.has_line() && !at.step.ends)
    lines.push_back(
        fmt::format("[2026-02-03 10:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step={}, "
                    "skipped={}, lr=[1e-05], mom=[(0.9, 0.999)]",
                    at.counters.step, at.counters.skipped));
}

void deepspeed_bar(const PrintedStep& at, Lines& lines) {
  print_deepspeed_overflow(at, lines);
  if (at.has_line() && !at.step.ends) print_bar(at, lines);
}

void megatron(const PrintedStep& at, Lines& lines) {
  if (at.has_line() && !at.step.ends) print_iteration(at, at.counters.since_line, lines);
}

/// Megatron-DeepSpeed, whose iterations count no skipped ones.
void both(const PrintedStep& at, Lines& lines) {
  deepspeed(at, lines);
  if (at.has_line() && !at.step.ends) print_iteration(at, 0, lines);
}

void fairseq(const PrintedStep& at, Lines& lines) {
  print_fairseq_overflow(at, lines);
  if (has_update_line(at))
    lines.push_back(
        fmt::format("2026-02-03 10:00:00 | INFO | train_inner | epoch 001: {:6} / {} loss=7.31, "
                    "ppl=158.4, num_updates={}, lr=0.0001, gnorm=2.5, loss_scale={}, wall=4",
                    at.counters.updates, at.total, at.counters.updates, fairseq_scale(at)));
}

void fairseq_json(const PrintedStep& at, Lines& lines) {
  print_fairseq_overflow(at, lines);
  if (has_update_line(at))
    lines.push_back(fmt::format(
        R"(2026-02-03 10:00:00 | INFO | train_inner | {{"epoch": 1, "update": 0.1, "loss": "7.31", )"
        R"("num_updates": "{}", "lr": "0.0001", "gnorm": "2.5", "loss_scale": "{}", "wall": "4"}})",
        at.counters.updates, fairseq_scale(at)));
}

void print_apex_overflow(const PrintedStep& at, Lines& lines) {
  if (at.step.skipped)
    lines.push_back(fmt::format("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {}",
                                python_float(at.step.next)));
}

void apex_bar(const PrintedStep& at, Lines& lines) {
  print_apex_overflow(at, lines);
  if (at.has_line()) print_bar(at, lines);
}

/// W&B's or Lightning's table: the header, and the scale after a step.
void csv(const PrintedStep& at, Lines& lines) {
  if (lines.empty() && at.counters.step == 1) lines.emplace_back("step,loss_scale");
  if (at.has_line()) lines.push_back(fmt::format("{},{}", at.counters.step, at.step.next));
}

void json(const PrintedStep& at, Lines& lines) {
  if (at.has_line())
    lines.push_back(fmt::format(R"({{"_step": {}, "train/loss_scale": {}}})", at.counters.step,
                                python_float(at.step.next)));
}

void key_values(const PrintedStep& at, Lines& lines) {
  if (at.has_line())
    lines.push_back(
        fmt::format("INFO train: iter={}, lr=1e-05, loss_scale={}", at.counters.step, at.step.next));
}

void key_colons(const PrintedStep& at, Lines& lines) {
  if (at.has_line())
    lines.push_back(
        fmt::format("step {}/{} | loss: 2.5 | grad scale: {}", at.counters.step, at.total, at.step.next));
}

/// As InternLM prints it: it counts the skipped steps. Their norm is not finite, nor is the loss of weights
/// that are lost.
void internlm(const PrintedStep& at, Lines& lines) {
  const bool is_finite = !at.step.skipped && !at.step.is_lost();
  if (at.has_line())
    lines.push_back(fmt::format(
        "INFO train.py:318 in record_current_batch_training_metrics -- tflops=63.2,step={},loss={},tgs "
        "(tokens/gpu/second)=1424.9,lr=4.0e-07,loss_scale={},grad_norm={},inf_nan_skip_batches={}",
        at.counters.step, std::isfinite(at.step.largest) ? "11.6" : "nan", python_float(at.step.next),
        is_finite ? fmt::format("{:.3f}", 1.5 * at.step.largest) : "inf", at.counters.skipped));
}

/// As MindFormers prints it: whether the step overflowed, and its scale.
void mindformers(const PrintedStep& at, Lines& lines) {
  if (at.has_line())
    lines.push_back(fmt::format(
        "2026-02-03 10:00:00 - mindformers - INFO - {{ Epoch:[  1/  1], step:[{:5}/{:5}], loss: "
        "10.6, per_step_time: 500ms, lr: 1e-05, overflow cond: {}, loss_scale: {}",
        at.counters.step, at.total, at.step.skipped ? "True" : "False", python_float(at.step.scale)));
}

/// As MAE prints it; its steps count from 0.
void mae(const PrintedStep& at, Lines& lines) {
  if (at.has_line())
    lines.push_back(
        fmt::format("Epoch: [0]  [{:3}/{}]  eta: 0:10:01  lr: 0.1  loss: 6.91 (6.95)  loss_scale: "
                    "{:.4f} (65536.0000)  time: 0.1",
                    at.counters.step - 1, at.total, at.step.next));
}

constexpr std::array printers{
    LogPrinter{"deepspeed", deepspeed},
    LogPrinter{"deepspeed_bar", deepspeed_bar},
    LogPrinter{.name = "deepspeed_alone", .print = print_deepspeed_overflow, .counts = false},
    LogPrinter{.name = "megatron",
               .print = megatron,
               .tells_every_scale = true,
               .tells_end = false,
               .tells_lost = true},
    LogPrinter{.name = "megatron_deepspeed", .print = both, .tells_every_scale = true, .tells_lost = true},
    LogPrinter{.name = "fairseq", .print = fairseq, .always_lowers = true, .counts_updates = true},
    LogPrinter{.name = "fairseq_json", .print = fairseq_json, .always_lowers = true, .counts_updates = true},
    LogPrinter{.name = "apex_bar",
               .print = apex_bar,
               .tells_end = false,
               .always_lowers = true,
               .every_process = true},
    LogPrinter{.name = "apex_alone",
               .print = print_apex_overflow,
               .counts = false,
               .tells_end = false,
               .always_lowers = true,
               .every_process = true},
    LogPrinter{.name = "csv", .print = csv, .tells_end = false, .scales_alone = true},
    LogPrinter{.name = "json", .print = json, .tells_end = false, .scales_alone = true},
    LogPrinter{.name = "key_values", .print = key_values, .tells_end = false, .scales_alone = true},
    LogPrinter{.name = "key_colons", .print = key_colons, .tells_end = false, .scales_alone = true},
    LogPrinter{.name = "internlm",
               .print = internlm,
               .tells_every_scale = true,
               .tells_end = false,
               .tells_lost = true},
    LogPrinter{.name = "mindformers", .print = mindformers, .tells_end = false, .scales_alone = true},
    LogPrinter{.name = "mae", .print = mae, .tells_end = false, .scales_alone = true},
};

class Printing {
 public:
  Printing(const LogPrinter& printer, std::int64_t every, LogHole hole, std::int64_t total)
      : printer_(printer), every_(every), hole_(hole), total_(total) {}

  void print(const RunStep& step) {
    ++counters_.step;
    (step.skipped ? counters_.skipped : counters_.updates) += 1;
    counters_.since_line += step.skipped ? 1 : 0;
    const PrintedStep at{step, counters_, every_, total_};
    Lines of_step;
    printer_.print(at, of_step);
    if (at.has_line()) counters_.since_line = 0;
    const bool is_cut = counters_.step >= hole_.first && counters_.step < hole_.last;
    if (!is_cut) lines.insert(lines.end(), of_step.begin(), of_step.end());
  }
  [[nodiscard]] LogCounters counters() const { return counters_; }
  void restore(const LogCounters& counters) { counters_ = counters; }

  Lines lines;

 private:
  const LogPrinter& printer_;
  std::int64_t every_;
  LogHole hole_;
  std::int64_t total_;
  LogCounters counters_;
};

}  // namespace
}  // namespace log_printers_of_tests

std::span<const LogPrinter> log_printers() {
  return log_printers_of_tests::printers;
}

std::vector<std::string> printed(const RandomRun& run, const LogPrinter& printer, std::int64_t every,
                                 LogHole hole) {
  const std::int64_t total = std::max(std::ssize(run.steps), std::ssize(run.attempt));
  log_printers_of_tests::Printing printing(printer, every, hole, total);
  std::size_t begin = 0;
  LogCounters checkpoint;
  for (const RunStep& step : run.attempt) {
    printing.print(step);
    if (++begin == run.resumed) checkpoint = printing.counters();
  }
  if (!run.attempt.empty()) printing.restore(checkpoint);
  for (std::size_t i = run.resumed; i < run.steps.size(); ++i) printing.print(run.steps[i]);
  return printing.lines;
}

}  // namespace halfscope
