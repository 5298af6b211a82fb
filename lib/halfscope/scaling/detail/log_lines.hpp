// Lines of logs that tell of loss scales: of DeepSpeed, Megatron-LM, fairseq, Apex, MAE and its relatives.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/scaling/skip_log.hpp>

namespace halfscope {

/// DeepSpeed skips a step: "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
/// "but hysteresis is 2. Reducing hysteresis to 1" in place of the latter, "[Rank 0] Overflow detected. ...".
/// fairseq: "overflow detected, setting loss scale to: 64.0". Apex: "Gradient overflow.  Skipping step, loss
/// scaler 0 reducing loss scale to 32768.0".
struct OverflowLine {
  double scale = 1;                       ///< at which the gradients overflowed
  std::optional<double> next;             ///< none: the scale stays
  bool has_rank = false;                  ///< 0; other ranks' lines are passed over
  bool ends = false;                      ///< the scale could not fall: the run ended
  std::string_view format = "deepspeed";  ///< name of its format
  std::int64_t scaler = 0;                ///< its number among several, as Apex has it
  std::int64_t line = 0;                  ///< number in the file
  bool is_of_state = false;               ///< a line of state says so of its own step; other steps have none
};

/// The scale that the last of some overflows leaves.
[[nodiscard]] inline double scale_after(const std::vector<OverflowLine>& overflows) {
  return overflows.back().next.value_or(overflows.back().scale);
}

/// DeepSpeed counts: "[Rank 0] step=510, skipped=8, lr=[...]".
struct StepLine {
  std::int64_t step = 0;     ///< the optimizer's step, skipped ones included
  std::int64_t skipped = 0;  ///< up to here
  std::int64_t line = 0;     ///< number in the file
};

/// State after a step. Megatron-LM and GPT-NeoX: "iteration 10/ 1000 | ... | loss scale: 8388608.0 | grad
/// norm: 1.25 | number of skipped iterations: 10 | number of nan iterations: 0 |". MAE: "Epoch: [0]  [
/// 20/625]
/// ... loss_scale: 65536.0000 (65536.0000)". fairseq: "train_inner | ... num_updates=40, ... loss_scale=64".
struct IterationLine {
  std::int64_t iteration = 0;
  std::optional<double> scale{};          ///< scale of the next iteration; none if nothing scales the loss
  std::optional<std::int64_t> skipped{};  ///< since the last such line; none where nothing counts them
  std::optional<double>
      grad_norm{};              ///< norm of this iteration's unscaled gradients; NaN if it is not finite
  std::int64_t not_finite = 0;  ///< iterations since the last line whose loss was not finite
  std::string_view format = "megatron";  ///< name of its format
  std::int64_t line = 0;                 ///< number in the file
  std::optional<double> loss{};          ///< NaN where it is not finite
  std::optional<double> scale_before{};  ///< scale of the iteration, where the line tells both
  std::optional<double> bad_scale{};     ///< a scale that is no number above 0, or none that FP32 holds
  bool has_scaler = false;               ///< prints a scale, if only as a mean
  bool overflowed = false;               ///< says that the step was not finite, and skipped
  bool tells_overflow = false;           ///< says whether it was
  bool has_step_scale = false;           ///< where it says so, its scale is that of the step
  bool has_own_norm = false;             ///< norm and loss are those of the steps since the line before
  bool has_finite_norm = false;          ///< a norm that is finite, and no bound
  bool is_lost = false;                  ///< its step was not finite, and no later line is
  bool is_disproved = false;             ///< a later line is finite, so that its step was not lost
  bool has_means = false;                ///< norm and loss are means over several steps
  bool is_filtered = false;              ///< its loss leaves out losses that are not finite: 0 is none at all
  bool is_numbered = true;               ///< false: the iteration is the count of such lines
};

/// A progress bar, as tqdm draws it: "14%|##   | 378/2724 [13:58:09<86:18:35, 132.44s/it]".
struct ProgressBar {
  std::int64_t done = 0, total = 0;
};

/// Whether a line has an end, so that its last number is whole.
enum class LineEnd : std::uint8_t { cut, whole };

/// An exception that ended the run, or a line that says so.
struct EndingLine {
  enum class Kind : std::uint8_t { at_minimum, not_finite };
  Kind kind = Kind::at_minimum;
  std::optional<std::int64_t> step{};  ///< that it names
  std::int64_t line = 0;               ///< number in the file
};

/// A name that may be that of a loss scale.
struct OtherScale {
  std::string_view name;
  std::int64_t line = 0;
  bool has_number = true;  ///< false: a known name, behind which no number stands
};

/// Takes the parts of a log, in order.
struct SkipLogSink {
  std::function<void(const OverflowLine&)> overflow;
  std::function<void(const StepLine&)> step;
  std::function<void(const IterationLine&)> iteration;
  std::function<void(const ProgressBar&)> progress;
  std::function<void(const EndingLine&)> end;
  std::function<void(const std::string&)> note;  ///< for the reader of the verdict
  std::function<void(const OtherScale&)> other_scale;
  /// The name of a scale that was read, where others stand beside it.
  std::function<void(std::string_view name)> only_scale;
  /// A line may tell of a skipped step in words.
  std::function<void()> words;
  /// Why a line that names a step or a skip is not read: "a step of 1e+18: ...".
  std::function<void(const std::string&)> reject;
};

}  // namespace halfscope
