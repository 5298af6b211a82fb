// Locks on a folder: who holds them, how old a heartbeat may be, and what is left when a holder dies.
#include <halfscope/io/folder_lock.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include <halfscope/io/detail/heartbeat.hpp>
#include <halfscope/io/detail/lock_holder.hpp>
#include <halfscope/io/file.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::folder_lock_test {
namespace {

namespace fs = std::filesystem;

/// A clock that a test sets.
struct Clock {
  std::int64_t now = 1'700'000'000;

  [[nodiscard]] LockTerms terms() const {
    return {"is at work", [this] { return now; }};
  }
};

std::string refusal(const TemporaryFolder& folder, const Clock& clock) {
  return message_of<RuntimeFailure>([&] { const FolderLock lock(folder.path(), clock.terms()); });
}

/// Whether the folder's lock can be had.
bool is_free(const TemporaryFolder& folder, const Clock& clock) {
  try {
    const FolderLock lock(folder.path(), clock.terms());
    return true;
  } catch (const RuntimeFailure&) {
    return false;
  }
}

/// A lock as another process left it, with the heartbeat of `beat`.
void put_lock(const TemporaryFolder& folder, const LockHolder& holder, std::int64_t beat) {
  const fs::path file = folder.put(fs::path("run.lock") / holder.token, to_text(holder));
  const timespec time{.tv_sec = beat, .tv_nsec = 0};
  const timespec both[] = {time, time};
  REQUIRE(::utimensat(AT_FDCWD, file.c_str(), both, 0) == 0);
}

LockHolder elsewhere() {
  LockHolder holder;
  holder.token = "0123456789abcdef";
  holder.host = "node3";
  holder.machine = "another";
  holder.process = 4711;
  return holder;
}

TEST_CASE("a lock is held by one, and leaves nothing behind", "[folder_lock]") {
  const TemporaryFolder folder;
  Clock clock;
  {
    const FolderLock lock(folder.path(), clock.terms());
    clock.now += 7;
    check_says(refusal(folder, clock), {folder.path().string(), fmt::format("process {} on ", ::getpid()),
                                        "last heard of 7 s ago, is at work"});
    CHECK(folder.entry_count() == 1);
  }
  CHECK(folder.entry_count() == 0);
  CHECK(is_free(folder, clock));
}

TEST_CASE("a lock of another machine is nobody's once it has expired", "[folder_lock]") {
  const TemporaryFolder folder;
  Clock clock;
  put_lock(folder, elsewhere(), clock.now);
  clock.now += lock_expires_after;
  check_says(refusal(folder, clock), {"process 4711 on node3", "600 s ago"});
  ++clock.now;
  const FolderLock lock(folder.path(), clock.terms());
  check_says(refusal(folder, clock), {fmt::format("process {} on ", ::getpid()), "0 s ago"});
}

TEST_CASE("a lock that is dated tomorrow is nobody's", "[folder_lock]") {
  const TemporaryFolder folder;
  Clock clock;
  put_lock(folder, elsewhere(), clock.now + lock_expires_after);
  check_says(refusal(folder, clock), {"process 4711 on node3", "0 s ago", "remove", "run.lock"});
  --clock.now;
  const FolderLock lock(folder.path(), clock.terms());
}

TEST_CASE("a holder that beats keeps its lock; one that was taken for dead is told so", "[folder_lock]") {
  const TemporaryFolder folder;
  Clock clock;
  const FolderLock first(folder.path(), clock.terms());
  for (int i = 0; i < 3; ++i) {
    clock.now += lock_expires_after;
    first.renew();
    clock.now += lock_expires_after;
    CHECK_FALSE(is_free(folder, clock));
  }
  ++clock.now;
  const FolderLock second(folder.path(), clock.terms());
  check_says(message_of<LockLost>([&] { first.renew(); }),
             {folder.path().string(), "taken over", "--resume"});
  second.renew();
  CHECK_FALSE(is_free(folder, clock));
}

/// A process of this machine that is gone.
LockHolder ended_process() {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(0);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  LockHolder holder = this_holder();
  holder.process = child;
  return holder;
}

TEST_CASE("the lock of a process that is gone is free at once, on its machine", "[folder_lock]") {
  const Clock clock;
  LockHolder holder = ended_process();
  const LockHolder ours = this_holder();
  if (ours.machine.empty()) return;  // the system says nothing of processes
  CHECK(is_gone(holder, ours));
  const TemporaryFolder folder;
  put_lock(folder, holder, clock.now);
  CHECK(is_free(folder, clock));
  CHECK(folder.entry_count() == 0);
  holder.machine = "another";
  CHECK_FALSE(is_gone(holder, ours));
  CHECK_FALSE(is_gone(ours, ours));
  LockHolder reused = ours;  // the number of a process that is gone is another's today
  reused.started += 1;
  CHECK(is_gone(reused, ours));
}

TEST_CASE("a process that has ended is gone before its parent asks", "[folder_lock]") {
  const LockHolder ours = this_holder();
  if (ours.machine.empty()) return;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(0);
  siginfo_t information{};  // waits for the end, and leaves the process to be asked for
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &information, WEXITED | WNOWAIT) == 0);
  LockHolder holder = ours;
  holder.process = child;
  holder.started = 0;
  CHECK(is_gone(holder, ours));
  REQUIRE(::waitpid(child, nullptr, 0) == child);
}

