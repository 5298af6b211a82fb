// Habits of logs beside each other: the scale of a step or the one behind it, scales in few of the lines,
// norms that stay infinite, and numbers called a scale that are none.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <halfscope/core/error.hpp>
#include <halfscope/scaling/skip_log_replay.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/log_lines.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::skip_log_conventions_test {
namespace {

using Lines = std::vector<std::string>;

/// A step of PyTorch's scaler.
struct Step {
  double before = 65536, behind = 65536;
  bool is_skipped = false;
};

/// Gradients overflow above a limit that moves; with `held` none of the overflows lowers the scale.
std::vector<Step> run_of(std::size_t count, std::mt19937_64& random, bool is_held = false) {
  std::vector<Step> steps;
  const std::size_t interval = 11 + random() % 30;
  double scale = 65536, limit = 65536;
  std::size_t good = 0;
  while (steps.size() < count) {
    if (random() % 20 == 0) limit = std::exp2(10 + static_cast<double>(random() % 8));
    Step step{.before = scale, .is_skipped = scale > limit};
    if (is_held) step.is_skipped = random() % 6 == 0;
    if (step.is_skipped) {
      if (!is_held) scale /= 2;
      good = 0;
    } else if (++good == interval && !is_held) {
      scale *= 2;
      good = 0;
    }
    step.behind = scale;
    steps.push_back(step);
  }
  return steps;
}

std::int64_t skips_of(const std::vector<Step>& steps) {
  return std::ranges::count(steps, true, &Step::is_skipped);
}

std::string norm_of(const Step& step) {
  return step.is_skipped ? "inf" : "1.5";
}

void check_encloses(const Lines& lines, std::int64_t skipped) {
  const SkipLog log = read_whole_log(lines);
  INFO(fmt::format("{}\n{}", fmt::join(lines, "\n"), verdict_of(log)));
  CHECK(log.least_skipped() <= skipped);
  CHECK(log.most_skipped().value_or(0) >= skipped);
}

TEST_CASE("a norm tells whether its line has the scale of the step or the one behind it", "[skip_log]") {
  std::mt19937_64 random(1);
  int exact = 0;
  for (int i = 0; i < 300; ++i) {
    const std::vector<Step> steps = run_of(80, random);
    for (const bool is_before : {false, true}) {
      Lines lines, losses;
      for (std::size_t k = 0; k < steps.size(); ++k) {
        const double scale = is_before ? steps[k].before : steps[k].behind;
        lines.push_back(
            fmt::format("step={} loss=2.5 grad_norm={} loss_scale={}", k + 1, norm_of(steps[k]), scale));
        losses.push_back(
            fmt::format("step={} loss={} loss_scale={}", k + 1, steps[k].is_skipped ? "nan" : "2.5", scale));
      }
      check_encloses(lines, skips_of(steps));
      check_encloses(losses, skips_of(steps));
      const SkipLog log = read_whole_log(lines);
      exact += log.least_skipped() == skips_of(steps) && log.most_skipped() == skips_of(steps) ? 1 : 0;
    }
  }
  CHECK(exact > 450);  // a burst at the end leaves its last steps open
}

TEST_CASE("a norm that is finite where the scale falls bounds nothing", "[skip_log]") {
  std::mt19937_64 random(6);
  for (int i = 0; i < 100; ++i) {
    const std::vector<Step> steps = run_of(80, random);
    Lines lines;
    for (std::size_t k = 0; k < steps.size(); ++k)  // clipped to 1
      lines.push_back(fmt::format("step={} loss=2.5 grad_norm=1.0 loss_scale={}", k + 1, steps[k].behind));
    check_encloses(lines, skips_of(steps));
    if (skips_of({steps.begin() + 1, steps.end()}) == 0) continue;
    for (const LoggedStep& step : read_whole_log(lines).steps) CHECK_FALSE(step.grad_norm);
  }
}

TEST_CASE("norms beside scales of few steps enclose the skips, whichever scale they have", "[skip_log]") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i) {
    const std::vector<Step> steps = run_of(200, random);
    const std::size_t every = 2 + random() % 12;
    for (const bool is_before : {false, true}) {
      Lines lines;
      for (std::size_t k = every - 1; k < steps.size(); k += every)
        lines.push_back(fmt::format("step={} grad_norm={} loss_scale={}", k + 1, norm_of(steps[k]),
                                    is_before ? steps[k].before : steps[k].behind));
      const std::size_t last = steps.size() / every * every;
      check_encloses(lines, skips_of({steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(last)}));
    }
  }
}

