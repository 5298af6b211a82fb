// Tensors of a file in parts that threads work on, and whose results are taken in order.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <halfscope/core/parallel.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// Elements [first, first + count) of a tensor.
struct TensorPart {
  std::size_t tensor = 0;
  std::int64_t first = 0, count = 0;
};

/// Appends the parts of tensor `index`: blocks of `block` elements, or the whole where reading from the
/// middle costs. A tensor without elements is one part too.
inline void append_parts(std::size_t index, const StoredTensor& tensor, std::int64_t block,
                         std::vector<TensorPart>& parts) {
  const std::int64_t size = tensor.access == Access::random ? block : tensor.elements;
  std::int64_t first = 0;
  do {
    parts.push_back({index, first, std::min(size, tensor.elements - first)});
    first += size;
  } while (first < tensor.elements);
}

/// Calls `work(part)` for each part, split over the threads, then `take(part, result)` one after the other,
/// in order; some parts at a time, so that few results are kept. An exception of `work` is thrown on.
template <typename Part, typename Work, typename Take>
void work_through(std::span<const Part> parts, Work&& work, Take&& take) {
  using Result = decltype(work(parts[0]));
  constexpr std::size_t at_a_time = 64;
  for (std::size_t start = 0; start < parts.size(); start += at_a_time) {
    const auto batch = parts.subspan(start, std::min(at_a_time, parts.size() - start));
    std::vector<std::optional<Result>> results(batch.size());
    std::vector<std::exception_ptr> errors(batch.size());
    std::atomic<std::size_t> next = 0;  // the threads end together, however fast each of them is
    parallel_for(thread_count(), [&](std::int64_t /*thread*/) noexcept {
      for (std::size_t at = next++; at < batch.size(); at = next++) {
        try {
          results[at] = work(batch[at]);
        } catch (...) {
          errors[at] = std::current_exception();
        }
      }
    });
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (errors[i]) std::rethrow_exception(errors[i]);
      take(batch[i], std::move(*results[i]));
    }
  }
}

}  // namespace halfscope