TEST_CASE("a job of Slurm that was requeued takes its own lock over", "[folder_lock]") {
  LockHolder before = elsewhere(), now = this_holder();
  before.job = now.job = "17";
  now.restarts = 1;
  CHECK(is_gone(before, now));
  now.restarts = 0;
  CHECK_FALSE(is_gone(before, now));  // another process of the same job
  now.restarts = 1;
  now.job = "18";
  CHECK_FALSE(is_gone(before, now));
  before.job = now.job = "";
  CHECK_FALSE(is_gone(before, now));
}

TEST_CASE("a holder is told by its job, and its text is read back", "[folder_lock]") {
  LockHolder holder = elsewhere();
  CHECK(describe(holder) == "process 4711 on node3");
  holder.job = "17\x1b[2J";
  holder.restarts = 2;
  CHECK(describe(holder) == "process 4711 on node3, job 17\\x1b[2J");
  const std::optional<LockHolder> back = parse_holder(to_text(holder));
  REQUIRE(back);
  CHECK(to_text(*back) == to_text(holder));
  for (const char* text : {"", "{", "[]", "{}", R"({"token":1})"}) CHECK_FALSE(parse_holder(text));
}

TEST_CASE("a lock that changes hands, or that nobody can read, is kept until it expires", "[folder_lock]") {
  Clock clock;
  for (const std::string& text : {std::string(), std::string("{\"token"), to_text(ended_process())}) {
    const TemporaryFolder folder;
    put_lock(folder, elsewhere(), clock.now);
    folder.put("run.lock/0123456789abcdef", text);  // in the last case, that of another holder
    clock.now = seconds_now();
    check_says(refusal(folder, clock), {"another process", "is at work"});
    clock.now += lock_expires_after + 60;
    CHECK(is_free(folder, clock));
  }
}

TEST_CASE("what a killed process leaves between two calls is no obstacle, and is removed", "[folder_lock]") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "run.lock");  // killed while it gave the lock back
  folder.put(".run.lock-00ff/00ff", "");        // killed before it took it
  folder.put("lock", "process 1 on a host of an earlier version\n");
  CHECK(is_free(folder, {seconds_now()}));
  CHECK(folder.entry_count() == 2);  // who knows whether that one is alive
  CHECK(is_free(folder, {seconds_now() + lock_expires_after + 60}));
  CHECK(folder.entry_count() == 1);
}

TEST_CASE("a file in the lock's place is an error that names it", "[folder_lock]") {
  const TemporaryFolder folder;
  folder.put("run.lock", "");
  check_says(refusal(folder, {}), {"cannot make", "run.lock"});
  CHECK(folder.entry_count() == 1);
}

/// How many of eight threads that begin together get the lock.
int winners(const TemporaryFolder& folder, const Clock& clock) {
  constexpr int threads = 8;
  std::atomic<int> won = 0;
  std::barrier begin(threads), end(threads);
  std::vector<std::jthread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      begin.arrive_and_wait();
      std::optional<FolderLock> lock;
      try {
        lock.emplace(folder.path(), clock.terms());
        lock->renew();
        ++won;
      } catch (const RuntimeFailure&) {
      }
      end.arrive_and_wait();
    });
  }
  all.clear();
  return won;
}

TEST_CASE("of several that come at once one gets a free, an expired or a dead one's lock", "[folder_lock]") {
  const Clock clock;
  const LockHolder dead = ended_process();
  for (int round = 0; round < 60; ++round) {
    const TemporaryFolder folder;
    if (round % 3 == 1) put_lock(folder, elsewhere(), clock.now - lock_expires_after - 1);
    if (round % 3 == 2) put_lock(folder, dead, clock.now);
    INFO("round " << round);
    CHECK(winners(folder, clock) == 1);
    CHECK(folder.entry_count() == 0);
  }
}

TEST_CASE("a heartbeat calls until it ends", "[folder_lock]") {
  std::atomic<int> beats = 0;
  {
    const Heartbeat heartbeat(std::chrono::seconds(0), [&] {
      ++beats;
      beats.notify_all();
    });
    for (int seen = beats; seen < 3; seen = beats) beats.wait(seen);
  }
  const int at_end = beats;
  CHECK(at_end >= 3);
  {
    const Heartbeat idle(std::chrono::seconds(3600), [&] { ++beats; });
  }
  CHECK(beats == at_end);
}

}  // namespace
}  // namespace halfscope::folder_lock_test
