// Logs of DeepSpeed and Megatron-LM read as steps, among other output, and what they do not tell.
#include <halfscope/scaling/detail/skip_log_reader.hpp>
#include <halfscope/scaling/skip_log_replay.hpp>

#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::skip_log_test {
namespace {

SkipLog read(const std::vector<std::string>& lines) {
  SkipLogReader reader;
  for (const std::string& line : lines) reader.line(line);
  return reader.finish();
}

std::string overflow(const std::string& scale, const std::string& rest) {
  return "[2024-05-01 10:00:00,000] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 "
         "Skipping "
         "step. Attempted loss scale: " +
         scale + rest;
}

std::string counted(int step, int skipped) {
  return "[2024-05-01 10:00:01,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=" + std::to_string(step) +
         ", skipped=" + std::to_string(skipped) + ", lr=[1e-05], mom=[(0.9, 0.999)]";
}

std::string iteration(int number, const std::string& scale, int skipped, const std::string& norm = "1.250") {
  return " iteration " + std::to_string(number) +
         "/  5000 | consumed samples: 8 | elapsed time per iteration (ms): " +
         "12.5 | lm loss: 7.1E+00 | loss scale: " + scale + " | grad norm: " + norm +
         " | number of skipped iterations:   " + std::to_string(skipped) +
         " | number of nan iterations:   0 |";
}

/// "3 skipped at 64, 4 finite at 32": the steps of a log.
std::string text_of(const SkipLog& log) {
  std::string text;
  for (const LoggedStep& step : log.steps) {
    text += (text.empty() ? "" : ", ") + std::to_string(step.step) + (step.skipped ? " skipped" : " finite") +
            " at " + std::to_string(static_cast<std::int64_t>(step.scale));
  }
  return text;
}

TEST_CASE("DeepSpeed's lines of several versions are skipped steps", "[skip_log]") {
  const SkipLog log =
      read({overflow("65536", ", but hysteresis is 2. Reducing hysteresis to 1"), counted(1, 1),
            "[INFO] [stage2.py:1357:step] [deepscale] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: "
            "65536.0, "
            "reducing to 32768.0",
            counted(2, 2),
            "[INFO] [logging.py:60:log_dist] [Rank 0] Overflow detected. Skipping step. Attempted loss "
            "scale: 32768.0, "
            "reducing to 16384.0",
            counted(3, 3),
            "[INFO] [unfused_optimizer.py:207:step] [deepspeed] fp16 dynamic loss scale overflow! Skipping "
            "step. Attempted "
            "loss scale: 16384.0, reducing to 8192.0",
            counted(4, 4), counted(5, 4)});
  CHECK(log.format == SkipLogFormat::deepspeed);
  CHECK(text_of(log) ==
        "1 skipped at 65536, 2 skipped at 65536, 3 skipped at 32768, 4 skipped at 16384, 5 finite at 8192");
  CHECK(log.skipped == 4);
  CHECK(log.unsure_steps + log.unsure_scales + log.missing == 0);
}

TEST_CASE("skips between two lines that count are the first steps after the earlier, and unsure",
          "[skip_log]") {
  const SkipLog log = read({overflow("8", ", reducing to 4"), counted(10, 1), counted(20, 1),
                            overflow("4", ", reducing to 2"), overflow("2", ", reducing to 1"),
                            counted(30, 3), overflow("1", ", reducing to 1")});
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
  const SkipLog log = read({"",
                            "loss scale: what is it?",
                            "{'loss': 2.0491, 'epoch': 0.28}",
                            other_rank,
                            bar + "\r" + bar + overflow("64", ", reducing to 32") + "\r",
                            other_rank,
                            counted(1, 1) + "\r",
                            "Reducing dynamic loss scale from 64 to 32",
                            "Attempted loss scale: 7, reducing to 3",
                            overflow("nan", ", reducing to 3"),
                            overflow("-4", ", reducing to 2"),
                            overflow("4", ", reducing to"),
                            overflow("1e400", ", reducing to 2"),
                            overflow("32", ", reducing to 16") + overflow("16", ", reducing to 8"),
                            counted(3, 3),
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
  CHECK(text_of(read({line, line, line, next, next, next, counted(2, 2)})) ==
        "1 skipped at 64, 2 skipped at 32");
  CHECK(text_of(read({floor, floor, counted(2, 2)})) == "1 skipped at 1, 2 skipped at 1");
}

std::string bar(int done, int total) {
  return " 14%|##   | " + std::to_string(done) + "/" + std::to_string(total) +
         " [13:58:09<86:18:35, 132.44s/it]";
}

TEST_CASE("a progress bar counts steps where no line does", "[skip_log]") {
  const SkipLog log =
      read({bar(3, 3) + bar(0, 900) + "\r" + bar(1, 900) + overflow("64", ", reducing to 32"), bar(1, 3),
            bar(2, 900) + "\r" + bar(3, 900) + "\r" + bar(3, 900), bar(2, 3),
            overflow("32", ", reducing to 16"), bar(9, 900), overflow("16", ", reducing to 8")});
  CHECK(text_of(log) ==
        "1 finite at 64, 2 skipped at 64, 3 finite at 32, 4 skipped at 32, 5 finite at 16, 9 finite at 16, "
        "10 skipped at 16");
  CHECK(log.bar_total == 900);
  CHECK(log.unsure_steps == 2);
  CHECK(log.missing == 0);
  const std::string unranked =
      "[deepspeed] fp16 dynamic loss scale overflow! Skipping step. Attempted loss scale: 64.0, reducing to "
      "32.0";
  CHECK(text_of(read({unranked, unranked, bar(1, 9), unranked, bar(2, 9)})) ==
        "1 skipped at 64, 2 skipped at 64");
  CHECK(read({bar(1, 900), overflow("8", ", reducing to 4"), counted(1, 1)}).bar_total == 0);
  // A bar that starts again counts no steps: the overflows are all that is known.
  const SkipLog epochs = read({bar(1, 9), overflow("8", ", reducing to 4"), bar(2, 9), bar(1, 9), bar(2, 9)});
  CHECK(text_of(epochs) == "1 skipped at 8");
  CHECK_FALSE(epochs.counts_steps);
}

TEST_CASE("a log of DeepSpeed that begins or breaks off in a run is read from there", "[skip_log]") {
  const SkipLog resumed = read({counted(5010, 6), overflow("8", ", reducing to 4"), counted(5020, 8)});
  CHECK(text_of(resumed) ==
        "5001 finite at 8, 5010 finite at 8, 5011 skipped at 8, 5012 finite at 4, 5020 finite at 4");
  CHECK(resumed.missing == 1);
  // The restart goes on from step 10; what the attempt before it printed later is replaced.
  const SkipLog restarted =
      read({overflow("64", ", reducing to 32"), counted(10, 1), overflow("32", ", reducing to 16"),
            counted(20, 2), overflow("16", ", reducing to 8"), overflow("32", ", reducing to 16"),
            counted(20, 2), counted(30, 2)});
  CHECK(
      text_of(restarted) ==
      "1 skipped at 64, 2 finite at 32, 10 finite at 32, 11 skipped at 32, 12 finite at 16, 20 finite at 16, "
      "21 finite at 16, 30 finite at 16");
}

TEST_CASE("each iteration of Megatron-LM is at the scale that the one before it left", "[skip_log]") {
  const SkipLog log =
      read({iteration(1, "64.0", 1, "nan"), iteration(2, "32.0", 1, "inf"), iteration(3, "32.0", 0),
            iteration(4, "64.0", 0, "0.500"), iteration(5, "32.0", 1)});
  CHECK(log.format == SkipLogFormat::megatron);
  CHECK(text_of(log) == "1 skipped at 64, 2 skipped at 64, 3 finite at 32, 4 finite at 32, 5 skipped at 64");
  CHECK(log.steps[2].grad_norm == 1.25);
  CHECK(log.steps[3].grad_norm == 0.5);
  CHECK(log.unsure_steps == 0);
  CHECK(log.unsure_scales == 1);  // whether the first lowered the scale
}

TEST_CASE("several iterations a line have scales as the scale falls", "[skip_log]") {
  // From 2^32, of which the first overflow is forgiven.
  const SkipLog log =
      read({iteration(10, "8388608.0", 10), iteration(20, "32768.0", 8), iteration(30, "32768.0", 0)});
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
  const std::string whole = iteration(2, "32.0", 0);
  const SkipLog log =
      read({"[2024-05-01 10:00:00]" + iteration(1, "32.0", 0) + whole, whole,
            whole.substr(0, whole.find("number of skipped")), iteration(3, "32.0", 0),
            " validation loss at iteration 3 | lm loss value: 7.0 |", iteration(2, "16.0", 1), counted(2, 1),
            iteration(3, "16.0", 0), iteration(4, "16.0", 0) + "\r", iteration(5, "nan", 0),
            iteration(1, "16.0", 7), "iteration 6/ | loss scale: 2 |"});
  CHECK(text_of(log) == "1 finite at 32, 2 skipped at 32, 3 finite at 16, 4 finite at 16");
}

TEST_CASE("a log that tells nothing, or too little, is refused with what is missing", "[skip_log]") {
  const auto message = [](const std::vector<std::string>& lines) {
    return message_of<InvalidArgument>([&] { (void)read(lines); });
  };
  check_says(message({"hello", iteration(1, "0", 0)}),
             {"there is no step in it", "DeepSpeed", "Megatron-LM"});
  check_says(message({counted(10, 0), counted(20, 0)}), {"none of a skipped step"});
  // A restart that replaced the only skipped step.
  check_says(message({overflow("64", ", reducing to 32"), counted(40, 2), counted(20, 2)}),
             {"none of a skipped step"});
  check_says(message({iteration(1'000'000, "1", 1'000'000), iteration(2'000'000, "1", 1)}),
             {"more than 1000000 skipped steps"});
}

void take(SkipLogReplay& replay, const std::vector<LoggedStep>& steps) {
  SkipLog log;
  log.steps = steps;
  replay.take(log);
}

std::vector<std::int64_t> overflows(const TraceReplay& replay, std::size_t index) {
  return replay.candidates()[index].replay.overflows();
}

TEST_CASE("a log decides what a scaler does up to the scale that it was recorded at", "[skip_log]") {
  const std::vector<LoggedStep> log{{1, 32, true}, {2, 16}, {3, 16}, {4, 16},
                                    {5, 16, true}, {6, 8},  {7, 8},  {8, 8}};
  SkipLogReplay dynamic({"dynamic"}, {{"initial_scale", 16}, {"growth_interval", 3}});
  take(dynamic, log);
  // The first step was skipped at 32: what it would have done at 16 is not known.
  CHECK(dynamic.first_unsure(0) == 1);
  CHECK(overflows(dynamic.least(), 0) == std::vector<std::int64_t>{5});
  CHECK(overflows(dynamic.greatest(), 0) == std::vector<std::int64_t>{1, 5});
  SkipLogReplay constant({"8", "16", "32"}, {});
  take(constant, log);
  CHECK(constant.first_unsure(0) == 1);
  CHECK(overflows(constant.least(), 0).empty());
  CHECK(overflows(constant.greatest(), 0) == std::vector<std::int64_t>{1, 5});
  CHECK(constant.first_unsure(1) == 1);
  CHECK(overflows(constant.least(), 1) == std::vector<std::int64_t>{5});
  CHECK(overflows(constant.greatest(), 1) == std::vector<std::int64_t>{1, 5, 6, 7, 8});
  CHECK(constant.first_unsure(2) == 2);
  CHECK(overflows(constant.least(), 2) == std::vector<std::int64_t>{1, 5});
}

TEST_CASE("overflow lines between iteration lines are skipped steps, whatever the counter says",
          "[skip_log]") {
  const SkipLog log = read({iteration(1, "65536.0", 0), overflow("65536", ", reducing to 32768"),
                            iteration(2, "32768.0", 0), counted(2, 1), iteration(3, "32768.0", 0)});
  CHECK(text_of(log) == "1 finite at 65536, 2 skipped at 65536, 3 finite at 32768");
  CHECK(log.format == SkipLogFormat::megatron_deepspeed);
  CHECK(log.uncounted == 1);
  const RecordedRun run = recorded_run(log);
  CHECK(run.skips == std::vector<std::int64_t>{2});
  CHECK(run.scales == std::vector<double>{65536, 65536, 32768});
  CHECK(std::ranges::find(run.reproduced_by, "dynamic") != run.reproduced_by.end());
}

TEST_CASE("a falling scale tells of skipped steps, and a norm of 0 of nothing", "[skip_log]") {
  const SkipLog log = read({iteration(1, "65536.0", 0, "0.000"), iteration(2, "8192.0", 0, "0.000"),
                            iteration(3, "8192.0", 0, "0.000")});
  CHECK(text_of(log) == "1 finite at 65536, 2 skipped at 65536, 3 finite at 8192");
  CHECK(log.uncounted == 1);
  CHECK_FALSE(log.steps[0].grad_norm);
  const SkipLog several = read({iteration(10, "65536.0", 0), iteration(20, "4096.0", 1)});
  CHECK(several.skipped == 4);
  CHECK(several.uncounted == 3);
}

TEST_CASE("a norm that is not finite loses the weights where nothing skips the step", "[skip_log]") {
  for (const char* scale : {"1.0", "-1.0"}) {
    const SkipLog log =
        read({iteration(412, scale, 0), iteration(413, scale, 0, "nan"), iteration(414, scale, 0, "inf")});
    CHECK_FALSE(log.has_scaler);
    CHECK(log.lost_from() == 413);
    SkipLogReplay replay({"1", "1024"}, {});
    replay.take(log);
    for (const std::size_t index : {std::size_t{0}, std::size_t{1}}) {
      CHECK(overflows(replay.least(), index) == std::vector<std::int64_t>{413, 414});
      CHECK(overflows(replay.greatest(), index) == std::vector<std::int64_t>{413, 414});
    }
    check_says(verdict_of(log), {"No loss scaler", "lost from step 413"});
  }
  CHECK(read({iteration(1, "8.0", 1, "nan"), iteration(2, "8.0", 0)}).lost_from() == std::nullopt);
  std::string counted_nan = iteration(7, "1.0", 0);
  counted_nan.replace(counted_nan.find("nan iterations:   0"), 19, "nan iterations:   1");
  CHECK(read({iteration(6, "1.0", 0), counted_nan}).lost_from() == 7);
}

TEST_CASE("weights are lost somewhere between two lines", "[skip_log]") {
  const SkipLog log = read({iteration(10, "64.0", 0), iteration(20, "64.0", 0, "nan")});
  CHECK(log.lost_from() == 20);
  check_says(verdict_of(log), {"lost from one of the steps 11 to 20 on"});
  SkipLogReplay replay({"64", "32"}, {});
  replay.take(log);
  CHECK(overflows(replay.least(), 0) == std::vector<std::int64_t>{20});
  CHECK(overflows(replay.greatest(), 1).size() == 10);
}

TEST_CASE("a log without a scaler bounds gradients by their norm alone", "[skip_log]") {
  const std::string without = " iteration 2/ 9 | lm loss: 7.1 | number of skipped iterations: 0 |";
  const SkipLog log = read({iteration(1, "1.0", 0, "2.000"), without});
  CHECK_FALSE(log.has_scaler);
  SkipLogReplay replay({"1", "65536"}, {});
  replay.take(log);
  CHECK(overflows(replay.greatest(), 0) == std::vector<std::int64_t>{2});
  CHECK(overflows(replay.greatest(), 1) == std::vector<std::int64_t>{1, 2});
  CHECK(overflows(replay.least(), 1).empty());
}

TEST_CASE("an overflow behind a line of iteration 0 is the first step", "[skip_log]") {
  CHECK(text_of(read({"step,loss_scale,grad_norm", "0,64,", overflow("64", ", reducing to 32")})) ==
        "1 skipped at 64");
  CHECK(text_of(read({iteration(0, "64", 0), overflow("64", ", reducing to 32")})) == "1 skipped at 64");
}

TEST_CASE("a count that falls back to 0 leaves no step open", "[skip_log]") {
  const SkipLog log =
      read({"step,loss_scale", "2,64", overflow("64", ", reducing to 32"), "0,64", "1,64", "2,64"});
  CHECK(text_of(log) == "1 finite at 64, 2 finite at 64");
  CHECK(log.unknown_steps == 0);
}

TEST_CASE("overflow lines tell the scale of iterations that print none", "[skip_log]") {
  const std::string without = " iteration 4/ 9 | lm loss: 7.1 | number of skipped iterations: 3 |";
  const SkipLog log = read({overflow("64", ", reducing to 32"), without});
  CHECK(text_of(log) == "2 skipped at 128, 3 skipped at 128, 4 skipped at 64");
  for (const LoggedStep& step : log.steps) CHECK(step.low <= step.high);
}

TEST_CASE("a step that is no number is no step", "[skip_log]") {
  check_says(message_of<InvalidArgument>([&] { (void)read({R"({"_step": NaN, "loss_scale": 64})"}); }),
             {"no step in it"});
}

TEST_CASE("steps in holes may be anything", "[skip_log]") {
  const SkipLog log =
      read({iteration(10, "65536.0", 0), iteration(20, "65536.0", 0), iteration(30, "65536.0", 0),
            iteration(1000, "8192.0", 0), iteration(1010, "8192.0", 0)});
  CHECK(log.unknown_steps == 960);
  CHECK(log.skipped_in_holes == 3);
  CHECK(log.step_count() == 1010);
  SkipLogReplay replay({"8192"}, {});
  replay.take(log);
  CHECK(overflows(replay.least(), 0).empty());
  CHECK(overflows(replay.greatest(), 0).size() == 969);  // and nine where the scale may have grown
  check_says(verdict_of(log), {"At least 3 steps", "holes"});
}

TEST_CASE("overflows without a counter, to the smallest scale, are incurable", "[skip_log]") {
  std::vector<std::string> lines{overflow("65536", ", but hysteresis is 2. Reducing hysteresis to 1")};
  for (int scale = 65536; scale > 1; scale /= 2)
    lines.push_back(overflow(std::to_string(scale), ", reducing to " + std::to_string(scale / 2)));
  const std::string exception =
      "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.";
  lines.insert(lines.end(), {exception, exception});
  const SkipLog log = read(lines);
  CHECK(log.skipped == 18);
  CHECK(log.ended == 18);
  CHECK_FALSE(log.counts_steps);
  CHECK(log.steps.back().scale == 1);
  SkipLogReplay replay({"1", "8", "deepspeed"}, {});
  replay.take(log);
  CHECK(overflows(replay.least(), 0) == std::vector<std::int64_t>{18});
  CHECK(overflows(replay.greatest(), 0).size() == 18);
  CHECK(overflows(replay.greatest(), 1).size() == 18);
  CHECK(replay.first_unsure(2) == std::nullopt);
  check_says(verdict_of(log), {"No loss scale cures this", "All 18 steps", "first_overflow"});
}

TEST_CASE("verdicts tell skips of the start-up, regular ones and late ones apart", "[skip_log]") {
  SkipLog log;
  const auto add = [&](double scale, bool skipped) {
    log.steps.push_back({std::ssize(log.steps) + 1, scale, skipped});
  };
  for (const double scale : {65536.0, 32768.0, 16384.0}) add(scale, true);
  for (int i = 0; i < 50; ++i) add(8192, false);
  check_says(verdict_of(log), {"3 steps skipped at the start", "2^16 to 2^13", "harmless"});
  for (int cycle = 0; cycle < 4; ++cycle) {
    add(16384, true);
    for (int i = 0; i < 50; ++i) add(8192, false);
  }
  check_says(verdict_of(log),
             {"3 steps skipped at the start", "4 steps skipped later, regularly", "largest scale of 2^13"});
  log.steps.erase(log.steps.begin(), log.steps.begin() + 100);
  for (int i = 0; i < 500; ++i) add(8192, false);
  add(8192, true);
  add(4096, false);
  check_says(verdict_of(log), {"skipped later; a largest scale of 2^12"});
  log.steps.assign({{1, 8}, {2, 8}});
  CHECK(verdict_of(log) == "No step was skipped.");
  log.steps.assign({{1, 8, true}, {2, 4, true}});
  check_says(verdict_of(log), {"All 2 steps", "down to a scale of 2^2"});
}

TEST_CASE("lines of fairseq, Apex, MAE, the Trainer, JSON and CSV are read", "[skip_log]") {
  const SkipLog fairseq =
      read({"2026-02-03 | INFO | fairseq.trainer | NOTE: overflow detected, setting loss scale to: 64.0",
            "| WARNING: overflow detected, setting loss scale to: 32.0",
            "2026-02-03 | INFO | train_inner | epoch 002: 2 / 900 loss=7.31, num_updates=2, gnorm=88.4, "
            "loss_scale=32, wall=4",
            "2026-02-03 | INFO | train_inner | epoch 002: 4 / 900 loss=7.31, num_updates=4, gnorm=88.4, "
            "loss_scale=32, wall=4"});
  CHECK(fairseq.format == SkipLogFormat::fairseq);
  CHECK(text_of(fairseq) ==
        "1 skipped at 128, 2 skipped at 64, 3 finite at 32, 4 finite at 32, 5 finite at 32, 6 finite at 32");
  const SkipLog apex =
      read({"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
            "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 16384.0"});
  CHECK(apex.format == SkipLogFormat::apex);
  CHECK(text_of(apex) == "1 skipped at 65536, 2 skipped at 32768");
  const SkipLog mae =
      read({"Epoch: [1]  [ 1/10]  eta: 0:10  lr: 0.1  loss: 6.9 (7.0)  loss_scale: 64.0000 (64.0000)",
            "Epoch: [1]  [ 2/10]  eta: 0:10  lr: 0.1  loss: 6.9 (7.0)  loss_scale: 32.0000 (64.0000)"});
  CHECK(mae.format == SkipLogFormat::mae);
  CHECK(text_of(mae) == "12 finite at 64, 13 skipped at 64");
  const SkipLog state =
      read({"{", "  \"best_metric\": null,", "  \"log_history\": [", "    {", "      \"epoch\": 0.1,",
            "      \"grad_norm\": 1.5,", "      \"step\": 10", "    },", "    {", "      \"grad_norm\": NaN,",
            "      \"step\": 20", "    }", "  ],"});
  CHECK(state.format == SkipLogFormat::hf_trainer);
  CHECK(state.lost_from() == 20);
  const SkipLog printed = read({"{'loss': 2.04, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': 0.28}",
                                "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.29}"});
  CHECK(printed.lost_from() == 2);
  const SkipLog json = read({R"({"_step": 1, "loss_scale": 64.0})", R"({"_step": 2, "loss_scale": 32.0})"});
  CHECK(text_of(json) == "1 finite at 64, 2 skipped at 64");
  const SkipLog csv = read({"\"Step\",\"run-a - train/loss_scale\",\"run-a - train/loss_scale__MIN\"",
                            "\"1\",\"64\",\"64\"", "\"2\",\"32\",\"32\"", "\"3\",\"32\",\"32\""});
  CHECK(csv.format == SkipLogFormat::csv);
  CHECK(text_of(csv) == "1 finite at 64, 2 skipped at 64, 3 finite at 32");
  const SkipLog lightning = read({"epoch,grad_norm,step", "0,1.5,49", "0,,49", "0,nan,99"});
  CHECK(lightning.lost_from() == 99);
}

TEST_CASE("a known format without a scale is named, with what would be read", "[skip_log]") {
  const auto message = [](const std::vector<std::string>& lines) {
    return message_of<InvalidArgument>([&] { (void)read(lines); });
  };
  check_says(message({"abc brain.Event:2 def"}), {"TensorBoard", "CSV", "\"max_abs\": 12.5"});
  check_says(message({"iter 0: loss 10.9, time 100.0ms"}), {"nanoGPT"});
  check_says(message({}), {"the file is empty"});
  check_says(message({"epoch 1, loss 2.5"}), {"there is no step in it", "fairseq", "\"scale\": 65536"});
}

TEST_CASE("the gradients' norm bounds the largest of them", "[skip_log]") {
  const double norm = 1.0;  // 65520 is reached between 2^15 and 2^16
  SkipLogReplay replay({"32768", "65536"}, {});
  take(replay, {{1, 2, false, norm}, {2, 2, false, norm}});
  CHECK(replay.first_unsure(0) == std::nullopt);
  CHECK(replay.first_unsure(1) == 1);
}

TEST_CASE("steps between those of a log are replayed as not skipped", "[skip_log]") {
  SkipLogReplay replay({"dynamic"}, {{"initial_scale", 1}, {"growth_interval", 10}});
  take(replay, {{1, 64}, {40, 64}, {41, 64}});
  CHECK(replay.least().candidates()[0].replay.scales() == std::vector<double>{1, 8, 16});
  CHECK(replay.first_unsure(0) == std::nullopt);
}

TEST_CASE("scalers that look at magnitudes are left out of all, and refused by name", "[skip_log]") {
  CHECK(SkipLogReplay({"all"}, {}).least().left_out() ==
        std::vector<std::string>{"openseq2seq_logmax", "popart", "headroom"});
  const auto message = [](const char* name) {
    return message_of<InvalidArgument>([&] { (void)SkipLogReplay({"dynamic", name}, {}); });
  };
  check_says(message("headroom"), {"headroom", "largest magnitude", "a log of skipped steps"});
  check_says(message("popart"), {"popart", "histogram"});
}

}  // namespace
}  // namespace halfscope::skip_log_test
