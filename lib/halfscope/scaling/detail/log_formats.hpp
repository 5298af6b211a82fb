// The formats of logs that are read, and those that are known and tell no scale: one line per format.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

#include <halfscope/scaling/detail/log_lines.hpp>

namespace halfscope {

/// A line of a log, or what lies between two carriage returns of one.
struct LogText {
  std::string_view text;
  std::int64_t number = 0;     ///< in the file
  std::int64_t bar_done = 0;   ///< the last count of a progress bar; 0 where there was none
  std::int64_t bar_total = 0;  ///< the total of the bar in this line
  bool has_bar = false;        ///< the bar stands in this line
  bool taken = false;          ///< an earlier format of the table has read something in the line
  bool claimed = false;        ///< the line is none of other formats
};

/// Hands over what a line tells, and passes over all other lines. It may remember earlier lines of its log.
/// Returns whether the line is none of other formats.
using LogLineReader = std::function<bool(const LogText& line, const SkipLogSink& sink)>;

// The readers. Each makes one for a log.

LogLineReader read_nothing(const LogColumns&);
/// "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768", counted steps, and bars.
LogLineReader read_deepspeed(const LogColumns&);
/// "iteration 10/ 1000 | ... | loss scale: 8388608.0 | ... | number of skipped iterations: 10 |".
LogLineReader read_megatron(const LogColumns&);
/// "overflow detected, setting loss scale to: 64.0", "train_inner | ... num_updates=40, ... loss_scale=64".
LogLineReader read_fairseq(const LogColumns&);
/// "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0".
LogLineReader read_apex(const LogColumns&);
/// "Epoch: [0]  [ 20/625] ... loss_scale: 65536.0000 (65536.0000)".
LogLineReader read_mae(const LogColumns&);
/// trainer_state.json, and the dictionaries that the Trainer prints.
LogLineReader read_hf_trainer(const LogColumns&);
/// An object on each line, with a step and a loss_scale or a grad_norm.
LogLineReader read_json(const LogColumns&);
/// A column of steps, and one of a loss scale or of the gradients' norm.
LogLineReader read_csv(const LogColumns&);
/// "optimizer not run, scale_before: 32768.0, scale_after: 16384.0".
LogLineReader read_paddlenlp(const LogColumns&);
/// "Found NaN, decreased lg_loss_scale to 19.0", and tables whose scale and norm are means.
LogLineReader read_guided_diffusion(const LogColumns&);
/// "Epoch(train)  [1][  50/29572]  ... grad_norm: 2.5  loss: 0.9", whose norm and loss are means.
LogLineReader read_mmengine(const LogColumns&);
/// "12epoch:train:51-100batch: ... loss_scale=6.554e+04", whose values are means.
LogLineReader read_espnet(const LogColumns&);
/// Any line with a step, and a scale, a norm or a loss that has a known name; what no other format has read.
LogLineReader read_scalars(const LogColumns&);
/// Exceptions that end a run.
LogLineReader read_endings(const LogColumns&);
/// "Found overflow. Skip step": what no other format has read.
LogLineReader read_skip_words(const LogColumns&);

/// The scalars of an event file of TensorBoard: not line by line. Returns whether its last record is whole.
LineEnd read_tensorboard(std::string_view bytes, const LogColumns& columns, const SkipLogSink& sink);

struct LogFormat {
  std::string_view name;   ///< as JSON has it
  std::string_view title;  ///< "A log of DeepSpeed"
  LogLineReader (*reader)(const LogColumns&) = read_nothing;
  std::string_view sign{};         ///< stands in a file of this format that tells no scale
  std::string_view description{};  ///< description of that file, with the remedy
};

/// Formats of whole lines come before those that look for names anywhere.
inline constexpr std::array log_formats{
    LogFormat{"deepspeed", "A log of DeepSpeed", read_deepspeed},
    LogFormat{"apex", "A log of Apex", read_apex},
    LogFormat{"fairseq", "A log of fairseq", read_fairseq, "num_updates",
              "fairseq's log, without a loss scale; train with --fp16"},
    LogFormat{"mae", "A log as MAE prints it", read_mae, "Epoch: [",
              "a log as torchvision's and MAE's examples print it, without a loss_scale"},
    LogFormat{"megatron", "A log of Megatron-LM", read_megatron},
    LogFormat{"megatron_deepspeed", "A log of Megatron-LM with DeepSpeed"},
    LogFormat{"paddlenlp", "A log of PaddleNLP", read_paddlenlp},
    LogFormat{"guided_diffusion", "A log of guided-diffusion", read_guided_diffusion},
    LogFormat{"mmengine", "A log of MMEngine or MMCV", read_mmengine},
    LogFormat{"espnet", "A log of ESPnet", read_espnet},
    LogFormat{"csv", "A table of scalars", read_csv, "Wall time,Step,Value",
              "TensorBoard's CSV of one scalar; say which: --columns loss_scale=Value"},
    LogFormat{"hf_trainer", "A log of Hugging Face's Trainer", read_hf_trainer, "'learning_rate': ",
              "the output of Hugging Face's Trainer without a gradient norm or a loss scale"},
    LogFormat{"json", "A log of JSON lines", read_json},
    LogFormat{"scalars", "A log of named numbers", read_scalars},
    LogFormat{"tensorboard", "A TensorBoard event file", read_nothing, "brain.Event:2",
              "a TensorBoard event file, which is read from a file alone: give its path, not a pipe"},
    LogFormat{"endings", "", read_endings},
    LogFormat{"words", "", read_skip_words},
    LogFormat{"gzip", "", read_nothing, "\x1f\x8b\x08",
              "a file that gzip has compressed; unpack it first: gunzip FILE"},
    LogFormat{"utf16", "", read_nothing, "\xff\xfe",
              "UTF-16, as PowerShell writes it; convert it: iconv -f utf-16 -t utf-8 FILE > train.log"},
    LogFormat{"nanogpt", "", read_nothing, "iter 0: loss ",
              "nanoGPT's output, which prints no loss scale; print scaler.get_scale() after each step"},
};

}  // namespace halfscope
