// Scales that are no scaler's own: means, those that follow the gradients, several in one step; and steps
// that are counted from 0 on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <halfscope/core/error.hpp>
#include <halfscope/scaling/skip_log_replay.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/log_lines.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::skip_log_scales_test {
namespace {

using Lines = std::vector<std::string>;

struct Factors {
  double backoff = 0.5, growth = 2;
};

/// Steps of a scaler whose gradients overflow above a limit that moves.
struct Run {
  std::vector<double> behind;  ///< the scale that each step leaves
  std::int64_t skipped = 0;
};

Run run_of(const Factors& factors, std::size_t steps, std::mt19937_64& random) {
  Run run;
  double scale = 65536, limit = 9000;
  const std::size_t interval = 8 + random() % 8;
  for (std::size_t good = 0; run.behind.size() < steps; run.behind.push_back(scale)) {
    if (random() % 40 == 0) limit = std::exp2(10 + static_cast<double>(random() % 5));
    if (scale > limit) {
      scale *= factors.backoff;
      ++run.skipped;
      good = 0;
    } else if (++good == interval) {
      scale *= factors.growth;
      good = 0;
    }
  }
  return run;
}

Lines lines_of(const std::vector<double>& scales, std::size_t every = 1, std::size_t first = 1) {
  Lines lines;
  for (std::size_t i = 0; i < scales.size(); ++i)
    lines.push_back(fmt::format("step={} loss_scale={:.6g}", first + i * every, scales[i]));
  return lines;
}

std::vector<double> moving_means(const std::vector<double>& scales, double share) {
  std::vector<double> means;
  for (const double scale : scales)
    means.push_back(means.empty() ? scale : (1 - share) * means.back() + share * scale);
  return means;
}

std::vector<double> window_means(const std::vector<double>& scales, std::size_t window) {
  std::vector<double> means;
  for (std::size_t end = window; end <= scales.size(); end += window) {
    double sum = 0;
    for (std::size_t i = end - window; i < end; ++i) sum += scales[i];
    means.push_back(sum / static_cast<double>(window));
  }
  return means;
}

void check_uneven(const Lines& lines, std::int64_t skipped) {
  const SkipLog log = read_whole_log(lines);
  INFO(fmt::format("{}", fmt::join(lines, "\n")));
  REQUIRE(log.uneven);
  CHECK(log.skipped == 0);
  CHECK(log.least_skipped() == 0);
  REQUIRE(log.most_skipped().value_or(0) >= skipped);
  CHECK(recorded_run(log).reproduced_by.empty());
  check_says(verdict_of(log), {"No line tells of a skipped step", "changes by different factors",
                               "none of its falls is read", fmt::format("line {}", log.uneven->lines.first)});
}

TEST_CASE("a mean of scales tells of no skipped steps", "[skip_log]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    INFO(i);
    const Run run = run_of({}, 200, random);
    const double share = 0.1 + 0.01 * static_cast<double>(random() % 80);
    check_uneven(lines_of(moving_means(run.behind, share)), run.skipped);
    const std::size_t window = 5 + random() % 10;
    const std::vector<double> means = window_means(run.behind, window);
    check_uneven(lines_of(means, window, window),
                 std::min(run.skipped, static_cast<std::int64_t>(means.size() * window)));
  }
}

TEST_CASE("a scale that follows the gradients tells of no skipped steps", "[skip_log]") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100; ++i) {
    INFO(i);
    std::normal_distribution<double> log2(12, 1.5);
    std::vector<double> scales, powers;
    for (int step = 0; step < 100; ++step) {
      scales.push_back(std::exp2(log2(random)));
      powers.push_back(std::exp2(std::round(log2(random))));
    }
    check_uneven(lines_of(scales), 0);
    check_uneven(lines_of(powers), 0);
  }
}

TEST_CASE("a scaler of constant factors tells its skips, whatever they are", "[skip_log]") {
  std::mt19937_64 random(3);
  for (const double backoff : {0.5, 0.8, 0.75, 0.25, 0.9}) {
    for (const double growth : {2.0, 1.25, 1.5, 1.0 / backoff}) {
      for (int i = 0; i < 20; ++i) {
        INFO(backoff << " " << growth << " " << i);
        const Run run = run_of({backoff, growth}, 200, random);
        const SkipLog log = read_whole_log(lines_of(run.behind));
        REQUIRE_FALSE(log.uneven);
        CHECK(log.least_skipped() <= run.skipped);
        REQUIRE(log.most_skipped());
        CHECK(*log.most_skipped() >= run.skipped);
        if (backoff >= 0.5) CHECK(run.skipped - log.skipped <= 1);  // the first step
      }
    }
  }
}

