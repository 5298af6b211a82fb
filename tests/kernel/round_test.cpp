// Array rounding on every instruction set gives the bits of the scalar rounding.
#include <halfscope/kernel/round.hpp>

#include <halfscope/format/round.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope {
namespace {

const RandomStream stream{.seed = 0x123456789ABCDEF, .step = 17, .site = 4};

/// Random bits and boundaries, mixed so that every position in a vector meets all kinds.
std::vector<float> mixed(const FloatFormat& format, std::size_t count) {
  const std::vector<float> boundaries = boundary_floats(format);
  std::vector<float> values = random_floats(count, 3);
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 3 != 0) values[i] = boundaries[(i * 7) % boundaries.size()];
  }
  return values;
}

void check_same(const Quantizer& q, std::span<const float> in, std::span<const float> out) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    const float expected = round(in[i], q, stream.bits(i));
    if (same_bits(out[i], expected)) continue;
    FAIL_CHECK(to_string(q) << " of " << describe(in[i]) << " at " << i << " of " << in.size() << " is "
                            << describe(out[i]) << ", not " << describe(expected));
    return;
  }
}

TEST_CASE("arrays round as scalars do", "[kernel][round]") {
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    INFO(name_of(isa));
    for (const FloatFormat& format : formats_under_test()) {
      for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{31}, std::size_t{3001}}) {
        const std::vector<float> in = mixed(format, size);
        for (const Quantizer& q : quantizers_of(format)) {
          std::vector<float> out(size);
          round(in, out, q, stream);
          check_same(q, in, out);
        }
      }
    }
  }
}

TEST_CASE("large odd-sized arrays round as scalars do, in place and unaligned", "[kernel][round]") {
  const std::size_t size = 257 * 259;
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    INFO(name_of(isa));
    for (const char* name :
         {"fp16", "bf16", "fp8_e4m3", "fp16/saturate", "fp32", "fp16/stochastic", "fp16/up"}) {
      const Quantizer q = parse_quantizer(name);
      const std::vector<float> in = mixed(q.format, size);
      std::vector<float> out(size + 2, 42.0f);
      std::copy(in.begin(), in.end(), out.begin() + 1);
      const std::span<float> unaligned = std::span(out).subspan(1, size);
      round(unaligned, unaligned, q, stream);
      check_same(q, in, unaligned);
      CHECK((out.front() == 42 && out.back() == 42));
    }
  }
}

TEST_CASE("every instruction set draws the same random bits", "[kernel][round]") {
  const Quantizer q{bf16, Rounding::stochastic};
  const std::vector<float> in(1000, 1.0f + 0x1p-8f);
  std::vector<float> first(in.size());
  {
    const ForcedIsa forced(Isa::baseline);
    round(in, first, q, stream);
  }
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    std::vector<float> out(in.size());
    round(in, out, q, stream);
    CHECK(out == first);
  }
  CHECK(std::count(first.begin(), first.end(), 1.0f) > 400);
  CHECK(std::count(first.begin(), first.end(), 1.0f) < 600);
}

TEST_CASE("sizes that differ are refused", "[kernel][round]") {
  const std::vector<float> in(3);
  std::vector<float> out(4);
  check_says(message_of<RequestError>([&] { round(in, out, {fp16}); }), {"3", "4"});
}

}  // namespace
}  // namespace halfscope
