// Parallel loops visit every index once, whatever the number of threads.
#include <halfscope/core/parallel.hpp>

#include <atomic>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"

namespace halfscope {
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

TEST_CASE("fewer than one thread is refused", "[parallel]") {
  check_says(message_of<InvalidArgument>([] { set_thread_count(0); }), {"0", "1 or more"});
  CHECK_THROWS_AS(set_thread_count(-3), InvalidArgument);
  CHECK(thread_count() >= 1);
}

}  // namespace
}  // namespace halfscope