TEST_CASE("a factor that a mean over a window has too is not decided", "[skip_log]") {
  std::mt19937_64 random(9);
  for (int i = 0; i < 100; ++i) {
    // The scale grows at the end of a window, and falls in the next one at the same place each time.
    const std::size_t window = 3 + random() % 48, growths = 1 + random() % 4, every = 1 + random() % 3;
    const double top = std::exp2(10 + static_cast<double>(random() % 6));
    const std::size_t overflow = 1 + random() % (window - 1);
    std::vector<double> means{top};
    for (std::size_t growth = 0; growth < growths; ++growth) {
      const double share = static_cast<double>(overflow) / static_cast<double>(window);
      means.push_back(top * (1 + share));
      means.insert(means.end(), every, top);
    }
    const Lines lines = lines_of(means, window, window);
    INFO(fmt::format("{} {}", i, fmt::join(lines, "\n")));
    const SkipLog log = read_whole_log(lines);
    REQUIRE(log.uneven);
    CHECK(log.uneven->kind == UnevenScales::Kind::one_factor);
    CHECK(log.least_skipped() == 0);
    CHECK(log.most_skipped().value_or(0) >= static_cast<std::int64_t>(growths));
    CHECK(recorded_run(log).reproduced_by.empty());
    check_says(verdict_of(log), {"or the scale is a mean over several steps", "none of its falls is read"});
  }
}

TEST_CASE("means of scales never tell more skips than there were, wherever the log ends", "[skip_log]") {
  std::mt19937_64 random(10);
  for (int i = 0; i < 300; ++i) {
    const Run run = run_of({}, 400, random);
    const std::size_t window = 2 + random() % 20;
    std::vector<double> means = window_means(run.behind, window);
    means.resize(2 + random() % (means.size() - 1));  // one line tells no window
    const auto steps = static_cast<std::ptrdiff_t>(means.size() * window);
    std::int64_t skipped = run.behind[0] < 65536 ? 1 : 0;
    for (std::ptrdiff_t step = 1; step < steps; ++step)
      skipped += run.behind[static_cast<std::size_t>(step)] < run.behind[static_cast<std::size_t>(step - 1)];
    const Lines lines = lines_of(means, window, window);
    INFO(fmt::format("{} {}", i, fmt::join(lines, "\n")));
    const SkipLog log = read_whole_log(lines);
    CHECK(log.least_skipped() <= skipped);
    CHECK(log.most_skipped().value_or(0) >= skipped);
  }
}

TEST_CASE("a step before which no line tells the scale may have been skipped", "[skip_log]") {
  std::mt19937_64 random(4);
  for (int i = 0; i < 100; ++i) {
    INFO(i);
    const Run run = run_of({}, 60, random);
    for (const std::size_t first : {0u, 1u, 100u}) {
      const SkipLog log = read_whole_log(lines_of(run.behind, 1, first));
      CHECK(log.least_skipped() <= run.skipped);
      REQUIRE(log.most_skipped().value_or(0) >= run.skipped);
      check_says(verdict_of(log), {"Perhaps one more step was skipped, the first"});
    }
  }
  // A counter leaves none open.
  const SkipLog counted =
      read_log({"step=0 loss_scale=64 skipped_steps=0", "step=1 loss_scale=32 skipped_steps=1"});
  CHECK(counted.most_skipped() == 1);
}

TEST_CASE("scales of layers, each on a line, are refused", "[skip_log]") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 50; ++i) {
    INFO(i);
    const std::size_t layers = 2 + random() % 4;
    std::vector<Run> runs;
    for (std::size_t k = 0; k < layers; ++k) runs.push_back(run_of({}, 40, random));
    Lines lines;
    int returns = 0;  // steps whose lines differ, with the first scale again in the next
    for (std::size_t step = 1; step <= 40; ++step) {
      for (std::size_t k = 0; k < layers; ++k)
        lines.push_back(fmt::format("step {} layer {} loss_scale {}", step, k, runs[k].behind[step - 1]));
      const bool differs = runs[0].behind[step - 1] != runs[layers - 1].behind[step - 1];
      if (step < 40 && differs && runs[0].behind[step] == runs[0].behind[step - 1]) ++returns;
    }
    if (returns > 1)
      check_says(message_of<InvalidArgument>([&] { (void)read_whole_log(lines); }),
                 {"lines of one step have different scales, as lines", "give the lines of one alone"});
  }
}

