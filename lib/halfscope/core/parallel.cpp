// parallel_for over a team of threads, which every calling thread has for itself.
//
// Not OpenMP: its threads spin while they wait, which takes the processor from whatever else runs, and only
// variables in the environment of the whole process change that. Here a thread that waits sleeps, and nobody
// waits for a thread that has not woken up: the others do its share.
#include <halfscope/core/parallel.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <halfscope/core/isa.hpp>
#include <halfscope/core/stderr_text.hpp>

namespace halfscope {
namespace {

std::atomic<int> threads_in_use = 1;
thread_local bool is_inside = false;  ///< a loop; loops in it are not split

/// The calling thread is in a loop for the life of the object.
struct InsideLoop {
  InsideLoop() { is_inside = true; }
  InsideLoop(const InsideLoop&) = delete;
  InsideLoop& operator=(const InsideLoop&) = delete;
  ~InsideLoop() { is_inside = false; }
};

constexpr std::size_t cache_line = 64;
/// Looks for a new loop before a thread sleeps: some ten microseconds, as the work between two loops takes.
constexpr int looks = 500;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// The indices of one thread. Whoever has none left takes others'.
struct alignas(cache_line) Share {
  std::atomic<std::int64_t> next = 0;
  std::int64_t last = 0;
};

struct Loop {
  detail::RangeFunction function = nullptr;
  void* context = nullptr;
  std::int64_t step = 1;  ///< indices that are taken together
  std::size_t threads = 1;
};

/// Waits until `value` is not `old`.
void wait_for_other(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int look = 0; look < looks; ++look) {
    if (value.load(std::memory_order_relaxed) != old) break;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}

class Team : public std::enable_shared_from_this<Team> {
 public:
  explicit Team(std::size_t threads) : shares_(threads) {}

  /// Starts the threads beside the caller's. Returns how many there are with it. Where the system gives fewer
  /// than `size`, those that it gave have ended: their stacks are free again.
  [[nodiscard]] std::size_t start();
  void run(std::int64_t count, const Loop& loop);
  /// Lets the threads end. Does not wait: after a fork there are none.
  void stop();

  [[nodiscard]] std::size_t size() const { return shares_.size(); }

 private:
  static constexpr std::uint32_t closed = 1u << 31;

  void work_for_others(std::size_t own);
  [[nodiscard]] bool enter();
  void leave();
  void work(std::size_t own);

  std::vector<Share> shares_;
  Loop loop_;
  std::atomic<std::uint32_t> round_ = 0;      ///< grows with every loop
  std::atomic<std::uint32_t> gate_ = closed;  ///< threads that work on the loop, beside the caller
  std::atomic<bool> stopped_ = false;
};

std::size_t Team::start() {
  std::vector<std::thread> threads;
  try {
    threads.reserve(shares_.size());
    for (std::size_t own = 1; own < shares_.size(); ++own)
      threads.emplace_back([team = shared_from_this(), own] { team->work_for_others(own); });
  } catch (const std::exception&) {  // no more threads, or no memory for one
    stop();
    for (std::thread& thread : threads) thread.join();
    return threads.size() + 1;
  }
  for (std::thread& thread : threads) thread.detach();
  return shares_.size();
}

void Team::stop() {
  stopped_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
}

void Team::run(std::int64_t count, const Loop& loop) {
  loop_ = loop;
  const auto threads = static_cast<std::int64_t>(loop.threads);
  for (std::int64_t i = 0; i < threads; ++i) {
    Share& share = shares_[static_cast<std::size_t>(i)];
    share.next.store(count * i / threads, std::memory_order_relaxed);
    share.last = count * (i + 1) / threads;
  }
  gate_.store(0, std::memory_order_release);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  work(0);
  for (std::uint32_t gate = gate_.fetch_or(closed, std::memory_order_acq_rel) | closed; gate != closed;
       gate = gate_.load(std::memory_order_acquire)) {
    wait_for_other(gate_, gate);
  }
}

void Team::work_for_others(std::size_t own) {
  is_inside = true;
  for (std::uint32_t seen = 0;;) {
    wait_for_other(round_, seen);
    seen = round_.load(std::memory_order_acquire);
    if (stopped_.load(std::memory_order_relaxed)) return;
    if (!enter()) continue;
    if (own < loop_.threads) work(own);
    leave();
  }
}

/// A thread that wakes up late finds the gate closed: the caller may be gone, and its loop with it.
bool Team::enter() {
  std::uint32_t gate = gate_.load(std::memory_order_relaxed);
  while ((gate & closed) == 0) {
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire)) return true;
  }
  return false;
}