TEST_CASE("norms that are infinite line after line may be means, unless one stands alone", "[skip_log]") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    const std::vector<Step> steps = run_of(60, random, true);
    for (const std::string_view scale : {" loss_scale=1024.0", ""}) {
      Lines lines, means;
      for (std::size_t k = 0; k < steps.size(); ++k) {
        lines.push_back(fmt::format("step={} loss=2.5 grad_norm={}{}", k + 1, norm_of(steps[k]), scale));
        const bool is_bad = std::any_of(steps.begin() + static_cast<std::ptrdiff_t>(k > 4 ? k - 4 : 0),
                                        steps.begin() + static_cast<std::ptrdiff_t>(k + 1),
                                        [](const Step& step) { return step.is_skipped; });
        means.push_back(fmt::format("step={} loss=2.5 grad_norm={}{}", k + 1, is_bad ? "inf" : "1.5", scale));
      }
      lines.push_back(fmt::format("step=61 loss=2.5 grad_norm=1.5{}", scale));
      if (skips_of(steps) == 0) continue;
      check_encloses(lines, skips_of(steps));
      if (means.back().find("inf") == std::string::npos) check_encloses(means, skips_of(steps));
    }
  }
}

/// Lines of MMEngine: the norm is a mean over the last `window` steps.
Lines means_of(const std::vector<Step>& steps, std::size_t window, std::size_t every, bool is_before) {
  Lines lines;
  for (std::size_t k = every; k <= steps.size(); k += every) {
    const auto end = steps.begin() + static_cast<std::ptrdiff_t>(k);
    const bool is_bad = std::any_of(end - static_cast<std::ptrdiff_t>(std::min(window, k)), end,
                                    [](const Step& step) { return step.is_skipped; });
    lines.push_back(fmt::format(
        "mmengine - INFO - Epoch(train)  [1][{:4}/{}]  lr: 1.0e-02  grad_norm: {}  loss: 2.3  loss_scale: {}",
        k, steps.size(), is_bad ? "inf" : "2.5", is_before ? steps[k - 1].before : steps[k - 1].behind));
  }
  return lines;
}

TEST_CASE("means over more steps than the lines are apart, or over fewer, enclose the skips", "[skip_log]") {
  std::mt19937_64 random(8);
  int exact = 0, from_falls = 0;
  for (int i = 0; i < 60; ++i) {
    const std::vector<Step> steps = run_of(random() % 2 == 0 ? 60 : 200, random);
    for (const std::size_t window : {1U, 4U, 10U, 50U}) {
      for (const std::size_t every : {1U, 5U, 10U}) {
        const auto told = static_cast<std::ptrdiff_t>(steps.size() / every * every);
        const std::int64_t skipped = skips_of({steps.begin(), steps.begin() + told});
        for (const bool is_before : {false, true}) {
          const Lines lines = means_of(steps, window, every, is_before);
          check_encloses(lines, skipped);
          if (every > 1 || window > 10) continue;
          ++from_falls;
          exact += read_whole_log(lines).least_skipped() >= skipped - 1 ? 1 : 0;  // the last has no fall
        }
      }
    }
  }
  CHECK(exact == from_falls);
}

TEST_CASE("skips that lines tell in words are said to be unread", "[skip_log]") {
  std::mt19937_64 random(9);
  constexpr std::array words{
      "INFO colossalai - Found overflow. Skip step", "WARNING: Check overflow, downscale loss scale to 256",
      "skipping this update, gradients are not finite", "Gradient overflow at this iteration"};
  for (int i = 0; i < 100; ++i) {
    const std::vector<Step> steps = run_of(60, random);
    Lines lines, own;
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const std::string step = fmt::format("step {}, loss = 2.3, loss_scale = {}", k + 1, steps[k].before);
      lines.push_back(steps[k].is_skipped ? words[k % words.size()] : step);
      own.push_back(steps[k].is_skipped
                        ? fmt::format("step {} skipped, loss_scale = {}", k + 1, steps[k].behind)
                        : fmt::format("step {}, loss = 2.3", k + 1));
    }
    if (skips_of(steps) == 0 || skips_of(steps) == 60) continue;
    check_encloses(lines, skips_of(steps));
    check_encloses(own, skips_of(steps));
    const SkipLog log = read_whole_log(lines);
    CHECK(log.told_in_words <= skips_of(steps));  // beside others the scale fell
    CHECK(log.told_in_words >= skips_of(steps) - log.skipped);
    if (log.told_in_words == 0) continue;
    check_says(fmt::format("{}", fmt::join(log.notes, " ")), {"in words, and", "not read"});
    if (log.skipped + log.skipped_in_holes == 0)
      check_says(verdict_of(log), {"No line that was read tells of a skipped step, and"});
  }
}

