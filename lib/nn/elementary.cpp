// Checks sizes and splits the elementary functions of arrays over the threads.
#include <fmt/format.h>

#include <halfscope/core/parallel.hpp>

#include "lib/nn/elementary.hpp"

namespace halfscope {
namespace {

/// Elements of one task: some ten microseconds.
constexpr std::int64_t functions_per_task = 8192;

}  // namespace

void apply(Elementary function, std::span<const float> x, std::span<float> y) {
  if (x.size() != y.size()) {
    throw InvalidArgument(fmt::format("{}: {} values do not fit an output of {}; give both the same size",
                                      name_of(function), x.size(), y.size()));
  }
  if (active_device() == Device::cuda) return cuda::apply(function, x, y);
  parallel_for_ranges(
      static_cast<std::int64_t>(x.size()), functions_per_task, [&](std::int64_t first, std::int64_t count) {
        dispatch_isa([&]<Isa isa>() {
          elementary_isa<isa>(function, x.data() + first, y.data() + first, static_cast<std::size_t>(count));
        });
      });
}

}  // namespace halfscope
