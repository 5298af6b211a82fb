// A lock on a folder: one process, and one thread of it, at a time.
#pragma once

#include <filesystem>
#include <string_view>

namespace halfscope {

/// Holds the lock: a file "lock" in the folder, with the process and the host in it. The kernel gives it up
/// when its holder dies, however; the file that a killed process leaves is taken over. On a file system
/// without locks nothing is locked, which a note on stderr says once.
class FolderLock {
 public:
  /// Makes `folder`. Throws RuntimeFailure where somebody else holds its lock: the folder, the process, the
  /// host, and `conflict`, which says what the holder does and what would be right.
  FolderLock(const std::filesystem::path& folder, std::string_view conflict);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  std::filesystem::path path_;
  int file_;  ///< open while the lock is held
};

}  // namespace halfscope
