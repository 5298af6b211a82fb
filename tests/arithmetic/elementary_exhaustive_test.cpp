// The elementary functions of all 2^32 floats: their stated error, where they are monotone, and that every
// instruction set has the same bits.
#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

#include "lib/nn/elementary.hpp"

#include <algorithm>
#include <mutex>

#include "tests/arithmetic/elementary_oracle.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::elementary_exhaustive_test {
namespace {

constexpr std::size_t chunk = 1 << 14;
constexpr std::int64_t chunks = (std::int64_t{1} << 32) / chunk;
using Chunk = std::array<float, chunk + 1>;  // the last float is the next chunk's first

struct Findings {
  double ulps = 0;
  std::int64_t falls = 0;      ///< neighbours whose order is wrong
  std::int64_t differing = 0;  ///< chunks whose bits depend on the instruction set
};

/// At consecutive floats and the function of them.
template <Elementary function>
Findings look_at(const Chunk& in, const Chunk& out) {
  Findings found;
  const bool rises = (function == Elementary::rsqrt) == std::signbit(in[0]);
  for (std::size_t i = 0; i < chunk; ++i) {
    const double distance = ulps(out[i], exact(function, in[i]));
    found.ulps = found.ulps < distance ? distance : found.ulps;
    found.falls += (rises ? out[i + 1] < out[i] : out[i + 1] > out[i]) ? 1 : 0;
  }
  return found;
}

template <Elementary function>
Findings look_at_all() {
  Findings all;
  std::mutex mutex;
  const Threads threads(2);
  parallel_for(chunks, [&](std::int64_t c) {
    Chunk in, out, other;
    const auto first = static_cast<std::uint32_t>(c * std::int64_t{chunk});
    for (std::uint32_t i = 0; i <= chunk; ++i) in[i] = from_bits(first + i);
    const auto run = [&]<Isa isa>(Chunk& to) {
      elementary_isa<isa>(function, in.data(), to.data(), in.size());
    };
    dispatch_isa([&]<Isa isa>() { run.template operator()<isa>(out); });
    run.template operator()<Isa::baseline>(other);
    Findings found = look_at<function>(in, out);
    found.differing = std::equal(out.begin(), out.end(), other.begin(), same_bits) ? 0 : 1;
    const std::lock_guard lock(mutex);
    all = {std::max(all.ulps, found.ulps), all.falls + found.falls, all.differing + found.differing};
  });
  return all;
}

template <Elementary function>
void check_all() {
  constexpr double stated = elementary_ulps[static_cast<std::size_t>(function)];
  const Findings found = look_at_all<function>();
  INFO(name_of(function) << " errs by up to " << found.ulps << " ulp and falls " << found.falls << " times");
  CHECK(found.ulps <= stated);
  CHECK(found.ulps > 0.9 * stated);  // the bound is no wider than it must be
  CHECK(found.differing == 0);
  if constexpr (function != Elementary::erf && function != Elementary::sigmoid) CHECK(found.falls == 0);
}

TEST_CASE("exp keeps its word for all floats", "[exhaustive]") {
  check_all<Elementary::exp>();
}

TEST_CASE("log keeps its word for all floats", "[exhaustive]") {
  check_all<Elementary::log>();
}

TEST_CASE("tanh keeps its word for all floats", "[exhaustive]") {
  check_all<Elementary::tanh>();
}

TEST_CASE("erf keeps its word for all floats", "[exhaustive]") {
  check_all<Elementary::erf>();
}

TEST_CASE("rsqrt keeps its word for all floats", "[exhaustive]") {
  check_all<Elementary::rsqrt>();
}

TEST_CASE("sigmoid keeps its word for all floats", "[exhaustive]") {
  check_all<Elementary::sigmoid>();
}

}  // namespace
}  // namespace halfscope::elementary_exhaustive_test
