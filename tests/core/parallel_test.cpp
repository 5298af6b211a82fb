// Parallel loops visit every index once, whatever the number of threads.
#include <halfscope/core/parallel.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <exception>
#include <latch>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/memory_limit.hpp"
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

/// Whether the two indices of a loop are visited by two threads: each waits for the other. One thread alone
/// gives up after a minute, which two threads never need.
bool is_split_over_two_threads() {
  const Threads in_use(2);
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::latch other(2);
  std::atomic<bool> met = true;
  parallel_for(2, [&](std::int64_t /*index*/) {
    other.count_down();
    while (!other.try_wait()) {
      if (std::chrono::steady_clock::now() < end) continue;
      met = false;
      return;
    }
  });
  return met;
}

TEST_CASE("a thread whose team found no memory has loops on several threads later", "[parallel]") {
  if constexpr (!memory_can_be_limited) return;
  REQUIRE(is_split_over_two_threads());
  {
    const Threads in_use(1 << 26);  // 4 GiB for their shares of a loop alone
    const MemoryLimit memory(std::size_t{1} << 30);
    CHECK_THROWS_AS(sum_below(2), std::bad_alloc);
    CHECK_THROWS_AS(sum_below(2), std::bad_alloc);
  }
  CHECK(is_split_over_two_threads());
}

/// The exit status of a child process in which a loop's body throws: 0 where the loop ends it, 1 where the
/// error arrives at the caller.
int status_after_throwing_body(int threads) {
  const pid_t child = fork();
  if (child == 0) {
    std::set_terminate([] { _exit(0); });
    set_thread_count(threads);
    try {
      parallel_for(2, [](std::int64_t /*index*/) { throw std::runtime_error("a body that throws"); });
    } catch (const std::runtime_error&) {
      _exit(1);
    }
    _exit(2);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("a body that throws ends the program, on one thread as on several", "[parallel]") {
  for (const int threads : {1, 2}) {
    INFO(threads << " threads");
    CHECK(status_after_throwing_body(threads) == 0);
  }
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
