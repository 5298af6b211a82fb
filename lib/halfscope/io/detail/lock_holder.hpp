// The holder of a lock: a process on a host, perhaps in a job of Slurm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace halfscope {

struct LockHolder {
  std::string token;    ///< token of this one lock
  std::string host;     ///< its name
  std::string machine;  ///< its boot, and its numbering of processes; empty where the system says neither
  std::int64_t process = 0;
  std::int64_t started = 0;   ///< in ticks since the boot, so that a later process of the number is another
  std::string job;            ///< SLURM_JOB_ID; empty outside of Slurm
  std::int64_t restarts = 0;  ///< SLURM_RESTART_COUNT
};

/// This process, with a token of its own.
[[nodiscard]] LockHolder this_holder();

/// One line of JSON, and back; empty where `text` is no such line.
[[nodiscard]] std::string to_text(const LockHolder& holder);
[[nodiscard]] std::optional<LockHolder> parse_holder(std::string_view text);

/// "process 4711 on node3, job 17".
[[nodiscard]] std::string describe(const LockHolder& holder);

/// Whether `holder` is known to run no more: a process of the same machine that is gone, or the same job
/// before a requeue.
[[nodiscard]] bool is_gone(const LockHolder& holder, const LockHolder& ours);

}  // namespace halfscope
