// Checks that data sets share.
#include "sim/data/dataset.hpp"

#include <fmt/format.h>

#include <halfscope/core/error.hpp>

namespace halfscope {

void check_index(const Dataset& dataset, Split split, std::int64_t index, std::string_view example) {
  const std::int64_t size = dataset.size(split);
  if (index >= 0 && index < size) return;
  throw InvalidArgument(fmt::format("{} {} {}: there are 0 to {}", name_of(split), example, index, size - 1));
}

}  // namespace halfscope
