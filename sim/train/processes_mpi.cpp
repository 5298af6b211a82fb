// The processes of an mpirun, through MPI: it carries bytes and adds integers, no gradient.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#define OMPI_SKIP_MPICXX  // MPI's C++ interface, which nobody uses
#include <mpi.h>

#include <halfscope/core/error.hpp>

#include "sim/train/processes.hpp"

namespace halfscope {
namespace {

int index_of_process = 0, count_of_processes = 1, local_processes = 1;

/// Whether a launcher has started this process. Without one MPI is not asked: its start takes time.
bool is_launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

void check_mpi(int status, const char* call) {
  if (status != MPI_SUCCESS) throw RuntimeFailure(fmt::format("{} failed with MPI's error {}", call, status));
}

/// Bytes of one message at most: MPI counts in ints.
constexpr std::size_t most_bytes = std::size_t{1} << 30;

int as_count(std::size_t bytes) {
  if (bytes > most_bytes)
    throw RuntimeFailure(fmt::format("{} bytes for one process are too many; start more processes", bytes));
  return static_cast<int>(bytes);
}

/// Counts of all processes and their sums, in ints as MPI wants them.
struct Layout {
  std::vector<int> counts, offsets;

  void add(std::size_t bytes) {
    offsets.push_back(counts.empty() ? 0 : offsets.back() + counts.back());
    counts.push_back(as_count(bytes));
    (void)as_count(total());
  }
  [[nodiscard]] std::size_t total() const {
    return counts.empty()
               ? 0
               : static_cast<std::size_t>(offsets.back()) + static_cast<std::size_t>(counts.back());
  }
};

/// Counts and offsets of all processes' shares of `total` elements.
Layout layout_of_shares(std::size_t total, std::size_t size) {
  Layout layout;
  for (int process = 0; process < count_of_processes; ++process)
    layout.add(static_cast<std::size_t>(share_of(static_cast<std::int64_t>(total), process).count) * size);
  return layout;
}

}  // namespace

ProcessGroup::ProcessGroup() {
  if (!is_launched()) return;
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_SERIALIZED)
    throw RuntimeFailure("this MPI cannot be called by a thread beside the first; use another one");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &index_of_process), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &count_of_processes), "MPI_Comm_size");
  MPI_Comm local{};
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local),
            "MPI_Comm_split_type");
  check_mpi(MPI_Comm_size(local, &local_processes), "MPI_Comm_size");
  MPI_Comm_free(&local);
}

ProcessGroup::~ProcessGroup() {
  if (is_launched()) MPI_Finalize();
}

int process_index() {
  return index_of_process;
}

int process_count() {
  return count_of_processes;
}

int local_process_count() {
  return local_processes;
}

void broadcast(std::string& bytes) {
  if (count_of_processes == 1) return;
  std::uint64_t size = bytes.size();
  check_mpi(MPI_Bcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD), "MPI_Bcast");
  bytes.resize(size);
  for (std::size_t at = 0; at < bytes.size(); at += most_bytes) {
    const std::size_t piece = std::min(most_bytes, bytes.size() - at);
    check_mpi(MPI_Bcast(bytes.data() + at, as_count(piece), MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
  }
}

std::vector<std::string> gather(const std::string& own) {
  if (count_of_processes == 1) return {own};
  const auto processes = static_cast<std::size_t>(count_of_processes);
  std::vector<std::uint64_t> sizes(processes);
  const std::uint64_t size = own.size();
  check_mpi(MPI_Allgather(&size, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD),
            "MPI_Allgather");
  Layout layout;
  for (const std::uint64_t bytes : sizes) layout.add(bytes);
  std::string all(layout.total(), '\0');
  check_mpi(MPI_Allgatherv(own.data(), as_count(own.size()), MPI_BYTE, all.data(), layout.counts.data(),
                           layout.offsets.data(), MPI_BYTE, MPI_COMM_WORLD),
            "MPI_Allgatherv");
  std::vector<std::string> parts;
  for (std::size_t process = 0; process < processes; ++process)
    parts.push_back(all.substr(static_cast<std::size_t>(layout.offsets[process]), sizes[process]));
  return parts;
}

void sum_over_processes(std::span<std::int64_t> values) {
  if (count_of_processes == 1) return;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), as_count(values.size()), MPI_INT64_T, MPI_SUM,
                          MPI_COMM_WORLD),
            "MPI_Allreduce");
}

std::vector<std::byte> exchange_shares(std::span<const std::byte> own, std::size_t size) {
  if (count_of_processes == 1) return {own.begin(), own.end()};
  const Layout sent = layout_of_shares(own.size() / size, size);
  Layout received;
  for (int process = 0; process < count_of_processes; ++process)
    received.add(static_cast<std::size_t>(sent.counts[static_cast<std::size_t>(index_of_process)]));
  std::vector<std::byte> bytes(received.total());
  check_mpi(MPI_Alltoallv(own.data(), sent.counts.data(), sent.offsets.data(), MPI_BYTE, bytes.data(),
                          received.counts.data(), received.offsets.data(), MPI_BYTE, MPI_COMM_WORLD),
            "MPI_Alltoallv");
  return bytes;
}

void gather_shares(std::span<float> all) {
  if (count_of_processes == 1) return;
  const Layout layout = layout_of_shares(all.size(), sizeof(float));
  check_mpi(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, all.data(), layout.counts.data(), layout.offsets.data(),
                           MPI_BYTE, MPI_COMM_WORLD),
            "MPI_Allgatherv");
}

void abort_processes(int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace halfscope
