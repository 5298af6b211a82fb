// Philox against its published known answers, and the streams built on it.
#include <halfscope/core/random.hpp>

#include <cmath>
#include <set>

#include "tests/support/catch.hpp"

namespace halfscope::random_test {
namespace {

static_assert(philox({0, 0, 0, 0}, 0, 0)[0] == 0x6627e8d5, "works at compile time");

TEST_CASE("philox4x32-10 gives the known answers of Random123", "[random]") {
  CHECK(philox({0, 0, 0, 0}, 0, 0) == RandomBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox({ones, ones, ones, ones}, ones, ones) ==
        RandomBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0) ==
        RandomBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a stream is a function of seed, step, site and index", "[random]") {
  const RandomStream stream{.seed = 0x299f31d0a4093822, .step = 0x13198a2e, .site = 0x03707344};
  const std::uint64_t index = 4 * 0x85a308d3243f6a88;  // wraps; the block is the low 62 bits
  CHECK(stream.block(0x85a308d3243f6a88) == RandomBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  CHECK(stream.bits(index + 2) == stream.block(index / 4)[2]);
  std::set<std::uint32_t> first;
  for (const RandomStream& other :
       {stream, RandomStream{1, 0, 0}, RandomStream{0, 1, 0}, RandomStream{0, 0, 1}, RandomStream{0, 0, 0},
        RandomStream{std::uint64_t{1} << 32, 0, 0}}) {
    first.insert(other.bits(0));
  }
  CHECK(first.size() == 6);
}

TEST_CASE("uniform numbers are in range with the right mean and variance", "[random]") {
  const RandomStream stream{.seed = 42};
  constexpr int count = 100'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < count; ++i) {
    const float u = stream.uniform(static_cast<std::uint64_t>(i));
    REQUIRE((u >= 0 && u < 1 && u * 0x1p24f == std::floor(u * 0x1p24f)));
    sum += double{u};
    squares += double{u} * double{u};
  }
  CHECK(sum / count == Approx(0.5).margin(0.004));
  CHECK(squares / count == Approx(1.0 / 3).margin(0.004));
}

TEST_CASE("site hashes are FNV-1a", "[random]") {
  CHECK(site_hash("", 0) == 0x811c9dc5);
  CHECK(site_hash("a", 1) == 0xe40c292c);
  CHECK(site_hash("foobar", 6) == 0xbf9cf968);
}

}  // namespace
}  // namespace halfscope::random_test
