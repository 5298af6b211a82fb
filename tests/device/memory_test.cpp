// The pool of host memory: buffers of recurring sizes come back, others are not kept without end.
#include <halfscope/device/memory.hpp>

#include <halfscope/device/detail/host_pool.hpp>

#include <algorithm>
#include <vector>

#include "tests/support/catch.hpp"

namespace halfscope::memory_test {
namespace {

TEST_CASE("a released buffer is the next one of its size, or of a size close to it", "[memory]") {
  for (const std::size_t size : {16u, 1000u, 100'000u, 1'000'000u}) {
    const float* first = Memory<float>(size, Device::cpu).data();
    CHECK(Memory<float>(size, Device::cpu).data() == first);
    CHECK(reinterpret_cast<std::uintptr_t>(first) % 64 == 0);
  }
  const float* first = Memory<float>(1'000'000, Device::cpu).data();
  CHECK(Memory<float>(1'000'100, Device::cpu).data() == first);
}

TEST_CASE("sizes that do not recur leave no more behind than twice what was in use at once", "[memory]") {
  constexpr std::size_t largest = std::size_t{1} << 24;  // bytes
  const Memory<std::byte> beside(largest, Device::cpu);
  for (std::size_t bytes = std::size_t{1} << 16; bytes <= largest; bytes += 54'321) {
    const Memory<std::byte> one(bytes, Device::cpu);
    const detail::HostPoolBytes pool = detail::host_pool_bytes();
    CHECK(pool.most_used >= largest + bytes);
    CHECK(pool.kept <= 2 * pool.most_used);
  }
}

TEST_CASE("a pool gives memory of the size that is asked for", "[memory]") {
  std::vector<Memory<std::byte>> all;
  for (std::size_t bytes = 1; bytes < 5000; bytes += 37) {
    all.emplace_back(bytes, Device::cpu);
    std::fill_n(all.back().data(), bytes, static_cast<std::byte>(all.size()));
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    CHECK(std::ranges::count(all[i].values(), static_cast<std::byte>(i + 1)) ==
          static_cast<std::ptrdiff_t>(all[i].size()));
}

}  // namespace
}  // namespace halfscope::memory_test
