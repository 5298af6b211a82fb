// Logs as people showed them in public, with other numbers: the sentence that each must and must not lead to.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include <halfscope/scaling/skip_log_replay.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/log_lines.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::skip_log_cases_test {
namespace {

using Lines = std::vector<std::string>;

bool says(const SkipLog& log, const char* text) {
  return verdict_of(log).find(text) != std::string::npos;
}

TEST_CASE("other lines of a training between overflows are steps that nobody counted", "[skip_log]") {
  const std::string overflow = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to ";
  const SkipLog opennmt = read_log({overflow + "32768.0", "[2026] Step 50/100000; acc: 5.1; ppl: 9.1",
                                    overflow + "16384.0", "[2026] Step 100/100000; acc: 5.1; ppl: 9.1",
                                    overflow + "8192.0", "[2026] Step 200/100000; acc: 5.1; ppl: 9.1"});
  CHECK(opennmt.least_skipped() == 3);
  CHECK_FALSE(says(opennmt, "All 3 steps"));
  const auto line = [](int step, const char* scale) {
    return "rank=0 global iter: " + std::to_string(step) + "/ 5000| lm loss: 7.1 | scale: " + scale;
  };
  const SkipLog deepspeed =
      read_log({line(1, "64.00"), overflow_line("64", ", reducing to 32"), line(3, "32.00"),
                overflow_line("32", ", reducing to 16"), line(5, "16.00")});
  CHECK(deepspeed.step_count() == 5);
  CHECK(deepspeed.skipped == 2);
  CHECK_FALSE(says(deepspeed, "All"));
}

TEST_CASE("scales that are none, and steps that no run has, are not read as others", "[skip_log]") {
  for (const char* scale : {"inf", "-inf", "nan", "-1", "0", "1e300", "1e400", "1e-400"}) {
    INFO(scale);
    const SkipLog log = read_log({"step,loss_scale", "1,65536", std::string("2,") + scale, "3,65536"});
    CHECK(log.bad_scale_line == 3);
    CHECK(says(log, "in line 3"));
    CHECK(log.skipped == 0);
  }
  check_says(message_of<InvalidArgument>([] {
               (void)read_log({"step=1000000000000000000 loss_scale=64", "step=-3 loss_scale=64"});
             }),
             {"line 1 names a step that is no whole number from 0 to 2^53"});
  CHECK(read_log({"step=9007199254740993 loss_scale=64", "step=7 loss_scale=64", "step=8 loss_scale=32"})
            .step_count() == 2);
  CHECK_THROWS_AS(read_log({"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 1e-46"}),
                  InvalidArgument);
}

TEST_CASE("a scale below a half that Megatron-LM rounds is none", "[skip_log]") {
  const RecordedRun run = recorded_run(
      read_log({iteration_line(1, "2.0", 0), iteration_line(2, "1.0", 1), iteration_line(3, "0.5", 1),
                iteration_line(4, "0.2", 1), iteration_line(5, "0.1", 1), iteration_line(6, "0.1", 0)}));
  for (std::size_t i = 1; i < run.scales.size(); ++i) CHECK(run.scales[i] <= run.scales[i - 1]);
}

TEST_CASE("an entry of the Trainer has the step that it prints, or is called an entry", "[skip_log]") {
  const auto line = [](int step, const char* norm) {
    return "{'loss': '2.1', 'grad_norm': '" + std::string(norm) +
           "', 'learning_rate': '5e-05', 'epoch': '0.1', 'global_step/max_steps': '" + std::to_string(step) +
           "/100', 'percentage': '25.00%', 'elapsed_time': '1m 4s'}";
  };
  const SkipLog swift = read_log({line(5, "1.5"), line(10, "1.5"), line(15, "1.5"), line(20, "1.5")});
  CHECK(swift.steps.back().step == 20);
  const auto bare = [](const char* loss, const char* norm) {
    return std::string("{'loss': ") + loss + ", 'grad_norm': " + norm + ", 'learning_rate': 5e-05}";
  };
  const SkipLog lost =
      read_log({bare("2.1", "1.5"), bare("2.1", "1.5"), bare("0.0", "nan"), bare("0.0", "nan")});
  REQUIRE(lost.lost);
  CHECK(says(lost, "printed entr"));
  CHECK_FALSE(says(lost, "from step"));
}

TEST_CASE("a Trainer that prints its steps names the window of the first lost one", "[skip_log]") {
  const auto line = [](int step, const char* loss, const char* norm) {
    return "{'loss': '" + std::string(loss) + "', 'grad_norm': '" + norm + "', 'global_step/max_steps': '" +
           std::to_string(step) + "/100'}";
  };
  const SkipLog log = read_log({line(5, "2.1", "1.5"), line(10, "2.1", "1.5"), line(15, "2.1", "1.5"),
                                line(20, "2.1", "1.5"), line(25, "0", "nan"), line(30, "0", "nan")});
  REQUIRE(log.lost);
  CHECK(log.lost->earliest == 21);
  CHECK(log.lost->latest == 25);
  CHECK(says(log, "steps 21 to 25"));
}

TEST_CASE("objects of JSON with names of whatever folder are read", "[skip_log]") {
  CHECK(read_log({R"({"step": 1, "grad_norm": 1.0})", R"({"step": 2, "grad_norm": 1.5})"}).step_count() == 2);
  CHECK(text_of(read_log(
            {R"({"step": 1, "train/loss_scale": 65536})", R"({"step": 2, "train/loss_scale": 32768})"})) ==
        "1 finite at 65536, 2 skipped at 65536");
  for (const char* norm : {"NaN", "Infinity"}) {
    const std::string bad = std::string(R"({"step": 2, "grad_norm": )") + norm + "}";
    CHECK(read_log({R"({"step": 1, "grad_norm": 1.0})", bad, R"({"step": 3, "grad_norm": 1.0})"}).disproved);
    CHECK(read_log({R"({"step": 1, "grad_norm": 1.0})", bad}).lost_from() == 2);
  }
}

TEST_CASE("TensorBoard's table of one scalar is read once its user says which", "[skip_log]") {
  const Lines lines{"Wall time,Step,Value", "1700000000.5,1,65536.0", "1700000001.5,2,32768.0"};
  check_says(message_of<InvalidArgument>([&] { (void)read_log(lines); }), {"--columns loss_scale=Value"});
  SkipLogReader reader(parse_log_columns("loss_scale=Value"));
  for (const std::string& line : lines) reader.line(line);
  CHECK(text_of(reader.finish()) == "1 finite at 65536, 2 skipped at 65536");
}

TEST_CASE("a loss that is not finite to the end is found beside finite lines", "[skip_log]") {
  std::string bad = iteration_line(2, "1.0", 0);
  bad.replace(bad.find("7.1E+00"), 7, "NAN");
  CHECK(read_log({iteration_line(1, "1.0", 0), bad}).step_count() == 2);
  const SkipLog trainer =
      read_log({"{'loss': 2.1, 'learning_rate': 5e-05}", "{'loss': nan, 'learning_rate': 5e-05}",
                "{'loss': nan, 'learning_rate': 5e-05}"});
  REQUIRE(trainer.lost);
  CHECK(says(trainer, "the loss is not finite in lines 2 to 3, to the end"));
}

TEST_CASE("lines that say why a run ended are used in every format", "[skip_log]") {
  const auto icefall = [](int batch, const char* scale) {
    return "(0/4) Epoch 1, batch " + std::to_string(batch) +
           ", loss[loss=0.5, over 1000.00 frames. ], lr: 3.00e-02, grad_scale: " + scale;
  };
  check_says(verdict_of(read_log({icefall(1, "0.5"), icefall(2, "0.25"),
                                  "RuntimeError: grad_scale is too small, exiting: 1.1368683772161603e-13"})),
             {"could not fall further (line 3)"});
  Lines bf16;
  for (int i = 1; i <= 10; ++i) bf16.push_back(iteration_line(i, "1.0", 0));
  bf16.emplace_back(
      "AssertionError: Rank 3: found NaN in local grad norm for bucket #0 in backward pass before "
      "data-parallel "
      "communication collective. Device: 3, node: host");
  check_says(verdict_of(read_log(bf16)), {"stopped", "line 11", "after step 10"});
  check_says(verdict_of(read_log({"Epoch: [0]  [ 0/10]  loss: 6.9 (7.0)  loss_scale: 64.0000 (64.0000)",
                                  "Loss is nan, stopping training"})),
             {"stopped", "line 2"});
}

TEST_CASE("every object of a line is read, an array's too", "[skip_log]") {
  constexpr std::string_view first = R"({"step": 1, "loss_scale": 64, "note": "a } and \" {"})",
                             second = R"({"step": 2, "loss_scale": 32, "data": {"epoch": 1}})";
  for (const char* format : {"[{}, {}]", "{} {}", "{},{}", "x {} {} z"}) {
    INFO(format);
    CHECK(text_of(read_log({fmt::format(fmt::runtime(format), first, second)})) ==
          "1 finite at 64, 2 skipped at 64");
  }
}

