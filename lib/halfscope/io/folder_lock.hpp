// A lock on a folder that several machines may share: one process, and one thread of it, at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <halfscope/core/error.hpp>

namespace halfscope {

class Heartbeat;

/// Seconds since 1970.
using LockClock = std::function<std::int64_t()>;
[[nodiscard]] std::int64_t seconds_now();

/// A lock whose heartbeat is older, in seconds, is nobody's; nor is one that is as far ahead. Its holder
/// beats ten times as often.
inline constexpr std::int64_t lock_expires_after = 600;

struct LockTerms {
  std::string_view conflict;  ///< the holder's work, and the remedy
  LockClock clock = seconds_now;
};

/// The lock is no longer this process's: it did not beat in time, and another has taken it over.
class LockLost : public RuntimeFailure {
 public:
  using RuntimeFailure::RuntimeFailure;
};

/// Holds the lock: the folder "run.lock" in the folder, with one file that names process, host and Slurm job.
/// The file's time is the heartbeat. Taking and taking over are renames, of which one succeeds on NFS too.
/// Takes over a lock that has expired, one of a process of this host that is gone, and one of this Slurm job
/// before it was requeued.
class FolderLock {
 public:
  /// Makes `folder`. Throws RuntimeFailure where somebody else holds its lock: the folder, the process, the
  /// host, how old its heartbeat is, and the terms' `conflict`.
  FolderLock(const std::filesystem::path& folder, LockTerms terms);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

  /// Beats, before something is written into the folder. Throws LockLost.
  void renew() const;

 private:
  std::filesystem::path folder_, own_;  ///< the lock's, and the holder's file in it
  LockClock clock_;
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace halfscope
