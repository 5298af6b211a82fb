// Kinds of logs that no trainer is known for: processes that lag, restarts with another scale, evaluations
// between steps, commas in numbers.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <halfscope/core/error.hpp>
#include <halfscope/scaling/detail/log_fields.hpp>
#include <halfscope/scaling/skip_log_replay.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/log_lines.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::skip_log_kinds_test {
namespace {

using Lines = std::vector<std::string>;

/// A scale behind each step, which falls and grows at random.
std::vector<double> random_scales(std::size_t steps, std::mt19937_64& random) {
  std::vector<double> scales;
  double scale = 65536;
  for (std::size_t i = 0; i < steps; ++i) {
    if (random() % 4 == 0) scale /= 2;
    if (random() % 8 == 0) scale *= 2;
    scales.push_back(scale);
  }
  return scales;
}

Lines lines_of(const std::vector<double>& scales) {
  Lines lines;
  for (std::size_t i = 0; i < scales.size(); ++i)
    lines.push_back(fmt::format("step={} loss_scale={}", i + 1, scales[i]));
  return lines;
}

bool has_note(const SkipLog& log, std::string_view text) {
  return std::ranges::any_of(log.notes,
                             [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

TEST_CASE("processes that lag behind the first change nothing", "[skip_log]") {
  std::mt19937_64 random(1);
  for (int run = 0; run < 200; ++run) {
    const Lines of_one = lines_of(random_scales(20, random));
    const std::size_t ranks = 2 + random() % 3;
    std::vector<std::size_t> done(ranks, 0);
    Lines all;
    for (std::size_t left = ranks * of_one.size(); left > 0;) {
      const std::size_t rank = random() % ranks;
      const bool is_far = rank != 0 && done[0] < of_one.size() && done[rank] >= done[0];
      const bool is_ahead = rank == 0 && std::ranges::min(done) + 3 <= done[0];
      if (done[rank] == of_one.size() || is_far || is_ahead) continue;
      all.push_back(fmt::format("{}: {}", rank, of_one[done[rank]++]));
      --left;
    }
    const SkipLog found = read_whole_log(all), truth = read_whole_log(of_one);
    INFO(run);
    REQUIRE(text_of(found) == text_of(truth));
    REQUIRE_FALSE(has_note(found, "runs"));
  }
}

TEST_CASE("a restart that repeats lines and breaks off ends where it does", "[skip_log]") {
  const Lines lines = lines_of({64, 64, 64, 64, 64, 64});
  Lines twice = lines;
  twice.insert(twice.end(), lines.begin() + 2, lines.begin() + 4);
  CHECK(read_log(twice).steps.back().step == 4);
  twice.insert(twice.end(), lines.begin() + 4, lines.end());
  CHECK(read_log(twice).steps.back().step == 6);
}

TEST_CASE("a restart with another scale is no skipped step", "[skip_log]") {
  for (const int after : {1024, 131072}) {
    Lines lines = lines_of(std::vector<double>(10, 65536));
    for (int step = 6; step <= 12; ++step) lines.push_back(fmt::format("step={} loss_scale={}", step, after));
    const SkipLog log = read_log(lines);
    CHECK(log.skipped == 0);
    CHECK(log.seam_line == 11);
    CHECK(log.most_skipped() == 2);  // the first step, and that behind the restart
    check_says(verdict_of(log), {"The scale fell at a restart alone (line 11)", "perhaps 2"});
  }
  // A skip behind the restart is one.
  Lines lines = lines_of(std::vector<double>(10, 65536));
  for (const auto& [step, scale] : std::vector<std::pair<int, int>>{{6, 1024}, {7, 512}})
    lines.push_back(fmt::format("step={} loss_scale={}", step, scale));
  CHECK(read_log(lines).skipped == 1);
}

TEST_CASE("a bar that begins anew after its end counts the steps of the next epoch", "[skip_log]") {
  std::mt19937_64 random(2);
  for (int run = 0; run < 100; ++run) {
    const std::size_t epoch = 3 + random() % 6, epochs = 2 + random() % 3;
    const std::vector<double> scales = random_scales(epoch * epochs, random);
    for (const char* name : {"", "Epoch {}:"}) {
      std::string text;
      for (std::size_t i = 0; i < scales.size(); ++i)
        text += fmt::format("\r{} 9%|#  | {}/{} [00:10<00:10, 2.00it/s, loss=2.3, loss_scale={}]",
                            fmt::format(fmt::runtime(name), i / epoch), i % epoch + 1, epoch, scales[i]);
      INFO(run << " " << name);
      REQUIRE(text_of(read_whole_log({text})) == text_of(read_whole_log(lines_of(scales))));
    }
  }
}

TEST_CASE("losses of evaluations tell nothing of the weights", "[skip_log]") {
  const Lines trained{R"({"step": 1, "loss": 2.5, "loss_scale": 64})",
                      R"({"step": 2, "loss": 2.5, "loss_scale": 64})"};
  const std::string truth = verdict_of(read_log(trained));
  for (const char* evaluation :
       {"step=2 val/loss=nan", "step 2: val loss: nan", "step 2: Validation loss: nan, test loss nan",
        R"({"step": 2, "eval/loss": NaN})", R"({"step": 2, "eval": {"loss": NaN, "sets": {"loss": NaN}}})",
        R"({"eval": [{"step": 9, "loss": NaN}], "step": 2})", "step=2 eval/mean/grad_norm=inf"}) {
    INFO(evaluation);
    Lines lines = trained;
    lines.emplace_back(evaluation);
    const SkipLog log = read_log(lines);
    CHECK_FALSE(log.lost);
    CHECK_FALSE(log.disproved);
    CHECK(log.steps.back().step == 2);
    CHECK(verdict_of(log).substr(0, 40) == truth.substr(0, 40));
  }
  CHECK(read_log({trained[0], R"({"step": 2, "train": {"loss": NaN}})"}).lost);
  CHECK(read_log({trained[0], "step 2: train loss: nan"}).lost);
}

TEST_CASE("steps with lines of two scalers are refused", "[skip_log]") {
  Lines lines;
  for (int step = 1; step <= 4; ++step) {
    lines.push_back(fmt::format("[G] step={} loss_scale=65536", step));
    lines.push_back(fmt::format("[D] step={} loss_scale=1024", step));
  }
  check_says(message_of<InvalidArgument>([&] { (void)read_log(lines); }),
             {"lines of one step have different scales, as lines 1 and 2 have"});
  CHECK_FALSE(has_note(read_log({lines[0], lines[0], lines[2]}), "different scales"));
}

TEST_CASE("steps that count samples are named", "[skip_log]") {
  const SkipLog log = read_log({"step,Train/Samples/loss_scale", "512,65536", "1024,65536"});
  CHECK(has_note(log, "steps count samples"));
}

TEST_CASE("a scale without a loss is one if it is a power of two", "[skip_log]") {
  CHECK(read_log({"step: 1 scale: 64", "step: 2 scale: 32"}).skipped == 1);
  CHECK_THROWS_AS(read_log({"step: 1 scale: 7.5", "step: 2 scale: 3.5"}), InvalidArgument);
  SkipLogReader named(parse_log_columns("loss_scale=scale"));
  for (const char* line : {"step: 1 scale: 7.5", "step: 2 scale: 3.75"}) named.line(line);
  CHECK(named.finish().skipped == 1);
}

TEST_CASE("commas stand between thousands, before decimals or between numbers", "[skip_log]") {
  struct Number {
    const char* text;
    std::optional<double> value;
  };
  for (const auto& [text, value] : std::vector<Number>{{"65,536", 65536},
                                                       {"65,536.5 x", 65536.5},
                                                       {"1,048,576", 1048576},
                                                       {"1,048,57", std::nullopt},
                                                       {"0,512", std::nullopt},
                                                       {"65536,0", std::nullopt},
                                                       {"1,25", std::nullopt},
                                                       {"1, 25", 1},
                                                       {"12,lr=3", 12},
                                                       {"nan", std::nullopt}}) {
    INFO(text);
    std::string_view rest = text;
    const auto number = take_grouped_number(rest);
    if (std::string_view(text) == "nan") {
      REQUIRE(number);
      CHECK(*number != *number);
    } else {
      CHECK(number == value);
    }
  }
}

TEST_CASE("an object that another line breaks into tells nothing", "[skip_log]") {
  const Lines whole{"{", "\"step\": 1,", "\"loss_scale\": 64", "}",
                    "{", "\"step\": 2,", "\"loss_scale\": 32", "}"};
  CHECK(text_of(read_log(whole)) == "1 finite at 64, 2 skipped at 64");
  Lines broken = whole;
  broken.insert(broken.begin() + 6, "step 2: loss_scale: 64");
  CHECK(text_of(read_log(broken)) == "1 finite at 64, 2 finite at 64");
  CHECK(text_of(read_log({"[", "{\"step\": 1, \"loss_scale\": 64},", "{\"step\": 2, \"loss_scale\": 32}",
                          "]"})) == "1 finite at 64, 2 skipped at 64");
  CHECK(text_of(read_log({"config: {'lr': 0.1,", " 'loss_scale': 8}", "step=1 loss_scale=64"})) ==
        "1 finite at 64");
}

TEST_CASE("a name that may be that of a loss scale is never passed over", "[skip_log]") {
  for (const char* name : {"scaler", "loss_scaling_factor", "amp_scaler", "fp16_scaling", "grad_scaling"}) {
    INFO(name);
    Lines lines;
    for (int step = 1; step < 6; ++step)
      lines.push_back(fmt::format("step={} {}={} grad_norm=1.5", step, name, step < 4 ? 65536 : 32768));
    const std::string verdict = verdict_of(read_log(lines));
    check_says(verdict, {fmt::format("--columns loss_scale={} reads it", name), "line 1"});
    CHECK(verdict.find("none is printed") == std::string::npos);
    SkipLogReader reader(parse_log_columns(fmt::format("loss_scale={}", name)));
    for (const std::string& line : lines) reader.line(line);
    CHECK(reader.finish().skipped == 1);
    for (std::string& line : lines) line.erase(line.find(" grad_norm"));
    check_says(message_of<InvalidArgument>([&] { (void)read_log(lines); }),
               {fmt::format("--columns loss_scale={}", name)});
    check_says(verdict_of(read_log({fmt::format("step,{},grad_norm", name), "1,64,1.5", "2,32,1.5"})),
               {fmt::format("loss_scale={}", name)});
  }
  for (const char* name : {"lr_scale", "guidance_scale", "loss_scale_window", "growth_factor"}) {
    INFO(name);
    const SkipLog log = read_log(
        {fmt::format("step=1 {}=2 grad_norm=1.5", name), fmt::format("step=2 {}=2 grad_norm=1.5", name)});
    check_says(verdict_of(log), {"none is printed"});
  }
}

TEST_CASE("steps that go down from line to line are no runs", "[skip_log]") {
  Lines lines = lines_of({65536, 65536, 32768, 32768, 16384});
  std::ranges::reverse(lines);
  check_says(message_of<InvalidArgument>([&] { (void)read_log(lines); }),
             {"the newest first", "step 1 in line 5", "sort the lines by step"});
  std::swap(lines[0], lines[1]);
  CHECK(read_log(lines).step_count() >= 1);  // restarts
}

TEST_CASE("a list of numbers is a number and others", "[skip_log]") {
  const SkipLog log = read_log({"step=1 loss_scale=[64.0, 512.0]", "step=2 loss_scale=[64.0, 256.0]"});
  CHECK(has_note(log, "a list of 'loss_scale'"));
  CHECK_FALSE(has_note(read_log({"step=1 loss_scale=[64.0]", "step=2 loss_scale=[32.0]"}), "a list"));
  CHECK(text_of(read_log({"step: [0, 10] loss_scale=64", "step: [0, 11] loss_scale=32"})) ==
        "10 finite at 64, 11 skipped at 64");
  check_says(message_of<InvalidArgument>(
                 [] { (void)read_log({R"({"step": [1, 2, 3, 4], "loss_scale": [64, 64, 32, 32]})"}); }),
             {"no line of it names a step"});
}

TEST_CASE("no scaler is said to do what the run did where no line tells a scale", "[skip_log]") {
  const SkipLog log =
      read_log({"step=10 skipped_steps=0", "step=20 skipped_steps=4", "step=30 skipped_steps=4"});
  CHECK(log.skipped == 4);
  CHECK(recorded_run(log).reproduced_by.empty());
}

}  // namespace
}  // namespace halfscope::skip_log_kinds_test
