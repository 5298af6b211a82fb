// All 2^32 floats: the scalar rounding against the hardware and plain definitions, the array rounding against
// the scalar.
#include <algorithm>
#include <mutex>
#include <optional>

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/cast/detail/round_simd.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/restored.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace halfscope::round_exhaustive_test {
namespace {

constexpr std::size_t chunk = 1 << 14;
constexpr std::int64_t chunks = (std::int64_t{1} << 32) / chunk;
using Chunk = std::array<float, chunk>;

/// Runs `wrong_at(in)`, which returns the index of a wrong element, over all floats on two threads.
template <typename WrongAt>
void check_all_floats(const std::string& what, WrongAt wrong_at) {
  std::mutex mutex;
  std::optional<float> wrong;
  const Threads threads(2);
  parallel_for(chunks, [&](std::int64_t c) {
    alignas(64) Chunk in;
    const auto first = static_cast<std::uint32_t>(c * std::int64_t{chunk});
    for (std::uint32_t i = 0; i < chunk; ++i) in[i] = from_bits(first + i);
    const std::size_t index = wrong_at(in);
    if (index == chunk) return;
    const std::lock_guard lock(mutex);
    wrong = in[index];
  });
  INFO(what << " is wrong for " << (wrong ? describe(*wrong) : "nothing"));
  CHECK_FALSE(wrong);
}

std::size_t first_difference(const Chunk& a, const Chunk& b) {
  const auto found = std::mismatch(a.begin(), a.end(), b.begin(), same_bits);
  return static_cast<std::size_t>(found.first - a.begin());
}

/// The scalar reference over a chunk; for AVX2 only so that the compiler's vectors are wide, and the test
/// short.
template <Rounding rounding>
[[gnu::always_inline]] inline void scalar_loop(const Chunk& in, Chunk& out, const RoundingGrid& shared_grid) {
  const RoundingGrid grid = shared_grid;
  for (std::size_t i = 0; i < chunk; ++i) out[i] = round_on_grid<rounding>(in[i], grid);
}

template <Rounding rounding>
void scalar_baseline(const Chunk& in, Chunk& out, const RoundingGrid& grid) {
  scalar_loop<rounding>(in, out, grid);
}

#if defined(__x86_64__)
template <Rounding rounding>
[[gnu::target("avx2")]] void scalar_avx2(const Chunk& in, Chunk& out, const RoundingGrid& grid) {
  scalar_loop<rounding>(in, out, grid);
}

constexpr int hardware_rounding(Rounding rounding) {
  return rounding == Rounding::toward_zero ? 3
         : rounding == Rounding::up        ? 2
         : rounding == Rounding::down      ? 1
                                           : 0;
}

template <Rounding rounding>
[[gnu::target("avx2,f16c")]] void hardware_fp16(const Chunk& in, Chunk& out) {
  for (std::size_t i = 0; i < chunk; i += 8) {
    const __m256 x = _mm256_loadu_ps(in.data() + i);
    const __m256 rounded = _mm256_cvtph_ps(_mm256_cvtps_ph(x, hardware_rounding(rounding)));
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(quiet_nan_bits)));
    _mm256_storeu_ps(out.data() + i, _mm256_blendv_ps(rounded, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
  }
}
#endif

bool has_avx2() {
  return available_isas().size() > 1;
}

template <Rounding rounding>
void scalar(const Chunk& in, Chunk& out, const RoundingGrid& grid) {
#if defined(__x86_64__)
  if (has_avx2()) return scalar_avx2<rounding>(in, out, grid);
#endif
  scalar_baseline<rounding>(in, out, grid);
}

template <Rounding rounding>
void check_against_hardware() {
#if defined(__x86_64__)
  if (has_avx2()) {
    const Quantizer q{fp16, rounding};
    check_all_floats(to_string(q) + " against F16C", [&](const Chunk& in) {
      alignas(64) Chunk expected, actual;
      hardware_fp16<rounding>(in, expected);
      scalar<rounding>(in, actual, rounding_grid(q));
      return first_difference(expected, actual);
    });
    return;
  }
#endif
  WARN("skipped: this CPU has no F16C instructions to compare FP16 rounding with");
}

TEST_CASE("FP16 is what the hardware converts, for all floats", "[exhaustive]") {
  check_against_hardware<Rounding::nearest_even>();
  check_against_hardware<Rounding::toward_zero>();
  check_against_hardware<Rounding::up>();
  check_against_hardware<Rounding::down>();
}

/// bfloat16 as its definition has it: the upper half of a float, to the nearest, ties to the even upper half.
float bf16_by_definition(float x) {
  if (std::isnan(x)) return from_bits(quiet_nan_bits);
  const std::uint32_t upper = to_bits(x) >> 16;
  const std::uint32_t lower = to_bits(x) & 0xFFFF;
  const bool up = lower > 0x8000 || (lower == 0x8000 && upper % 2 == 1);
  return from_bits((upper + (up ? 1 : 0)) << 16);
}

TEST_CASE("BF16 is what its definition says, for all floats", "[exhaustive]") {
  check_all_floats("bf16", [](const Chunk& in) {
    alignas(64) Chunk expected, actual;
    for (std::size_t i = 0; i < chunk; ++i) expected[i] = bf16_by_definition(in[i]);
    scalar<Rounding::nearest_even>(in, actual, rounding_grid({bf16}));
    return first_difference(expected, actual);
  });
}

TEST_CASE("FP32 keeps all floats", "[exhaustive]") {
  check_all_floats("fp32", [](const Chunk& in) {
    alignas(64) Chunk expected, actual;
    for (std::size_t i = 0; i < chunk; ++i)
      expected[i] = std::isnan(in[i]) ? from_bits(quiet_nan_bits) : in[i];
    scalar<Rounding::nearest_even>(in, actual, rounding_grid({fp32}));
    return first_difference(expected, actual);
  });
}

TEST_CASE("array rounding is the scalar rounding, for all floats, on every instruction set", "[exhaustive]") {
  for (const NamedFormat& entry : format_catalogue) {
    const Quantizer q{entry.format};
    const auto kernel = [&](Isa isa, const Chunk& in, Chunk& out) {
      switch (isa) {
        case Isa::baseline:
          return round_isa<Isa::baseline>(in.data(), out.data(), chunk, q, {});
        case Isa::avx2:
          return round_isa<Isa::avx2>(in.data(), out.data(), chunk, q, {});
        case Isa::avx512:
          return round_isa<Isa::avx512>(in.data(), out.data(), chunk, q, {});
      }
    };
    check_all_floats(to_string(q) + " in arrays", [&](const Chunk& in) {
      alignas(64) Chunk expected, actual;
      scalar<Rounding::nearest_even>(in, expected, rounding_grid(q));
      std::size_t wrong = chunk;
      for (const Isa isa : available_isas()) {
        kernel(isa, in, actual);
        wrong = std::min(wrong, first_difference(expected, actual));
      }
      return wrong;
    });
  }
}

}  // namespace
}  // namespace halfscope::round_exhaustive_test
