// A limit on the memory that the process may still ask for.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace halfscope {

/// AddressSanitizer ends a process that gets no memory, where others throw std::bad_alloc.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool memory_can_be_limited = false;
#elif defined(__has_feature)
constexpr bool memory_can_be_limited = !__has_feature(address_sanitizer);
#else
constexpr bool memory_can_be_limited = true;
#endif

/// For the life of the object the process gets at most `bytes` of address space beyond what it has.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t bytes) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
    ::setrlimit(RLIMIT_AS, &limit);
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
  ~MemoryLimit() { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

}  // namespace halfscope
