// Proofs by later lines, lines that were cut, and logs of whatever names.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/log_lines.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::skip_log_evidence_test {
namespace {

using Lines = std::vector<std::string>;

/// A step with a norm, in seven formats: the second line of each is that of another step.
struct NormFormat {
  const char* name;
  Lines head;
  std::string (*line)(int step, const std::string& norm);
};
const std::vector<NormFormat> norm_formats{
    {"trainer",
     {},
     [](int, const std::string& norm) {
       return "{'loss': 2.1, 'grad_norm': " + norm + ", 'learning_rate': 5e-05, 'epoch': 0.1}";
     }},
    {"trainer 5",
     {},
     [](int, const std::string& norm) {
       return "{'loss': '2.1', 'grad_norm': '" + norm + "', 'learning_rate': '5e-05', 'epoch': '0.1'}";
     }},
    {"numpy",
     {},
     [](int, const std::string& norm) {
       return "{'loss': 2.1, 'grad_norm': np.float64(" + norm + "), 'learning_rate': 5e-05, 'epoch': 0.1}";
     }},
    {"csv",
     {"step,loss_scale,grad_norm"},
     [](int step, const std::string& norm) { return fmt::format("{},32768,{}", step, norm); }},
    {"json",
     {},
     [](int step, const std::string& norm) {
       return fmt::format(R"({{"step": {}, "grad_norm": {}}})", step, norm == "nan" ? "NaN" : norm);
     }},
    {"megatron", {}, [](int step, const std::string& norm) { return iteration_line(step, "1.0", 0, norm); }},
    {"verl",
     {},
     [](int step, const std::string& norm) {
       return fmt::format("step:{} - actor/grad_norm:{} - actor/lr:0.0", step, norm);
     }},
};

SkipLog log_of(const NormFormat& format, const std::vector<std::string>& norms) {
  Lines lines = format.head;
  for (std::size_t i = 0; i < norms.size(); ++i)
    lines.push_back(format.line(static_cast<int>(i) + 1, norms[i]));
  return read_log(lines);
}

TEST_CASE("a norm that is finite again disproves lost weights, and one that stays NaN does not",
          "[skip_log]") {
  for (const NormFormat& format : norm_formats) {
    INFO(format.name);
    const auto head = static_cast<std::int64_t>(format.head.size());
    const bool has_loss = format.line(1, "1.5").find("loss'") != std::string::npos;
    for (const std::vector<std::string>& norms :
         {std::vector<std::string>{"nan", "1.5"}, {"1.5", "nan", "2.5"}, {"nan", "nan", "1.5"}}) {
      const SkipLog log = log_of(format, norms);
      CHECK(log.lost_from() == std::nullopt);
      REQUIRE(log.disproved);
      CHECK(log.disproved->disproof == head + std::ssize(norms));
      CHECK(log.least_skipped() >= 1);
      check_says(verdict_of(log),
                 {fmt::format("the norm of line {} is: no weight is lost", head + std::ssize(norms))});
    }
    if (has_loss) continue;  // a finite loss shows life as well
    const SkipLog lost = log_of(format, {"1.5", "nan", "nan"});
    CHECK(lost.lost_from() == 2);
    check_says(verdict_of(lost),
               {"Weights are lost from", fmt::format("lines {} to {}", head + 2, head + 3)});
  }
}

TEST_CASE("a norm by its short name is the gradients', and one behind a word is that of the word",
          "[skip_log]") {
  const auto log_with = [](std::string_view name, std::string_view mark) {
    Lines lines;
    for (int step = 1; step <= 3; ++step)
      lines.push_back(
          fmt::format("step {}/3 | loss nan | {}{}{}", step, name, mark, step < 3 ? "1.5" : "nan"));
    return lines;
  };
  for (const char* mark : {" ", ": ", "=", " = "}) {
    for (const char* name : {"norm", "Norm", "total_norm", "grad norm", "global_norm"}) {
      INFO(name << mark);
      CHECK(read_log(log_with(name, mark)).lost_from() == 3);
    }
    for (const char* name : {"weight norm", "param norm", "weight_norm", "Update Norm"}) {
      INFO(name << mark);
      CHECK(read_log(log_with(name, mark)).lost_from() == 1);  // by the loss alone
    }
  }
}

TEST_CASE("a last line without an end is no number, unless braces close it", "[skip_log]") {
  const auto verdict = [](const Lines& lines, const std::string& cut) {
    SkipLogReader reader;
    for (const std::string& line : lines) reader.line(line);
    reader.cut_line(cut);
    return verdict_of(reader.finish());
  };
  const Lines csv{"step,loss_scale", "1,32768", "2,32768"};
  const std::string never = verdict_of(read_log(csv));
  for (const char* cut : {"3", "3,", "3,3", "3,32", "3,32768"}) CHECK(verdict(csv, cut) == never);
  const Lines json{R"({"step": 1, "loss_scale": 64})"};
  CHECK(verdict(json, R"({"step": 2, "loss_scale": 3)") == verdict_of(read_log(json)));
  check_says(verdict(json, R"({"step": 2, "loss_scale": 32})"), {"1 step skipped"});
  // Another rank's line inside a line.
  const std::string joined = R"({"step": 2, "loss_scale": 3{"step": 2, "loss_scale": 64})";
  CHECK(read_log({json[0], joined}).skipped == 0);
  CHECK(read_log({"iter=1 loss_scale=64", "iter=2 loss_scale=3iter=2 loss_scale=64", "iter=3 loss_scale=64"})
            .skipped == 0);
}

TEST_CASE("a line every fifty steps gives the least and the most", "[skip_log]") {
  double scale = 65536;
  int good = 0, skips = 0;
  Lines lines{"step,loss_scale"};
  for (int step = 1; step <= 10000; ++step) {
    if (scale > 65536) {
      scale /= 2;
      good = 0;
      ++skips;
    } else if (++good == 2000) {
      scale *= 2;
      good = 0;
    }
    if (step % 50 == 0) lines.push_back(fmt::format("{},{}", step, scale));
  }
  const SkipLog log = read_log(lines);
  CHECK(skips == 4);
  CHECK(log.least_skipped() == 1);
  CHECK(log.most_by_rule == 5);
  CHECK(log.most_skipped() == 10000);
  check_says(verdict_of(log),
             {"at least 1", "at most 5 by PyTorch's scaler", "at most 10000 of 10000 steps by any"});
}

TEST_CASE("a scale that stayed is no scale that fell", "[skip_log]") {
  const std::string verdict =
      verdict_of(read_log({overflow_line("1024", ", reducing to 1024"), step_line(1, 1), step_line(2, 1)}));
  check_says(verdict, {"1 step skipped at a scale of 2^10, which stayed there"});
  CHECK(verdict.find("harmless") == std::string::npos);
}

TEST_CASE("overflows alone leave the steps between them open", "[skip_log]") {
  const auto apex = [](int scaler, const char* scale) {
    return fmt::format("Gradient overflow.  Skipping step, loss scaler {} reducing loss scale to {}", scaler,
                       scale);
  };
  const SkipLog log = read_log({apex(0, "32768.0"), "Step 50/100000; acc: 5.1", apex(0, "16384.0")});
  check_says(verdict_of(log), {"2 steps skipped, at scales from 2^16 to 2^15; no line counts steps"});
  CHECK(log.most_skipped() == std::nullopt);
  CHECK(read_log({apex(1, "32768.0"), apex(1, "16384.0")}).skipped == 2);
  const SkipLog two = read_log({apex(0, "32768.0"), apex(1, "32768.0"), apex(1, "16384.0")});
  CHECK(two.skipped == 1);
  REQUIRE(two.notes.size() == 1);
  CHECK(two.notes[0] == "Loss scaler 1 has a scale of its own: its 2 skipped steps are left out.");
}

TEST_CASE("what a table holds beside numbers is said", "[skip_log]") {
  check_says(verdict_of(read_log({"step,loss_scale", "1,65536", "2,inf"})),
             {"The loss scale is inf in line 3"});
  check_says(verdict_of(read_log({"step,loss_scale", "1,65536", "2,0"})), {"The loss scale is 0 in line 3"});
  CHECK(text_of(read_log({"step,loss_scale", "1,\"65,536\"", "2,\"32,768\""})) ==
        "1 finite at 65536, 2 skipped at 65536");
  CHECK(text_of(read_log({"step;log2_loss_scale", "1;16", "2;15"})) ==
        "1 finite at 65536, 2 skipped at 65536");
  const SkipLog two = read_log({"step,a - loss_scale,b - loss_scale", "1,64,8", "2,64,8"});
  check_says(two.notes.at(0), {"left out: 'b - loss_scale'"});
  check_says(read_log({"step,loss_scale", "1,64", "2,32", "1,64", "2,64"}).notes.back(), {"2 runs"});
}

TEST_CASE("a loss of 0 of the Trainer is none, and the share of the line before tells the step",
          "[skip_log]") {
  Lines lines;
  for (const auto& [step, loss] :
       std::vector<std::pair<int, double>>{{10, 2}, {20, 2}, {30, 1.76}, {40, 0}, {50, 0}})
    lines.push_back(
        fmt::format(R"({{"current_steps": {}, "total_steps": 240, "loss": {}, "lr": 4.5e-05}})", step, loss));
  const SkipLog log = read_log(lines);
  REQUIRE(log.lost);
  CHECK(log.lost->by_share == 25);
  CHECK(log.lost->earliest == 22);
  CHECK(log.lost->latest == 31);
  check_says(verdict_of(log), {"a loss of 0.0", "from step 25"});
}

TEST_CASE("an exception at the end of a log is used", "[skip_log]") {
  check_says(verdict_of(read_log({iteration_line(10, "1.0", 0),
                                  "AssertionError: found NaN in local grad norm for bucket #0"})),
             {"stopped", "line 2", "after step 10"});
  check_says(verdict_of(read_log({"[d2]: eta: 0:10  iter: 19  total_loss: 1.2",
                                  "[d2]: eta: 0:09  iter: 39  total_loss: 1.1",
                                  "FloatingPointError: Loss became infinite or NaN at iteration=53!"})),
             {"stopped", "line 3"});
}

TEST_CASE("any line with a step and a scale is read, and the names are told", "[skip_log]") {
  struct Named {
    const char* name;
    Lines lines;
  };
  const std::vector<Named> logs{
      {"internlm",
       {"INFO -- tflops=63.2,step=1,loss=11.6,tgs "
        "(tokens/gpu/second)=1424.9,lr=4.0e-07,loss_scale=64.0,grad_norm=63.6",
        "INFO -- tflops=63.2,step=2,loss=11.6,tgs "
        "(tokens/gpu/second)=1424.9,lr=4.0e-07,loss_scale=32.0,grad_norm=63.6"}},
      {"mindformers",
       {"{ Epoch:[  1/ 10], step:[    1/ 1000], loss: 10.6, lr: 1e-05, overflow cond: False, loss_scale: "
        "64.0",
        "{ Epoch:[  1/ 10], step:[    2/ 1000], loss: 10.6, lr: 1e-05, overflow cond: True, loss_scale: "
        "64.0"}},
      {"swin",
       {"Train: [0/300][0/1251]\teta 0:10:00 lr 0.000001\tloss 6.9 (6.9)\tgrad_norm 1.5 (1.6)\tloss_scale "
        "64.0000 (64.0000)",
        "Train: [0/300][1/1251]\teta 0:10:00 lr 0.000001\tloss 6.9 (6.9)\tgrad_norm 1.5 (1.6)\tloss_scale "
        "32.0000 (64.0000)"}},
      {"icefall",
       {"(0/4) Epoch 1, batch 1, loss[loss=0.5, over 1000.00 frames. ], lr: 3.00e-02, grad_scale: 64.0",
        "(0/4) Epoch 1, batch 2, loss[loss=0.5, over 1000.00 frames. ], lr: 3.00e-02, grad_scale: 32.0"}},
      {"dllogger",
       {"DLL 2020-03-13 - Epoch: 0 Iteration: 1 loss : 3.5 loss_scale: 64.0",
        "DLL 2020-03-13 - Epoch: 0 Iteration: 2 loss : 3.5 loss_scale: 32.0"}},
      {"dllogger json",
       {R"(DLLL {"type": "LOG", "step": [0, 1], "data": {"loss": 3.2, "loss_scale": 64.0}})",
        R"(DLLL {"type": "LOG", "step": [0, 2], "data": {"loss": 3.2, "loss_scale": 32.0}})"}},
      {"clu",
       {"I0729 logging_writer.py:48] [1] learning_rate=0.001, loss=2.3, scale=64.0",
        "I0729 logging_writer.py:48] [2] learning_rate=0.001, loss=2.3, scale=32.0"}},
      {"nemo",
       {"Epoch 0:  1%|#   | 1/100 [00:10<01:30, v_num=0, reduced_train_loss=10.6, global_step=1.000, "
        "loss_scale=64.0]",
        "Epoch 0:  2%|#   | 2/100 [00:10<01:30, v_num=0, reduced_train_loss=10.6, global_step=2.000, "
        "loss_scale=32.0]"}},
      {"composer",
       {"[epoch=1][batch=1/100]:", "\t Train time/batch: 0", "\t Train loss/train/total: 10.6",
        "\t Train trainer/grad_scale: 64.0", "[epoch=1][batch=2/100]:", "\t Train time/batch: 1",
        "\t Train loss/train/total: 10.6", "\t Train trainer/grad_scale: 32.0"}},
      {"tensorflow",
       {"INFO:tensorflow:iteration 1 with loss_scale: 64.0",
        "INFO:tensorflow:iteration 2 with loss_scale: 32.0"}},
      {"python", {"{'step': 1, 'loss_scale': tensor(64.)}", "{'step': 2, 'loss_scale': tensor(32.)}"}},
      {"nobody's", {"it=1 | amp_scale=64", "it=2 | amp_scale=32"}},
  };
  for (const Named& log : logs) {
    INFO(log.name);
    const SkipLog found = read_log(log.lines);
    CHECK(text_of(found) == "1 finite at 64, 2 skipped at 64");
    check_says(fmt::format("{}", fmt::join(found.notes, " ")), {"Read as: step = ", "loss scale = "});
  }
  const SkipLog paddle =
      read_log({"loss: 2.3, global_step: 1", "optimizer not run, scale_before: 64.0, scale_after: 32.0",
                "loss: 2.3, global_step: 2"});
  CHECK(paddle.skipped == 1);
  SkipLogReader diffusion;
  for (const char* line :
       {"| lg_loss_scale | 6.0 |", "| step | 1 |", "-----", "Found NaN, decreased lg_loss_scale to 5.0",
        "| lg_loss_scale | 5.5 |", "| step | 2 |", "-----"})
    diffusion.line(line);
  CHECK(diffusion.finish().skipped == 1);
}

TEST_CASE("a mean over a window is not finite for one of its steps", "[skip_log]") {
  const auto line = [](int step, const char* norm) {
    return fmt::format(
        "mmengine - INFO - Epoch(train)  [1][{:5}/29572]  lr: 1.0e-04  grad_norm: {}  loss: 53.0", step,
        norm);
  };
  const SkipLog log =
      read_log({line(50, "inf"), line(100, "2.5"), line(150, "inf"), line(200, "2.5"), line(250, "2.5")});
  CHECK(log.least_skipped() == 2);
  CHECK(log.most_skipped() == 247);  // each finite mean tells of its last step, and no more
  check_says(verdict_of(log), {"a mean over several steps", "no weight is lost", "at least 2; at most 247"});
}

TEST_CASE("skips that go on to the end of a log are spared by no largest scale", "[skip_log]") {
  for (int seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const int good = 1 + seed % 7, bad = 2 + seed % 29, lowest = seed % 3 == 0 ? 1 : 64;
    const int recovered = seed % 2 == 0 ? 0 : 3;
    Lines lines;
    int step = 0;
    double scale = 4096;
    const auto add = [&](const char* loss) {
      lines.push_back(fmt::format("step {} loss {} loss_scale {}", ++step, loss, scale));
    };
    for (int i = 0; i < good; ++i) add("2.25");
    for (int i = 0; i < bad; ++i) {
      scale = std::max<double>(lowest, scale / 2);
      add("nan");
    }
    for (int i = 0; i < recovered; ++i) add("2.25");
    const std::string verdict = verdict_of(read_log(lines));
    CAPTURE(verdict);
    const bool is_told =
        verdict.find(fmt::format("From step {} on no loss or norm is finite", good + 1)) != std::string::npos;
    CHECK(is_told == (recovered == 0));
    CHECK((verdict.find("no loss scale cures this") != std::string::npos) == (is_told && scale <= 1));
    if (is_told) {
      CHECK(verdict.find("would spare") == std::string::npos);
      CHECK(verdict.find("harmless") == std::string::npos);
    }
  }
}

TEST_CASE("columns that the user names are read, and no others of their kind", "[skip_log]") {
  SkipLogReader reader(parse_log_columns("step=tick,loss_scale=s:log2"));
  for (const char* line : {"tick 1: s: 6 loss_scale: 1", "tick 2: s: 5 loss_scale: 1"}) reader.line(line);
  CHECK(text_of(reader.finish()) == "1 finite at 64, 2 skipped at 64");
  for (const char* wrong : {"step", "step=", "scale=x", "lr=y"})
    check_says(message_of<InvalidArgument>([&] { (void)parse_log_columns(wrong); }), {"give NAME=COLUMN"});
}

}  // namespace
}  // namespace halfscope::skip_log_evidence_test