TEST_CASE("a scale before and behind each step is one scaler's", "[skip_log]") {
  std::mt19937_64 random(6);
  for (int i = 0; i < 50; ++i) {
    INFO(i);
    const Run run = run_of({}, 60, random);
    Lines lines;
    double before = 65536;
    for (std::size_t step = 1; step <= 60; ++step) {
      lines.push_back(fmt::format("step {} loss_scale {}", step, before));
      before = run.behind[step - 1];
      lines.push_back(fmt::format("step {} loss_scale {}", step, before));
    }
    const SkipLog log = read_whole_log(lines);
    CHECK(log.least_skipped() <= run.skipped);
    CHECK(log.most_skipped().value_or(0) >= run.skipped);
  }
}

TEST_CASE("the verdict on one of several scales says so", "[skip_log]") {
  for (const Lines& lines : std::vector<Lines>{
           {"step=1 a.loss_scale=64 b.loss_scale=64", "step=2 a.loss_scale=64 b.loss_scale=32"},
           {"step,a/loss_scale,b/loss_scale", "1,64,64", "2,64,32"},
           {R"({"step": 1, "a": {"loss_scale": 64}, "b": {"loss_scale": 8}})",
            R"({"step": 2, "a": {"loss_scale": 64}, "b": {"loss_scale": 4}})"}}) {
    INFO(lines[0]);
    check_says(verdict_of(read_log(lines)), {"Other loss scales stand beside", "on that one alone"});
  }
  const std::string one =
      verdict_of(read_log({"step=1 loss_scale=64 loss=1 lm_loss=2", "step=2 loss_scale=32"}));
  CHECK(one.find("stand beside") == std::string::npos);
}

TEST_CASE("an inverse or a mean by its name is no scale", "[skip_log]") {
  for (const char* name :
       {"inv_loss_scale", "loss_scale_recip", "avg_loss_scale", "loss_scale_mean", "ema_grad_scale"}) {
    INFO(name);
    const std::string verdict = verdict_of(read_log({fmt::format("step 1: {}: 0.5 grad_norm: 1.5", name),
                                                     fmt::format("step 2: {}: 0.25 grad_norm: 1.5", name)}));
    check_says(verdict, {"No loss scale was read", name});
  }
}

TEST_CASE("a loss scale that is no number is none that was not printed", "[skip_log]") {
  for (const char* scale : {"64K", "2^16", "2**16", "65536x"}) {
    INFO(scale);
    const Lines lines{fmt::format("step 1 loss_scale {} grad_norm 1.5", scale),
                      fmt::format("step 2 loss_scale {} grad_norm 1.5", scale)};
    const std::string verdict = verdict_of(read_whole_log(lines));
    check_says(verdict, {"No loss scale was read: no number stands behind 'loss_scale' in line 1"});
    CHECK(verdict.find("none is printed") == std::string::npos);
    check_says(message_of<InvalidArgument>(
                   [&] { (void)read_whole_log({fmt::format("step 1 loss_scale: {} x", scale)}); }),
               {"no number stands behind 'loss_scale' in line 1"});
  }
  for (const char* word : {"None", "dynamic", "auto"})
    check_says(verdict_of(read_log({fmt::format("step 1 loss_scale {} grad_norm 1.5", word)})),
               {"none is printed"});
  // One line that another process cut is no such name.
  const SkipLog cut = read_whole_log(
      {"step 1 loss_scale 1 loss 2", "step 2 loss_scale 1[rank1]", "step 3 loss_scale 1 loss 2"});
  check_says(verdict_of(cut), {"the scale is 1 throughout"});
}

TEST_CASE("a line that tells the scale before its step and behind it tells whether it was skipped",
          "[skip_log]") {
  std::mt19937_64 random(8);
  for (int i = 0; i < 100; ++i) {
    INFO(i);
    const Run run = run_of({}, 60, random);
    Lines every, at_skips;
    double before = 65536;
    for (std::size_t step = 1; step <= 60; ++step) {
      const double behind = run.behind[step - 1];
      every.push_back(fmt::format("step {} loss_scale {} -> {}", step, before, behind));
      at_skips.push_back(behind < before ? every.back() : fmt::format("step {} loss 2.5", step));
      before = behind;
    }
    for (const Lines& lines : {every, at_skips}) {
      const SkipLog log = read_whole_log(lines);
      CHECK(log.least_skipped() == run.skipped);
      CHECK(log.most_skipped() == run.skipped);
    }
  }
}

