// Sums for a cosine with the instruction set in use.
#include <halfscope/kernel/reduce/cosine.hpp>

#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/kernel/reduce/detail/cosine_simd.hpp>

namespace halfscope {

void add_cosine_sums(std::span<const float> x, std::span<const float> q, CosineSums& sums) {
  detail::check_equal_sizes("add_cosine_sums", x.size(), q.size());
  dispatch_isa([&]<Isa isa>() { cosine_sums_isa<isa>(x.data(), q.data(), x.size(), sums); });
}

}  // namespace halfscope