TEST_CASE("an array without a newline at its end is whole", "[skip_log]") {
  SkipLogReader reader;
  reader.cut_line(R"([{"step": 1, "loss_scale": 64}, {"step": 2, "loss_scale": 32}])");
  CHECK(text_of(reader.finish()) == "1 finite at 64, 2 skipped at 64");
}

TEST_CASE("a byte order mark is no part of a header", "[skip_log]") {
  CHECK(text_of(read_log({"\xEF\xBB\xBFstep,loss_scale", "1,64", "2,32"})) ==
        "1 finite at 64, 2 skipped at 64");
}

TEST_CASE("bytes of 0 at the beginning of a file are refused, with what takes them out", "[skip_log]") {
  const std::string zero(1, '\0');
  for (const std::string& line : {zero, zero + "step 3: loss_scale: 64",
                                  "\x7F"
                                  "ELF\x02\x01\x01" +
                                      zero}) {
    SkipLogReader reader;
    reader.line("step 1: loss_scale: 64");
    check_says(message_of<InvalidArgument>([&] { reader.line(line); }),
               {"line 2 has bytes of 0", "iconv", "tr -d"});
  }
  SkipLogReader late;
  late.line("step 1: loss_scale: 64 " + std::string(9000, 'x'));
  late.line(zero);
  late.line("step 2: loss_scale: 32");
  CHECK(text_of(late.finish()) == "1 finite at 64, 2 skipped at 64");
}

