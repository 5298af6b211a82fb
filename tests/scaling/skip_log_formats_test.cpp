// Lines of each format read as steps, among other output.
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/log_lines.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::skip_log_formats_test {
namespace {

TEST_CASE("DeepSpeed's lines of several versions are skipped steps", "[skip_log]") {
  const SkipLog log = read_log(
      {overflow_line("65536", ", but hysteresis is 2. Reducing hysteresis to 1"), step_line(1, 1),
       "[INFO] [stage2.py:1357:step] [deepscale] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: "
       "65536.0, "
       "reducing to 32768.0",
       step_line(2, 2),
       "[INFO] [logging.py:60:log_dist] [Rank 0] Overflow detected. Skipping step. Attempted loss "
       "scale: 32768.0, "
       "reducing to 16384.0",
       step_line(3, 3),
       "[INFO] [unfused_optimizer.py:207:step] [deepspeed] fp16 dynamic loss scale overflow! Skipping "
       "step. Attempted "
       "loss scale: 16384.0, reducing to 8192.0",
       step_line(4, 4), step_line(5, 4)});
  CHECK(log.format == "deepspeed");
  CHECK(text_of(log) ==
        "1 skipped at 65536, 2 skipped at 65536, 3 skipped at 32768, 4 skipped at 16384, 5 finite at 8192");
  CHECK(log.skipped == 4);
  CHECK(log.unsure_steps + log.unsure_scales + log.missing == 0);
}

TEST_CASE("skips between two lines that count are the first steps after the earlier, and unsure",
          "[skip_log]") {
  const SkipLog log = read_log({overflow_line("8", ", reducing to 4"), step_line(10, 1), step_line(20, 1),
                                overflow_line("4", ", reducing to 2"), overflow_line("2", ", reducing to 1"),
                                step_line(30, 3), overflow_line("1", ", reducing to 1")});
  CHECK(text_of(log) ==
        "1 skipped at 8, 2 finite at 4, 10 finite at 4, 11 finite at 4, 20 finite at 4, 21 skipped at 4, "
        "22 skipped at 2, 23 finite at 1, 30 finite at 1, 31 skipped at 1");
  CHECK(log.unsure_steps == 4);
  CHECK(log.skipped == 4);
}

TEST_CASE("other output, other ranks, joined and cut lines are passed over", "[skip_log]") {
  const std::string other_rank =
      "[deepspeed] OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 128, reducing to 64";
  const std::string bar = " 14%|##  | 378/2724 [13:58:09<86:18:35, 132.44s/it]";  // counted lines win
  const SkipLog log =
      read_log({"",
                "loss scale: what is it?",
                "{'loss': 2.0491, 'epoch': 0.28}",
                other_rank,
                bar + "\r" + bar + overflow_line("64", ", reducing to 32") + "\r",
                other_rank,
                step_line(1, 1) + "\r",
                "Reducing dynamic loss scale from 64 to 32",
                "Attempted loss scale: 7, reducing to 3",
                overflow_line("nan", ", reducing to 3"),
                overflow_line("-4", ", reducing to 2"),
                overflow_line("4", ", reducing to"),
                overflow_line("1e400", ", reducing to 2"),
                overflow_line("32", ", reducing to 16") + overflow_line("16", ", reducing to 8"),
                step_line(3, 3),
                "step=4, skipped=",
                "step=9",
                "step=-4, skipped=1",
                "step=2, skipped=7",
                "step=99999999999999999999, skipped=0",
                "epoch=0/micro_step=6000/global_step=6000, RunningAvgSamplesPerSec=6493"});
  CHECK(text_of(log) == "1 skipped at 64, 2 skipped at 32, 3 skipped at 16");
}

TEST_CASE("lines without a rank that every process prints are one overflow", "[skip_log]") {
  const std::string line =
      "[deepspeed] fp16 dynamic loss scale overflow! Skipping step. Attempted loss scale: 64.0, reducing to "
      "32.0";
  const std::string floor =
      "[deepspeed] fp16 dynamic loss scale overflow! Skipping step. Attempted loss scale: 1, reducing to 1";
  const std::string next =
      "[deepspeed] fp16 dynamic loss scale overflow! Skipping step. Attempted loss scale: 32.0, reducing to "
      "16.0";
  CHECK(text_of(read_log({line, line, line, next, next, next, step_line(2, 2)})) ==
        "1 skipped at 64, 2 skipped at 32");
  CHECK(text_of(read_log({floor, floor, step_line(2, 2)})) == "1 skipped at 1, 2 skipped at 1");
}

std::string bar(int done, int total) {
  return " 14%|##   | " + std::to_string(done) + "/" + std::to_string(total) +
         " [13:58:09<86:18:35, 132.44s/it]";
}

TEST_CASE("a progress bar counts steps where no line does", "[skip_log]") {
  const SkipLog log = read_log(
      {bar(3, 3) + bar(0, 900) + "\r" + bar(1, 900) + overflow_line("64", ", reducing to 32"), bar(1, 3),
       bar(2, 900) + "\r" + bar(3, 900) + "\r" + bar(3, 900), bar(2, 3),
       overflow_line("32", ", reducing to 16"), bar(9, 900), overflow_line("16", ", reducing to 8")});
  CHECK(text_of(log) ==
        "1 finite at 64, 2 skipped at 64, 3 finite at 32, 4 skipped at 32, 5 finite at 16, 9 finite at 16, "
        "10 skipped at 16");
  CHECK(log.bar_total == 900);
  CHECK(log.unsure_steps == 2);
  CHECK(log.missing == 0);
  const std::string unranked =
      "[deepspeed] fp16 dynamic loss scale overflow! Skipping step. Attempted loss scale: 64.0, reducing to "
      "32.0";
  CHECK(text_of(read_log({unranked, unranked, bar(1, 9), unranked, bar(2, 9)})) ==
        "1 skipped at 64, 2 skipped at 64");
  CHECK(read_log({bar(1, 900), overflow_line("8", ", reducing to 4"), step_line(1, 1)}).bar_total == 0);
  // A bar that starts again counts no steps: the overflows are all that is known.
  const SkipLog epochs =
      read_log({bar(1, 9), overflow_line("8", ", reducing to 4"), bar(2, 9), bar(1, 9), bar(2, 9)});
  CHECK(text_of(epochs) == "1 skipped at 8");
  CHECK_FALSE(epochs.counts_steps);
}

TEST_CASE("a log of DeepSpeed that begins or breaks off in a run is read from there", "[skip_log]") {
  const SkipLog resumed =
      read_log({step_line(5010, 6), overflow_line("8", ", reducing to 4"), step_line(5020, 8)});
  CHECK(text_of(resumed) ==
        "5001 finite at 8, 5010 finite at 8, 5011 skipped at 8, 5012 finite at 4, 5020 finite at 4");
  CHECK(resumed.missing == 1);
  // The restart goes on from step 10; what the attempt before it printed later is replaced.
  const SkipLog restarted = read_log(
      {overflow_line("64", ", reducing to 32"), step_line(10, 1), overflow_line("32", ", reducing to 16"),
       step_line(20, 2), overflow_line("16", ", reducing to 8"), overflow_line("32", ", reducing to 16"),
       step_line(20, 2), step_line(30, 2)});
  CHECK(
      text_of(restarted) ==
      "1 skipped at 64, 2 finite at 32, 10 finite at 32, 11 skipped at 32, 12 finite at 16, 20 finite at 16, "
      "21 finite at 16, 30 finite at 16");
}

TEST_CASE("each iteration of Megatron-LM is at the scale that the one before it left", "[skip_log]") {
  const SkipLog log = read_log({iteration_line(1, "64.0", 1, "nan"), iteration_line(2, "32.0", 1, "inf"),
                                iteration_line(3, "32.0", 0), iteration_line(4, "64.0", 0, "0.500"),
                                iteration_line(5, "32.0", 1)});
  CHECK(log.format == "megatron");
  CHECK(text_of(log) == "1 skipped at 64, 2 skipped at 64, 3 finite at 32, 4 finite at 32, 5 skipped at 64");
  CHECK(log.steps[2].grad_norm == 1.25);
  CHECK(log.steps[3].grad_norm == 0.5);
  CHECK(log.unsure_steps == 0);
  CHECK(log.unsure_scales == 1);  // whether the first lowered the scale
}

TEST_CASE("several iterations a line have scales as the scale falls", "[skip_log]") {
  // From 2^32, of which the first overflow is forgiven.
  const SkipLog log = read_log({iteration_line(10, "8388608.0", 10), iteration_line(20, "32768.0", 8),
                                iteration_line(30, "32768.0", 0)});
  CHECK(log.steps.front().scale == 4294967296.0);
  CHECK(log.steps[9].scale == 16777216.0);
  CHECK(log.steps[10].scale == 8388608.0);
  CHECK(log.steps[17].scale == 65536.0);
  CHECK(log.steps[18].step == 19);
  CHECK_FALSE(log.steps[18].skipped);
  CHECK(log.skipped == 18);
  CHECK(log.unsure_steps == 8);
  CHECK(log.unsure_scales == 10);
}

TEST_CASE("iterations that are printed twice, cut or joined, and restarts", "[skip_log]") {
  const std::string whole = iteration_line(2, "32.0", 0);
  const SkipLog log =
      read_log({"[2024-05-01 10:00:00]" + iteration_line(1, "32.0", 0) + whole, whole,
                whole.substr(0, whole.find("number of skipped")), iteration_line(3, "32.0", 0),
                " validation loss at iteration 3 | lm loss value: 7.0 |", iteration_line(2, "16.0", 1),
                step_line(2, 1), iteration_line(3, "16.0", 0), iteration_line(4, "16.0", 0) + "\r",
                iteration_line(5, "nan", 0), iteration_line(1, "16.0", 7), "iteration 6/ | loss scale: 2 |"});
  CHECK(text_of(log) == "1 finite at 32, 2 skipped at 32, 3 finite at 16, 4 finite at 16, 5 finite at 16");
}

TEST_CASE("a log that tells nothing, or too little, is refused with what is missing", "[skip_log]") {
  const auto message = [](const std::vector<std::string>& lines) {
    return message_of<InvalidArgument>([&] { (void)read_log(lines); });
  };
  check_says(message({"hello", "step 1: lr 0.1"}),
             {"no line of it names a step together with a loss scale", "DeepSpeed", "Megatron-LM"});
  check_says(message({step_line(10, 0), step_line(20, 0)}), {"none of a skipped step"});
  // A restart that replaced the only skipped step.
  check_says(message({overflow_line("64", ", reducing to 32"), step_line(40, 2), step_line(20, 2)}),
             {"none of a skipped step"});
  check_says(
      message_of<InvalidArgument>([] {
        (void)read_whole_log({iteration_line(1'000'000, "1", 1'000'000), iteration_line(2'000'000, "1", 1)});
      }),
      {"more than 1000000 skipped steps"});
}

TEST_CASE("a refusal says what the lines tell of, and what is missing", "[skip_log]") {
  struct Refusal {
    std::vector<std::string> lines;
    const char* says;
  };
  const std::vector<Refusal> refusals{
      {{"epoch 0", "step 1: loss 2.5", "step 2: loss 2.25"},
       "its steps 1 to 2 (lines 2 to 3) have finite losses, and none has a loss scale"},
      {{"step,loss", "10,2.5", "20,2.25"}, "its steps 10 to 20 (lines 2 to 3) have finite losses"},
      {{R"({"step": 5, "loss": 2.5})"}, "its steps 5 to 5 (lines 1 to 1) have finite losses"},
      {{"step=0 loss_scale=64"}, "its only step is 0 (line 1), before the first update"},
      {{"", "step=-3 loss_scale=64"}, "line 2 names a step that is no whole number"},
      {{"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 1e-46"},
       "line 1 tells of a skipped step at a loss scale of 1e-46"},
      {{"| WARNING: overflow detected, setting loss scale to: 0.0"}, "a skipped step at a loss scale of 0"},
      {{overflow_line("nan", ", reducing to 2")}, "line 1 tells of a skipped step at a loss scale of nan"},
      {{"optimizer not run, scale_before: -4.0, scale_after: 2.0"}, "a skipped step at a loss scale of -4"},
      {{"Found NaN, decreased lg_loss_scale to 300"},
       "line 1 tells of a skipped step at a loss scale of 2.0"},
  };
  for (const auto& [lines, says] : refusals) {
    INFO(says);
    check_says(message_of<InvalidArgument>([&lines = lines] { (void)read_log(lines); }),
               {says, "read are logs of"});
  }
}

TEST_CASE("a scale of Megatron-LM that is none is a finding", "[skip_log]") {
  for (const char* scale : {"inf", "nan", "0", "-2.0"}) {
    INFO(scale);
    const SkipLog log = read_log({iteration_line(1, "64.0", 0), iteration_line(2, scale, 0)});
    CHECK(log.bad_scale_line == 2);
    CHECK(log.skipped == 0);
  }
}

TEST_CASE("a step that is no number is no step", "[skip_log]") {
  check_says(message_of<InvalidArgument>([&] { (void)read_log({R"({"_step": NaN, "loss_scale": 64})"}); }),
             {"line 1 names a step that is no whole number"});
}

TEST_CASE("lines of fairseq, Apex, MAE, the Trainer, JSON and CSV are read", "[skip_log]") {
  const SkipLog fairseq =
      read_log({"2026-02-03 | INFO | fairseq.trainer | NOTE: overflow detected, setting loss scale to: 64.0",
                "| WARNING: overflow detected, setting loss scale to: 32.0",
                "2026-02-03 | INFO | train_inner | epoch 002: 2 / 900 loss=7.31, num_updates=2, gnorm=88.4, "
                "loss_scale=32, wall=4",
                "2026-02-03 | INFO | train_inner | epoch 002: 4 / 900 loss=7.31, num_updates=4, gnorm=88.4, "
                "loss_scale=32, wall=4"});
  CHECK(fairseq.format == "fairseq");
  CHECK(text_of(fairseq) ==
        "1 skipped at 128, 2 skipped at 64, 3 finite at 32, 4 finite at 32, 5 finite at 32, 6 finite at 32");
  const SkipLog apex =
      read_log({"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
                "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 16384.0"});
  CHECK(apex.format == "apex");
  CHECK(text_of(apex) == "1 skipped at 65536, 2 skipped at 32768");
  const SkipLog mae =
      read_log({"Epoch: [1]  [ 1/10]  eta: 0:10  lr: 0.1  loss: 6.9 (7.0)  loss_scale: 64.0000 (64.0000)",
                "Epoch: [1]  [ 2/10]  eta: 0:10  lr: 0.1  loss: 6.9 (7.0)  loss_scale: 32.0000 (64.0000)"});
  CHECK(mae.format == "mae");
  CHECK(text_of(mae) == "12 finite at 64, 13 skipped at 64");
  const SkipLog state =
      read_log({"{", "  \"best_metric\": null,", "  \"log_history\": [", "    {", "      \"epoch\": 0.1,",
                "      \"grad_norm\": 1.5,", "      \"step\": 10", "    },", "    {",
                "      \"grad_norm\": NaN,", "      \"step\": 20", "    }", "  ],"});
  CHECK(state.format == "hf_trainer");
  CHECK(state.lost_from() == 20);
  const SkipLog compact = read_log({R"({"global_step": 30, "log_history": [{"grad_norm": 1.5, "step": 10}, )"
                                    R"({"grad_norm": NaN, "step": 20}, {"eval_loss": 2.5, "step": 20}, )"
                                    R"({"grad_norm": 2.5, "step": 30}], "max_steps": 90})"});
  CHECK(compact.format == "hf_trainer");
  CHECK(compact.lost_from() == std::nullopt);  // the norm of step 30 is finite
  CHECK(compact.step_count() == 30);
  const SkipLog printed =
      read_log({"{'loss': 2.04, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': 0.28}",
                "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.29}"});
  CHECK(printed.lost_from() == 2);
  const SkipLog json =
      read_log({R"({"_step": 1, "loss_scale": 64.0})", R"({"_step": 2, "loss_scale": 32.0})"});
  CHECK(text_of(json) == "1 finite at 64, 2 skipped at 64");
  const SkipLog csv = read_log({"\"Step\",\"run-a - train/loss_scale\",\"run-a - train/loss_scale__MIN\"",
                                "\"1\",\"64\",\"64\"", "\"2\",\"32\",\"32\"", "\"3\",\"32\",\"32\""});
  CHECK(csv.format == "csv");
  CHECK(text_of(csv) == "1 finite at 64, 2 skipped at 64, 3 finite at 32");
  const SkipLog lightning = read_log({"epoch,grad_norm,step", "0,1.5,49", "0,,49", "0,nan,99"});
  CHECK(lightning.lost_from() == 99);
}

TEST_CASE("a known format without a scale is named, with what would be read", "[skip_log]") {
  const auto message = [](const std::vector<std::string>& lines) {
    return message_of<InvalidArgument>([&] { (void)read_log(lines); });
  };
  check_says(message({"abc brain.Event:2 def"}), {"TensorBoard", "give its path", "\"max_abs\": 12.5"});
  check_says(message({"iter 0: loss 10.9, time 100.0ms"}), {"nanoGPT"});
  check_says(message({"\x1f\x8b\x08..."}), {"gzip has compressed", "gunzip FILE"});
  check_says(message({"\xff\xfe i t e r"}), {"UTF-16", "iconv -f utf-16"});
  check_says(message({}), {"the file is empty"});
  check_says(message({"epoch 1, loss 2.5"}),
             {"no line of it names a step together with", "fairseq", "\"scale\": 65536"});
}

}  // namespace
}  // namespace halfscope::skip_log_formats_test
