// An all-reduce by the processes of an mpirun, each a rank, beside the model in one process: a ring of
// messages, or MPI's own with halves added by a user's operation.
//
//   mpi_all_reduce ring            NCCL's order
//   mpi_all_reduce reduce ORDER    MPI_Allreduce, in the order of that name
#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <halfscope/core/random.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/kernel/reduce/all_reduce.hpp>

#include "tests/reference/rounding.hpp"

namespace halfscope {
namespace {

constexpr int elements = 100003;
using Codes = std::vector<std::uint16_t>;

/// Gradients of magnitudes from 2^-20 to 2^3.
std::vector<float> gradients_of(int rank) {
  const RandomStream stream{.seed = 12, .step = static_cast<std::uint32_t>(rank)};
  std::vector<float> values;
  for (std::uint64_t e = 0; e < elements; ++e) {
    const std::uint32_t bits = stream.bits(e);
    const float magnitude = std::ldexp(1.0f + static_cast<float>(bits & 0x3FFu) * 0x1p-10f,
                                       static_cast<int>(bits >> 10 & 0xFFFFu) % 24 - 20);
    values.push_back((bits >> 31) != 0 ? -magnitude : magnitude);
  }
  return values;
}

std::uint16_t code_of(double x) {
  return static_cast<std::uint16_t>(encode(reference::round_to_float(x, {.format = fp16}), fp16));
}

std::uint16_t add_codes(std::uint16_t a, std::uint16_t b) {
  return code_of(double{decode(a, fp16)} + double{decode(b, fp16)});
}

/// For MPI_Op_create.
void add_halves(void* in, void* in_out, int* count, MPI_Datatype* /*type*/) {
  const auto* const from = static_cast<const std::uint16_t*>(in);
  auto* const to = static_cast<std::uint16_t*>(in_out);
  for (int i = 0; i < *count; ++i) to[i] = add_codes(from[i], to[i]);
}

/// Chunk c of a ring of so many ranks, of a multiple of 8 elements.
struct Chunk {
  int first, count;
};
Chunk chunk_of(int c, int ranks) {
  const int size = ((elements + ranks - 1) / ranks + 7) / 8 * 8, first = std::min(elements, c * size);
  return {first, std::min(size, elements - first)};
}

/// Every rank sends to the next and receives from the one before, N - 1 times to add and N - 1 times to copy.
Codes ring_sum(Codes own, int rank, int ranks) {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  Codes received(own.size());
  for (int step = 1; step < 2 * ranks - 1; ++step) {
    const Chunk out = chunk_of((rank + 2 * ranks - step) % ranks, ranks);
    const Chunk in = chunk_of((rank + 2 * ranks - step - 1) % ranks, ranks);
    MPI_Sendrecv(own.data() + out.first, out.count, MPI_UINT16_T, next, step, received.data() + in.first,
                 in.count, MPI_UINT16_T, previous, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int e = in.first; e < in.first + in.count; ++e) {
      const auto i = static_cast<std::size_t>(e);
      own[i] = step < ranks ? add_codes(received[i], own[i]) : received[i];
    }
  }
  return own;
}

Codes mpi_sum(const Codes& own) {
  MPI_Op add{};
  MPI_Op_create(add_halves, 1, &add);
  Codes sums(own.size());
  MPI_Allreduce(own.data(), sums.data(), elements, MPI_UINT16_T, add, MPI_COMM_WORLD);
  MPI_Op_free(&add);
  return sums;
}

/// By the library, all ranks in this process.
Codes model_sum(const std::string& order, int ranks) {
  AllReduce all_reduce(parse_all_reduce(order), parse_gradient_division("sum"),
                       {.ranks = ranks, .elements = elements});
  for (int rank = 0; rank < ranks; ++rank) all_reduce.put(rank, gradients_of(rank));
  std::vector<float> sums(elements);
  (void)all_reduce.finish(sums);
  Codes codes;
  for (const float sum : sums) codes.push_back(code_of(double{sum}));
  return codes;
}

int compare(const std::string& what, const std::string& order) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Codes own;
  for (const float gradient : gradients_of(rank)) own.push_back(code_of(double{gradient}));
  const Codes sums = what == "ring" ? ring_sum(own, rank, ranks) : mpi_sum(own);
  const Codes expected = model_sum(order, ranks);
  int different = 0;
  for (std::size_t e = 0; e < sums.size(); ++e) different += sums[e] != expected[e] ? 1 : 0;
  std::printf("rank %d of %d: %d of %d elements differ from %s\n", rank, ranks, different, elements,
              order.c_str());
  return different == 0 ? 0 : 1;
}

}  // namespace
}  // namespace halfscope

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  if (what != "ring" && !(what == "reduce" && count > 2)) {
    std::puts("usage: mpi_all_reduce ring | reduce ORDER");
    return 2;
  }
  MPI_Init(&count, &words);
  int status = 2;
  try {
    status = halfscope::compare(what, what == "ring" ? "nccl_ring" : words[2]);
  } catch (const halfscope::InvalidArgument& error) {
    std::puts(error.what());
  }
  MPI_Finalize();
  return status;
}