void Team::leave() {
  if (gate_.fetch_sub(1, std::memory_order_acq_rel) == (closed | 1)) gate_.notify_all();
}

void Team::work(std::size_t own) {
  const Loop loop = loop_;
  for (std::size_t i = 0; i < loop.threads; ++i) {
    Share& share = shares_[(own + i) % loop.threads];
    for (;;) {
      const std::int64_t first = share.next.fetch_add(loop.step, std::memory_order_relaxed);
      if (first >= share.last) break;
      const std::int64_t end = std::min(first + loop.step, share.last);
      for (std::int64_t index = first; index < end; ++index) loop.function(loop.context, index);
    }
  }
}

void note_missing_threads(std::size_t wanted, std::size_t threads) {
  static std::atomic<bool> noted = false;
  if (noted.exchange(true)) return;
  print_stderr("note: the system does not start " + std::to_string(wanted) + " threads; going on with " +
               std::to_string(threads) + "\n");
}

/// The team of a thread, which ends with it.
struct OwnTeam {
  std::shared_ptr<Team> team;
  std::size_t wanted = 0;  ///< threads that the team was made for

  OwnTeam() = default;
  OwnTeam(const OwnTeam&) = delete;
  OwnTeam& operator=(const OwnTeam&) = delete;
  ~OwnTeam() { end(); }

  void end() {
    if (team) team->stop();
    team.reset();
    wanted = 0;
  }

  /// Where memory is missing it throws, and there is no team: the next call makes one.
  Team& of(std::size_t threads) {
    if (threads <= wanted) return *team;
    end();
    std::shared_ptr<Team> made = std::make_shared<Team>(threads);
    for (std::size_t started = made->start(); started != made->size(); started = made->start()) {
      const std::size_t size = (started + 1) / 2;  // threads and memory are left for others
      note_missing_threads(threads, size);
      made = std::make_shared<Team>(size);
    }
    team = std::move(made);
    wanted = threads;
    return *team;
  }
};

thread_local OwnTeam own_team;

}  // namespace

void set_thread_count(int threads) {
  if (threads < 1) throw InvalidArgument("threads = " + std::to_string(threads) + ": give 1 or more");
  threads_in_use = threads;
}

int thread_count() {
  return threads_in_use;
}

namespace detail {
void parallel_for_each(std::int64_t count, void* context, RangeFunction function) {
  (void)active_isa();  // refuses a wrong HALFSCOPE_ISA here, since kernels in the loop may not throw
  const std::int64_t threads = std::min<std::int64_t>(threads_in_use, count);
  if (threads <= 1 || is_inside) {
    for (std::int64_t i = 0; i < count; ++i) function(context, i);
    return;
  }
  constexpr std::int64_t steps_of_thread = 16;  // as many as keep threads level, few enough to cost nothing
  const std::int64_t step = std::max<std::int64_t>(1, count / (threads * steps_of_thread));
  Team& team = own_team.of(static_cast<std::size_t>(threads_in_use));
  const InsideLoop inside;
  team.run(count, {function, context, step, std::min(static_cast<std::size_t>(threads), team.size())});
}
}  // namespace detail

}  // namespace halfscope