TEST_CASE("words of other matters tell of no skip", "[skip_log]") {
  for (const char* line :
       {"Skipping download, the file is there", "step 3, loss = 2.3, loss_scale = 64, overflow=0",
        "skipped_steps: 0, loss_scale: 64, step: 3", "WARNING: stack overflow protection is off",
        "Namespace(skip_steps=0, overflow_check=True, loss_scale=64)"}) {
    const SkipLog log =
        read_whole_log({"step 1, loss = 2.3, loss_scale = 64", "step 2, loss = 2.3, loss_scale = 64", line});
    INFO(line);
    CHECK(log.told_in_words == 0);
  }
}

TEST_CASE("steps without a scale between those with one are open", "[skip_log]") {
  std::mt19937_64 random(4);
  for (int i = 0; i < 300; ++i) {
    const std::vector<Step> steps = run_of(200, random);
    const std::size_t every = 2 + random() % 12;
    Lines text, table{"step,loss,scale"};
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const std::string scale = k % every == 0 ? fmt::format("{}", steps[k].behind) : "";
      text.push_back(fmt::format("step={} loss=2.5", k + 1));
      if (!scale.empty()) text.back() += " loss_scale=" + scale;
      table.push_back(fmt::format("{},2.5,{}", k + 1, scale));
    }
    check_encloses(text, skips_of(steps));
    check_encloses(table, skips_of(steps));
    check_says(verdict_of(read_whole_log(text)), {fmt::format("stands for up to {} steps", every)});
  }
}

TEST_CASE("a scale that is printed as 0 goes on falling", "[skip_log]") {
  for (const int bad : {24, 30, 60}) {
    Lines lines;
    double scale = 65536;
    for (int step = 1; step <= 40 + bad; ++step) {
      if (step > 40) scale /= 2;
      lines.push_back(
          fmt::format("step={} loss={} loss_scale={:.1f}", step, step > 40 ? "nan" : "2.5", scale));
    }
    check_encloses(lines, bad);
    const SkipLog log = read_whole_log(lines);
    CHECK_FALSE(log.lost);
    check_says(verdict_of(log), {"The loss scale is 0 in line", "it was halved until nothing was left"});
  }
}

TEST_CASE("sizes that are called a scale are no loss scale", "[skip_log]") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 100; ++i) {
    const std::size_t kinds = 2 + random() % 4;
    Lines lines;
    for (int step = 1; step <= 60; ++step)
      lines.push_back(fmt::format("step {} loss: 2.5 scale: {}", step,
                                  std::exp2(7 + static_cast<double>(random() % kinds))));
    const SkipLog log = read_whole_log(lines);
    REQUIRE(log.uneven);
    CHECK(log.least_skipped() == 0);
    check_says(verdict_of(log), {"none of its falls is read as a skip"});
  }
}

TEST_CASE("entries that no line numbers bound no number of steps", "[skip_log]") {
  Lines lines;
  for (int entry = 0; entry < 20; ++entry)
    lines.push_back(
        fmt::format("{{'loss': '2.5', 'grad_norm': '{}', 'learning_rate': '1e-05', 'epoch': '{}'}}",
                    entry % 7 == 0 ? "nan" : "1.5", entry));
  const SkipLog log = read_whole_log(lines);
  CHECK(log.least_skipped() == 3);
  CHECK_FALSE(log.most_skipped());
  CHECK(verdict_of(log).find("at most") == std::string::npos);
}

TEST_CASE("a scale without a mark is named, and read by its name", "[skip_log]") {
  const Lines lines{"step 1 | loss 2.5 | scale 65536 | 320 ms", "step 2 | loss 2.4 | scale 32768 | 320 ms"};
  check_says(message_of<InvalidArgument>([&] { (void)read_whole_log(lines); }),
             {"'scale' may be one (line 1)", "--columns loss_scale=scale reads it"});
  SkipLogReader reader(parse_log_columns("loss_scale=scale"));
  for (const std::string& line : lines) reader.line(line);
  CHECK(reader.finish().least_skipped() == 1);
  const std::string said = message_of<InvalidArgument>([&] {
    (void)read_whole_log({"step 1 loss 2.5 at scale 2", "step 2 loss 2.5 at scale 2"});
  });
  CHECK(said.find("'scale'") == std::string::npos);
}

}  // namespace
}  // namespace halfscope::skip_log_conventions_test
