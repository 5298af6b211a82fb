// Ranges of numbers, with the instruction set in use.
#include <halfscope/kernel/reduce/finiteness.hpp>

#include <atomic>

#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/reduce/detail/finiteness_simd.hpp>

namespace halfscope {
namespace {

template <typename Bits>
bool all_finite_of(std::span<const Bits> numbers, Bits exponent) {
  constexpr std::int64_t bytes_at_once = 1 << 20;
  std::atomic<bool> is_finite = true;
  parallel_for_ranges(std::ssize(numbers), bytes_at_once / std::int64_t{sizeof(Bits)},
                      [&](std::int64_t first, std::int64_t count) noexcept {
                        if (!is_finite.load(std::memory_order_relaxed)) return;
                        const bool is_full = dispatch_isa([&]<Isa isa>() {
                          return has_full_exponent_isa<isa>(numbers.data() + first,
                                                            static_cast<std::size_t>(count), exponent);
                        });
                        if (is_full) is_finite.store(false, std::memory_order_relaxed);
                      });
  return is_finite;
}

}  // namespace

bool all_finite(std::span<const std::uint16_t> numbers, std::uint16_t exponent) {
  return all_finite_of(numbers, exponent);
}
bool all_finite(std::span<const std::uint32_t> numbers, std::uint32_t exponent) {
  return all_finite_of(numbers, exponent);
}
bool all_finite(std::span<const std::uint64_t> numbers, std::uint64_t exponent) {
  return all_finite_of(numbers, exponent);
}

}  // namespace halfscope
