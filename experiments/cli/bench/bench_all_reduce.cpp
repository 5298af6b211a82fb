// Sums over ranks beside a copy of their addends.
#include "experiments/cli/bench/bench_all_reduce.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <halfscope/core/random.hpp>
#include <halfscope/kernel/reduce/all_reduce.hpp>

namespace halfscope {

BenchResult bench_all_reduce(std::string_view model, std::int64_t ranks, std::int64_t elements) {
  const AllReduceModel parsed = parse_all_reduce(model);
  AllReduce all_reduce(parsed, parse_gradient_division("ddp"), {.ranks = ranks, .elements = elements});
  std::vector<float> gradients(static_cast<std::size_t>(elements)), means(gradients.size());
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const RandomStream stream{.seed = 5, .step = static_cast<std::uint32_t>(rank)};
    for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = 2 * stream.uniform(i) - 1;
    all_reduce.put(rank, gradients);
  }
  const auto adds = static_cast<double>((ranks - 1) * elements);
  // In pieces that no cache holds, so that the copy needs no second memory of that size.
  const std::size_t bytes = static_cast<std::size_t>(ranks * elements) * bytes_per_element(parsed.wire);
  const std::size_t piece = std::min(bytes, std::size_t{1} << 26);
  std::vector<std::byte> addends(piece, std::byte{1}), copy(piece);
  const Times times = time_in_turn([&] { all_reduce.finish(means); },
                                   [&] {
                                     for (std::size_t at = 0; at < bytes; at += piece) {
                                       std::memcpy(copy.data(), addends.data(), std::min(piece, bytes - at));
                                       asm volatile("" : : : "memory");
                                     }
                                   });
  return {adds / times.ours * 1e-9, "Gadd/s", times.ratio, "memcpy of the addends"};
}

}  // namespace halfscope
