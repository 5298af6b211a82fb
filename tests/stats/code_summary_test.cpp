// Summaries from counted codes against summaries of the numbers, one by one.
#include <halfscope/stats/detail/code_summary.hpp>

#include <cstring>

#include <halfscope/kernel/cast/convert.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::code_summary_test {
namespace {

constexpr std::array few_codes{DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2};

std::vector<std::byte> stored(std::span<const std::uint32_t> codes, DType type) {
  const std::size_t width = bytes_per_element(type);
  std::vector<std::byte> bytes(codes.size() * width);
  for (std::size_t i = 0; i < codes.size(); ++i) std::memcpy(bytes.data() + i * width, &codes[i], width);
  return bytes;
}

/// Each code once, of 16 bits; then `more` random ones.
std::vector<std::uint32_t> all_codes_and(std::size_t more) {
  std::vector<std::uint32_t> codes(65536 + more);
  for (std::uint32_t code = 0; code < 65536; ++code) codes[code] = code;
  for (std::size_t i = 65536; i < codes.size(); ++i) codes[i] = RandomStream{.seed = 2}.bits(i);
  return codes;
}

/// Numbers of few binades, two thirds of them zeros; with no infinity or NaN in any of the types.
std::vector<std::uint32_t> gradient_like(std::size_t count) {
  std::vector<std::uint32_t> codes(count);
  for (std::size_t i = 0; i < count; ++i) {
    codes[i] = i % 3 != 0 ? (i % 2 == 0 ? 0 : 0x8080u) : RandomStream{.seed = 3}.bits(i) & 0x9F9Fu;
  }
  return codes;
}

CodeCounts counted(std::span<const std::byte> bytes, DType type) {
  CodeCounts counts(bytes_per_element(type));
  counts.add(bytes);
  counts.settle();
  return counts;
}

TensorSummary summarised(std::span<const std::byte> bytes, DType type, const FloatFormat& format) {
  std::vector<float> values(bytes.size() / bytes_per_element(type));
  widen(type, bytes.data(), values);
  SummaryPass pass(format);
  pass.add(values);
  return pass.summary();
}

TEST_CASE("counted codes give the summary of the numbers, for every format", "[code_survey]") {
  for (const DType type : few_codes) {
    for (const auto& codes : {all_codes_and(200'001), gradient_like(150'001), {}}) {
      const std::vector<std::byte> bytes = stored(codes, type);
      const CodeCounts counts = counted(bytes, type);
      for (const FloatFormat& format : formats_under_test()) {
        INFO(name_of(type) << " to " << to_string(format) << ", " << codes.size() << " elements");
        const TensorSummary expected = summarised(bytes, type, format);
        const TensorSummary found = summarise_codes(counts, type, format);
        CHECK(found.histogram() == expected.histogram());
        for (int scale_log2 = -160; scale_log2 <= 160; scale_log2 += 5) {
          CHECK(found.lost_energy(scale_log2) == expected.lost_energy(scale_log2));
        }
        REQUIRE(found.cosine().has_value() == expected.cosine().has_value());
        if (found.cosine()) CHECK(*found.cosine() == Approx(*expected.cosine()).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("the cosine of numbers that rounding changes comes out of their codes", "[code_survey]") {
  const std::vector<std::byte> bytes = stored(gradient_like(90'000), DType::f16);
  const TensorSummary found = summarise_codes(counted(bytes, DType::f16), DType::f16, parse_format("e8m1"));
  REQUIRE(found.cosine().has_value());
  CHECK(*found.cosine() < 0.9999);
  CHECK(*found.cosine() > 0.98);
}

TEST_CASE("few and many stored elements are added to a histogram as their floats are", "[code_survey]") {
  for (const DType type : few_codes) {
    for (const auto& codes :
         {all_codes_and(1), all_codes_and(200'000), all_codes_and(800'000), gradient_like(300'001)}) {
      const std::vector<std::byte> bytes = stored(codes, type);
      std::vector<float> values(codes.size());
      widen(type, bytes.data(), values);
      for (const FloatFormat& format : {fp16, bf16, fp8_e4m3, fp32}) {
        ExponentHistogram expected(format);
        for (int again = 0; again < 2; ++again) expected.add(values);
        for (const int threads : {1, 3}) {
          INFO(name_of(type) << " for " << to_string(format) << ", " << codes.size() << " elements, "
                             << threads << " threads");
          const Threads in_use(threads);
          ExponentHistogram found(format);
          for (int again = 0; again < 2; ++again) add_in_threads(found, type, bytes.data(), codes.size());
          CHECK(found == expected);
        }
      }
    }
  }
}

TEST_CASE("codes are counted the same in any pieces, without their sign but that of -0", "[code_survey]") {
  for (const DType type : few_codes) {
    const std::size_t width = bytes_per_element(type);
    const std::vector<std::uint32_t> codes = all_codes_and(77'777);
    const std::vector<std::byte> bytes = stored(codes, type);
    const std::size_t negative_zero = width == 1 ? 0x80 : 0x8000;
    std::vector<std::int64_t> expected(negative_zero + 1);
    for (const std::uint32_t word : codes) {
      const std::size_t code = word % (2 * negative_zero);
      ++expected[code == negative_zero ? code : code % negative_zero];
    }
    CodeCounts pieces(width), rest(width);
    std::size_t done = 0, piece = 1;
    while (done < codes.size()) {
      const std::size_t count = std::min(piece, codes.size() - done);
      (done < 100'000 ? pieces : rest).add(std::span(bytes).subspan(done * width, count * width));
      if (piece % 5 == 0) pieces.settle();
      done += count;
      piece = piece * 3 % 16'381 + 1;
    }
    pieces.merge(rest);  // which has not settled
    pieces.settle();
    INFO(name_of(type));
    CHECK(std::ranges::equal(pieces.totals(), expected));
  }
}

}  // namespace
}  // namespace halfscope::code_summary_test
