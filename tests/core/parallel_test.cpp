// Parallel loops visit every index once, whatever the number of threads.
#include <halfscope/core/parallel.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::parallel_test {
namespace {

TEST_CASE("every index is visited once", "[parallel]") {
  for (const int threads : {1, 2, 7}) {
    const Threads in_use(threads);
    CHECK(thread_count() == threads);
    for (const std::int64_t count : {0, 1, 31, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      parallel_for(count, [&](std::int64_t i) { ++visits[static_cast<std::size_t>(i)]; });
      for (const auto& visit : visits) REQUIRE(visit == 1);
    }
  }
}

TEST_CASE("ranges cover everything and do not depend on the threads", "[parallel]") {
  for (const int threads : {1, 3}) {
    const Threads in_use(threads);
    for (const std::int64_t total : {0, 1, 31, 257 * 259}) {
      const std::int64_t grain = 100;
      std::vector<std::int64_t> counts(static_cast<std::size_t>((total + grain - 1) / grain));
      parallel_for_ranges(total, grain, [&](std::int64_t first, std::int64_t count) {
        counts[static_cast<std::size_t>(first / grain)] = first % grain == 0 ? count : -1;
      });
      std::int64_t covered = 0;
      for (const std::int64_t count : counts) {
        REQUIRE((count > 0 && count <= grain));
        covered += count;
      }
      CHECK(covered == total);
    }
  }
}

std::int64_t sum_below(std::int64_t count) {
  std::atomic<std::int64_t> sum = 0;
  parallel_for(count, [&](std::int64_t i) { sum += i; });
  return sum;
}

TEST_CASE("the number of threads may change between loops", "[parallel]") {
  for (const int threads : {2, 5, 1, 3, 8, 2}) {
    const Threads in_use(threads);
    for (int i = 0; i < 100; ++i) REQUIRE(sum_below(999) == 999 * 998 / 2);
  }
}

TEST_CASE("a loop in a loop visits every index once", "[parallel]") {
  const Threads in_use(4);
  std::vector<std::atomic<int>> visits(31 * 17);
  parallel_for(31, [&](std::int64_t i) {
    parallel_for(17, [&](std::int64_t j) { ++visits[static_cast<std::size_t>(i * 17 + j)]; });
  });
  for (const auto& visit : visits) REQUIRE(visit == 1);
}

TEST_CASE("several threads have loops at the same time, and end", "[parallel]") {
  const Threads in_use(3);
  for (int repeat = 0; repeat < 10; ++repeat) {
    std::atomic<int> wrong = 0;
    std::vector<std::jthread> callers;
    callers.reserve(4);
    for (int caller = 0; caller < 4; ++caller) {
      callers.emplace_back([&] {
        for (int i = 0; i < 50; ++i) wrong += sum_below(1000 + i) != (1000 + i) * (999 + i) / 2 ? 1 : 0;
      });
    }
    callers.clear();
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("a child process, which has none of the threads, does the loop alone", "[parallel]") {
  const Threads in_use(4);
  REQUIRE(sum_below(1000) == 1000 * 999 / 2);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(sum_below(1000) == 1000 * 999 / 2 ? 0 : 1);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST_CASE("threads that wait for a loop take no processor time", "[parallel]") {
  const Threads in_use(4);
  REQUIRE(sum_below(1000) == 1000 * 999 / 2);
  const double all = seconds_of(CLOCK_PROCESS_CPUTIME_ID), own = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  double own_seconds = 0;
  while (own_seconds < 0.1) own_seconds = seconds_of(CLOCK_THREAD_CPUTIME_ID) - own;
  const double others_seconds = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - all - own_seconds;
  CHECK(others_seconds < 0.05);  // each would take as long as this thread
}

TEST_CASE("fewer than one thread is refused", "[parallel]") {
  check_says(message_of<InvalidArgument>([] { set_thread_count(0); }), {"0", "1 or more"});
  CHECK_THROWS_AS(set_thread_count(-3), InvalidArgument);
  CHECK(thread_count() >= 1);
}

}  // namespace
}  // namespace halfscope::parallel_test