TEST_CASE("a norm of 0 beside a loss of 0 speaks against lost weights", "[skip_log]") {
  const auto entry = [](const char* norm) {
    return fmt::format("{{'loss': 0.0, 'grad_norm': {}, 'learning_rate': 5e-05}}", norm);
  };
  CHECK_FALSE(read_log({entry("1.5"), entry("0.0"), entry("0.0")}).lost);
  CHECK(read_log({entry("1.5"), entry("nan"), entry("nan")}).lost);
}

TEST_CASE("a counter of skips is that of the lines which a restart keeps", "[skip_log]") {
  const auto line = [](int step, int skipped) {
    return fmt::format(R"({{"step": {}, "loss_scale": 64, "skipped_steps": {}}})", step, skipped);
  };
  const SkipLog log = read_log({line(10, 0), line(20, 1), line(30, 4), line(30, 3), line(40, 3)});
  CHECK(log.least_skipped() == 3);
}

TEST_CASE("a log without a scaler bounds no skips", "[skip_log]") {
  const SkipLog log = read_log({"step,loss_scale", "50,1", "100,1"});
  CHECK_FALSE(log.has_scaler);
  CHECK(log.most_skipped() == std::nullopt);
}

TEST_CASE("a fall in a hole takes no more skips than the hole has steps", "[skip_log]") {
  const SkipLog deep = read_log({"step,loss_scale", "1,65536", "2,65536", "4,1"});
  CHECK(deep.skipped_in_holes == 1);
  CHECK(deep.least_skipped() <= *deep.most_skipped());
  // A counter of the line behind the hole explains the fall.
  const auto line = [](int iteration, const char* scale, int skipped) {
    return iteration_line(iteration, scale, skipped);
  };
  const SkipLog counted =
      read_log({line(10, "64.0", 0), line(20, "64.0", 0), line(40, "16.0", 2), line(50, "16.0", 0)});
  CHECK(counted.skipped == 2);
  CHECK(counted.skipped_in_holes == 0);
}

TEST_CASE("numbers of a kind that a line has twice are named", "[skip_log]") {
  struct Case {
    Lines lines;
    const char* name;
  };
  const std::vector<Case> cases{
      {{"step=1 loss_scale=64 disc/loss_scale=32", "step=2 loss_scale=32 disc/loss_scale=16"},
       "'disc/loss_scale' (line 1)"},
      {{"step=1 loss_scale_G=64 loss_scale_D=8", "step=2 loss_scale_G=32 loss_scale_D=8"},
       "'loss_scale_D' (line 1)"},
      {{R"({"step": 1, "loss_scale": 64, "loss_scale": 8})", R"({"step": 2, "loss_scale": 32})"},
       "'loss_scale' (line 1)"},
      {{"step:1 - loss_scale:64 - actor/grad_norm:1.5 - critic/grad_norm:2.5",
        "step:2 - loss_scale:32 - actor/grad_norm:1.5 - critic/grad_norm:2.5"},
       "'critic/grad_norm' (line 1)"},
  };
  for (const auto& [lines, name] : cases) {
    INFO(name);
    const SkipLog log = read_log(lines);
    CHECK(text_of(log) == "1 finite at 64, 2 skipped at 64");
    REQUIRE(log.notes.size() == 2);
    check_says(log.notes[1], {name, "--columns"});
  }
  CHECK(read_log({"step=1 loss_scale=64 loss_scale=64"}).notes.size() == 1);
}

TEST_CASE("the step of a line that counts within an epoch is named by what stands before it", "[skip_log]") {
  const SkipLog log =
      read_log({"mmengine - INFO - Epoch(train)  [1][   50/29572]  grad_norm: 2.5  loss: 53.0"});
  REQUIRE(log.notes.size() == 1);
  check_says(log.notes[0], {"step = the number behind Epoch"});
}

}  // namespace
}  // namespace halfscope::skip_log_cases_test
