// The status line's text: which runs are under way, and how long the rest takes.
#include "experiments/run/progress.hpp"

#include "tests/support/catch.hpp"

namespace halfscope::progress_test {
namespace {

TEST_CASE("progress names the running runs and the time that all of them take", "[progress]") {
  RunsProgress progress({{"one", 200}, {"one", 200}, {"one", 100}});
  CHECK(progress.text() == "[0/3 done, 0 running]  ");
  progress.begin(0, "fp32 seed 0", 0);
  progress.begin(1, "fp16_s8 seed 0", 0);
  progress.advance(1, 1, 2.5, 0.5);
  // 499 steps of half a second, two runs at a time.
  CHECK(progress.text() ==
        "[0/3 done, 2 running] 2 min left  fp32 seed 0 begins | fp16_s8 seed 0 step 1/200 loss 2.500");
  for (int step = 1; step <= 200; ++step) progress.advance(0, step, 0.25, 0.1 * step);
  progress.finish(0);
  CHECK(progress.position() == "[1/3]");
  // 201 steps took 20.5 s; 199 and 100 are left.
  CHECK(progress.text() == "[1/3 done, 1 running] 30 s left  fp16_s8 seed 0 step 1/200 loss 2.500");
}

TEST_CASE("steps before a resumption are neither left nor counted into the rate", "[progress]") {
  RunsProgress progress({{"one", 1000}});
  progress.begin(0, "fp32 seed 3", 7);
  progress.advance(0, 901, 1, 8);
  CHECK(progress.text() == "[0/1 done, 1 running] 99 s left  fp32 seed 3 step 901/1000 loss 1.000");
}

TEST_CASE("nothing is left of a run that diverged or failed", "[progress]") {
  RunsProgress progress({{"one", 1000}, {"one", 1000}, {"one", 10}});
  progress.begin(0, "fp16_pure seed 0", 0);
  progress.advance(0, 1, 1, 2);
  progress.finish(0);  // diverged
  progress.begin(1, "fp16_mixed seed 0", 2);
  progress.fail(1);
  progress.begin(2, "fp32 seed 0", 2);
  CHECK(progress.text() == "[1/3 done, 1 failed, 1 running] 20 s left  fp32 seed 0 begins");
  CHECK(progress.position() == "[1/3]");
}

TEST_CASE("each experiment's steps are left at its own rate, unknown ones at the rate of all", "[progress]") {
  RunsProgress progress({{"quick", 31}, {"slow", 11}, {"other", 5}});
  progress.begin(0, "quick fp32 seed 0", 0);
  progress.advance(0, 1, 1, 1);
  progress.begin(1, "slow fp32 seed 0", 0);
  progress.advance(1, 1, 1, 7);
  // 30 steps of 1 s, 10 of 7 s and 5 of the mean, 4 s, in two runs at a time.
  CHECK(progress.text() ==
        "[0/3 done, 2 running] 60 s left  quick fp32 seed 0 step 1/31 loss 1.000 | "
        "slow fp32 seed 0 step 1/11 loss 1.000");
}

TEST_CASE("the time left is in seconds, minutes or hours", "[progress]") {
  const auto left = [](std::int64_t steps) {
    RunsProgress progress({{"one", steps + 1}});
    progress.begin(0, "arm", 0);
    progress.advance(0, 1, 0, 1);
    const std::string text = progress.text();
    const std::size_t first = text.find("] ") + 2;
    return text.substr(first, text.find(" left") - first);
  };
  CHECK(left(0) == "0 s");
  CHECK(left(119) == "119 s");
  CHECK(left(120) == "2 min");
  CHECK(left(7199) == "120 min");
  CHECK(left(9000) == "2.5 h");
}

}  // namespace
}  // namespace halfscope::progress_test
