// The processes of an mpirun that train together; one where there is no mpirun.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace halfscope {

/// Joins the processes that mpirun has started, for the life of the object: one in a program, in `main`.
/// Throws InvalidArgument where mpirun has started several and the build has no MPI.
class ProcessGroup {
 public:
  ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;
  ~ProcessGroup();
};

/// From 0. Only the first process reads settings, writes files and prints.
[[nodiscard]] int process_index();
[[nodiscard]] int process_count();
/// Processes on this machine.
[[nodiscard]] int local_process_count();

/// Consecutive things of one process.
struct ProcessShare {
  std::int64_t first = 0, count = 0;
};
/// Share that a process has of `total` things, divided in order and as evenly as can be.
[[nodiscard]] ProcessShare share_of(std::int64_t total, int process);

// Each of these is called by all processes alike, by one thread at a time. With one process they copy.

/// The bytes of the first process, to all.
void broadcast(std::string& bytes);
/// The bytes of all processes, in their order, to all.
[[nodiscard]] std::vector<std::string> gather(const std::string& own);
/// Sums over the processes, to all: exact in any order.
void sum_over_processes(std::span<std::int64_t> values);
/// `own` has elements of `size` bytes; process p receives the elements of its share, from process 0, 1, ...
[[nodiscard]] std::vector<std::byte> exchange_shares(std::span<const std::byte> own, std::size_t size);
/// Each process has filled its share of `all`; the others' are filled in.
void gather_shares(std::span<float> all);

/// Ends all processes at once with `status`, where one of them cannot go on.
[[noreturn]] void abort_processes(int status);

}  // namespace halfscope
