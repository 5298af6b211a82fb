// Column sums, counted where the step is observed.
#include "sim/layers/reduction.hpp"

#include "lib/nn/elementwise.hpp"

namespace halfscope {

Array reduce(const CastScope& casts, const std::string& layer, const std::string& tensor,
             const ColumnTerms& terms) {
  Array sums({terms.columns});
  casts.sum_columns(layer + "." + tensor, terms, casts.policy().reductions_in(layer), sums.values());
  return sums;
}

Array mean_of(Array sums, std::int64_t count) {
  scale(sums.values(), 1.0f / static_cast<float>(count), sums.values());
  return sums;
}

}  // namespace halfscope