TEST_CASE("a scale that is none throughout is no scaler's", "[skip_log]") {
  for (const char* scale : {"0", "-1", "nan"}) {
    INFO(scale);
    const std::string verdict = verdict_of(read_log({fmt::format("step=1 loss_scale={} loss=2.5", scale),
                                                     fmt::format("step=2 loss_scale={} loss=2.5", scale)}));
    check_says(verdict, {"No loss scale was read", "in line 1: such a scale is none"});
    CHECK(verdict.find("overflows") == std::string::npos);
  }
}

TEST_CASE("steps that begin anew behind a line of an epoch go on", "[skip_log]") {
  std::mt19937_64 random(7);
  for (const char* header : {"Epoch {}", "=== Epoch {} ===", "Epoch {}/9", "epoch: {}"}) {
    for (const char* line :
         {"iter {}: loss_scale {}", "step {}/1000 loss_scale={}", "batch {} loss_scale={}"}) {
      for (int i = 0; i < 10; ++i) {
        INFO(header << " " << line << " " << i);
        const std::size_t epochs = 2 + random() % 3, steps = 5 + random() % 20;
        const Run run = run_of({}, epochs * steps, random);
        const bool is_global = i % 3 == 0;  // the count goes on by itself
        Lines lines, truth = lines_of(run.behind);
        for (std::size_t step = 0; step < run.behind.size(); ++step) {
          if (step % steps == 0) lines.push_back(fmt::format(fmt::runtime(header), step / steps + 1));
          const std::size_t number = is_global ? step + 1 : step % steps + 1;
          lines.push_back(fmt::format(fmt::runtime(line), number, fmt::format("{:.6g}", run.behind[step])));
        }
        const SkipLog log = read_whole_log(lines);
        CHECK(text_of(log) == text_of(read_whole_log(truth)));
        for (const std::string& note : log.notes) CHECK(note.find("runs") == std::string::npos);
      }
    }
  }
}

TEST_CASE("a skipped step in words that are not read is named", "[skip_log]") {
  const auto noted = [](const char* line) {
    const SkipLog log = read_log({"step 1 grad_norm 1.5", line, line, "step 3 grad_norm 1.5"});
    return std::ranges::count_if(log.notes, [](const std::string& note) {
      return note.starts_with("2 lines from line 2 on may tell");
    });
  };
  CHECK(noted("step 2: skipping update, found inf, new scale 32768") == 1);
  CHECK(noted("step 2: Overflow, nothing done") == 1);
  CHECK(noted("step 2: saved a checkpoint") == 0);
  CHECK(noted("skipping a batch without labels") == 0);
}

TEST_CASE("options of a run are no step of it", "[skip_log]") {
  for (const char* options : {"args: Namespace(steps=100, grad_norm=1.0, loss_scale=64.0)",
                              "TrainingArguments(step=7, loss_scale=8, loss=nan)"}) {
    const SkipLog log = read_log({options, "step 1 grad_norm 1.5", "step 2 grad_norm 1.5"});
    CHECK(log.step_count() == 2);
    CHECK_FALSE(log.has_scaler);
    CHECK_FALSE(log.lost);
  }
}

TEST_CASE("a dictionary without the Trainer's members has losses as they are", "[skip_log]") {
  const auto lines_with = [](const char* members) {
    Lines lines;
    for (int step = 1; step <= 4; ++step)
      lines.push_back(fmt::format("{{'loss': {}, 'step': {}{}}}", step < 3 ? "1.5" : "0.0", step, members));
    return lines;
  };
  CHECK(read_log(lines_with(", 'learning_rate': 1e-05, 'epoch': 0.1")).lost);
  for (const char* members : {"", ", 'epoch': 0.1", ", 'lr': 0.1"}) {
    INFO(members);
    CHECK_THROWS_AS(read_log(lines_with(members)), InvalidArgument);  // finite losses alone
  }
}

}  // namespace
}  // namespace halfscope::skip_log_scales_test
