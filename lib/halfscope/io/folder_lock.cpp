// The lock's folder is renamed into its place with the holder's file in it, so that it never is without one.
#include <halfscope/io/folder_lock.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>

#include <halfscope/io/detail/heartbeat.hpp>
#include <halfscope/io/detail/lock_holder.hpp>
#include <halfscope/io/detail/posix_file.hpp>
#include <halfscope/io/file.hpp>

namespace halfscope {
namespace {

namespace fs = std::filesystem;

constexpr const char* lock_name = "run.lock";
constexpr std::string_view prepared_prefix = ".run.lock-";

/// Content of a lock's folder.
struct FoundLock {
  fs::path file;
  std::int64_t beat = 0;               ///< seconds since 1970
  std::optional<LockHolder> holder{};  ///< empty while the file changes hands
};

/// Sets the heartbeat of a holder's file; false where there is none of the name.
bool beat(const fs::path& file, std::int64_t now) noexcept {
  const timespec time{.tv_sec = now, .tv_nsec = 0};
  const timespec both[] = {time, time};
  return ::utimensat(AT_FDCWD, file.c_str(), both, 0) == 0;
}

std::optional<FoundLock> find_lock(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    struct stat status {};
    if (::stat(entry.path().c_str(), &status) != 0) continue;  // it has just changed hands
    FoundLock found{.file = entry.path(), .beat = status.st_mtime};
    try {
      found.holder = parse_holder(read_file(found.file));
    } catch (const std::exception&) {
      return found;
    }
    if (found.holder && found.holder->token != found.file.filename()) found.holder.reset();
    return found;
  }
  return std::nullopt;
}

/// A folder beside the lock's, with the holder's file in it; removed again unless it was renamed.
class PreparedLock {
 public:
  PreparedLock(const fs::path& folder, const LockHolder& holder, std::int64_t now)
      : path_(folder / fmt::format("{}{}", prepared_prefix, holder.token)) {
    create_folder(path_);
    write_file(path_ / holder.token, to_text(holder));
    beat(path_ / holder.token, now);
  }
  PreparedLock(const PreparedLock&) = delete;
  PreparedLock& operator=(const PreparedLock&) = delete;
  ~PreparedLock() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

  /// Whether it could take the lock's place, which is free or an empty folder.
  [[nodiscard]] bool become(const fs::path& lock) const {
    ::rmdir(lock.c_str());  // empty: its holder was killed while it gave the lock back
    if (::rename(path_.c_str(), lock.c_str()) == 0) return true;
    const int error = errno;
    // NFS may report the second of two requests, where the first was answered and the answer lost.
    if (fs::exists(lock / path_.filename().string().substr(prepared_prefix.size()))) return true;
    errno = error;
    return false;
  }

  /// Whether the holder's file could replace `own`, its namesake in the lock's folder, in one step: `own`
  /// written anew would for a moment have the time of the file's system, whose clock may be another.
  [[nodiscard]] bool replace(const fs::path& own) const {
    if (::rename((path_ / own.filename()).c_str(), own.c_str()) != 0) return false;
    if (is_alone(own)) return true;
    ::unlink(own.c_str());  // nothing was heard of us for so long that another has renamed it
    return false;
  }

 private:
  static bool is_alone(const fs::path& file) {
    std::error_code error;
    const fs::directory_iterator entries(file.parent_path(), error);
    return std::ranges::distance(begin(entries), end(entries)) == 1;
  }

  fs::path path_;
};

/// Left by processes that were killed between two calls, long ago.
void remove_prepared(const fs::path& folder, std::int64_t now) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    struct stat status {};
    if (entry.path().filename().string().starts_with(prepared_prefix) &&
        ::stat(entry.path().c_str(), &status) == 0 && now - status.st_mtime > lock_expires_after)
      fs::remove_all(entry.path(), ignored);
  }
}

/// Beats first, so that nobody finds the file expired under its next name; of several renames one succeeds.
bool take_over(const FoundLock& found, const PreparedLock& prepared, const LockHolder& ours,
               std::int64_t now) {
  const fs::path own = found.file.parent_path() / ours.token;
  return beat(found.file, now) && ::rename(found.file.c_str(), own.c_str()) == 0 && prepared.replace(own);
}

[[noreturn]] void refuse_lock(const fs::path& folder, const FoundLock& found, const LockTerms& terms) {
  const std::string holder = found.holder ? describe(*found.holder) : "another process";
  throw RuntimeFailure(fmt::format(
      "{}: {}, last heard of {} s ago, {}; if it runs no more, remove {}", printable(folder), holder,
      std::max<std::int64_t>(0, terms.clock() - found.beat), terms.conflict, printable(folder / lock_name)));
}

/// Too long ago, or ahead by as much: the clock that dated it was wrong, and it would never expire.
bool has_expired(const FoundLock& found, std::int64_t now) {
  return now - found.beat > lock_expires_after || found.beat - now > lock_expires_after;
}

/// The holder's file, once the lock is ours.
fs::path take_lock(const fs::path& folder, const LockTerms& terms) {
  const fs::path lock = folder / lock_name;
  const LockHolder ours = this_holder();
  const PreparedLock prepared(folder, ours, terms.clock());
  constexpr int most_tries = 100;
  for (int i = 1;; ++i) {
    if (prepared.become(lock)) return lock / ours.token;
    const int error = errno;
    const std::optional<FoundLock> found = find_lock(lock);
    if (!found && i < most_tries) continue;  // its holder has just given it back
    if (!found) throw RuntimeFailure(fmt::format("cannot make {}: {}", printable(lock), reason(error)));
    const bool is_free =
        has_expired(*found, terms.clock()) || (found->holder && is_gone(*found->holder, ours));
    if (!is_free || !take_over(*found, prepared, ours, terms.clock())) refuse_lock(folder, *found, terms);
    return lock / ours.token;
  }
}

}  // namespace

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

FolderLock::FolderLock(const fs::path& folder, LockTerms terms)
    : folder_(folder / lock_name), clock_(std::move(terms.clock)) {
  create_folder(folder);
  own_ = take_lock(folder, {terms.conflict, clock_});
  remove_prepared(folder, clock_());
  heartbeat_ = std::make_unique<Heartbeat>(std::chrono::seconds(lock_expires_after / 10),
                                           [this] { beat(own_, clock_()); });
}

FolderLock::~FolderLock() {
  heartbeat_.reset();
  if (::unlink(own_.c_str()) == 0) ::rmdir(folder_.c_str());
}

void FolderLock::renew() const {
  if (beat(own_, clock_()) || errno != ENOENT) return;
  throw LockLost(
      fmt::format("{}: its lock was removed, or taken over since nothing was heard of this process for {} s; "
                  "add --resume to go on once nobody else does",
                  printable(folder_.parent_path()), lock_expires_after));
}

}  // namespace halfscope
