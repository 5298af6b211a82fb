// parallel_for over OpenMP.
#include <halfscope/core/parallel.hpp>

#include <omp.h>

#include <string>

namespace halfscope {
namespace {
int threads_in_use = 1;
}

void set_thread_count(int threads) {
  if (threads < 1) throw InvalidArgument("threads = " + std::to_string(threads) + ": give 1 or more");
  threads_in_use = threads;
}

int thread_count() {
  return threads_in_use;
}

namespace detail {
void parallel_for_each(std::int64_t count, void* context, RangeFunction function) {
  if (threads_in_use == 1 || count <= 1) {
    for (std::int64_t i = 0; i < count; ++i) function(context, i);
    return;
  }
#pragma omp parallel for schedule(static) num_threads(threads_in_use)
  for (std::int64_t i = 0; i < count; ++i) function(context, i);
}
}  // namespace detail

}  // namespace halfscope
