// Scales from tables beside the rules that they are made of, and largest magnitudes beside a search.
#include <halfscope/kernel/block/detail/block_scaler.hpp>

#include <halfscope/core/isa.hpp>
#include <halfscope/core/random.hpp>
#include <halfscope/kernel/block/detail/block_element.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"

namespace halfscope::block_scaler_test {
namespace {

bool same_scale(const BlockScale& a, const BlockScale& b) {
  return a.code == b.code && same_bits(a.value, b.value) &&
         same_bits(with_one_nan(a.factor), with_one_nan(b.factor));
}

/// Bits of magnitudes from zero to a NaN: around each power of two and each sixteenth between them, and
/// between those at random.
std::vector<BlockMaxima> magnitudes() {
  constexpr std::uint32_t stride = 1u << 19;
  const RandomStream stream{.seed = 9};
  std::vector<BlockMaxima> all;
  const auto add = [&](std::uint32_t bits) { all.push_back({std::min(bits, infinity_bits), bits}); };
  for (std::uint32_t bits = 0; bits < quiet_nan_bits; bits += stride) {
    for (std::uint32_t near = 0; near < 4; ++near) {
      add(bits + near);
      if (bits > near) add(bits - near);
    }
    for (int i = 0; i < 8; ++i)
      add(bits + static_cast<std::uint32_t>(stream.uniform(all.size()) * static_cast<float>(stride)));
  }
  return all;
}

std::size_t wrong_scales(const BlockFormat& format, const TensorFactors& tensor,
                         std::span<const BlockMaxima> maxima) {
  std::vector<BlockScale> scales(maxima.size());
  detail::BlockScaler(format, tensor).scale(maxima, scales);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < maxima.size(); ++i) {
    const BlockScales expected = format.rule->scales({.amax = from_bits(maxima[i].number),
                                                      .has_nan = maxima[i].any > infinity_bits,
                                                      .element = format.element.format,
                                                      .tensor = tensor});
    wrong += same_scale(scales[i], expected.first) ? 0u : 1u;
  }
  return wrong;
}

TEST_CASE("scales from tables are those of the rules", "[block]") {
  const std::vector<BlockMaxima> maxima = magnitudes();
  for (const ScaleRule& rule : scale_rules) {
    if (rule.choice != ScaleChoice::single || rule.scale == ScaleFormat::ue4m3) continue;
    for (const char* element :
         {"fp8_e4m3", "fp8_e5m2", "fp6_e3m2", "fp6_e2m3", "fp4_e2m1", "float8_e4m3fnuz", "float8_e3m4",
          "e2m5", "e6m1", "p3109_k8p2se", "p3109_k6p5sf", "p3109_k6p1sf"}) {
      BlockFormat format{.element = parse_quantizer(element)};
      format.rule = &rule;
      INFO(to_string(format));
      CHECK(wrong_scales(format, {}, maxima) == 0);
    }
  }
}

TEST_CASE("NVFP4's scales by quotient and code are those of the rules, in any tensor", "[block]") {
  const std::vector<BlockMaxima> maxima = magnitudes();
  for (const ScaleRule& rule : scale_rules) {
    if (rule.scale != ScaleFormat::ue4m3 || rule.choice != ScaleChoice::single) continue;
    BlockFormat format = parse_block_format("nvfp4");
    format.rule = &rule;
    for (const float amax : {0.0f, 1e-45f, 3e-39f, 1e-30f, 0.7f, 1.0f, 2688.0f, 1e20f, 3.4e38f, INFINITY}) {
      INFO(to_string(format) << ", tensor's largest " << amax);
      CHECK(wrong_scales(format, rule.tensor(amax), maxima) == 0);
    }
  }
}

TEST_CASE("largest magnitudes of bands are those of a search, on every instruction set", "[block]") {
  constexpr std::array specials{INFINITY, -INFINITY, NAN, -NAN, -0.0f, 1e-42f, -3e38f};
  const RandomStream stream{.seed = 4};
  for (const MatrixShape& shape :
       {MatrixShape{1, 1}, {1, 16}, {1, 37}, {1, 1030}, {3, 48}, {16, 1024}, {5, 1500}}) {
    for (const std::int64_t columns : {1, 7, 16, 32, 100, 128, 2000}) {
      for (const std::size_t every : {std::size_t{1000000}, std::size_t{97}, std::size_t{1}}) {
        std::vector<float> values(static_cast<std::size_t>(shape.rows * shape.columns));
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = stream.uniform(i) - 0.5f;
          if (i % every == every - 1) values[i] = specials[i / every % specials.size()];
        }
        const BlockShape block{static_cast<int>(shape.rows), static_cast<int>(columns)};
        std::vector<BlockMaxima> expected;
        for (std::int64_t i = 0; i < block_grid(shape, block).columns; ++i) {
          BlockMaxima& maxima = expected.emplace_back();
          detail::block_range(shape, block, i).for_each([&](std::int64_t at) {
            const std::uint32_t bits = magnitude_bits(values[static_cast<std::size_t>(at)]);
            maxima.any = std::max(maxima.any, bits);
            if (bits <= infinity_bits) maxima.number = std::max(maxima.number, bits);
          });
        }
        for (const Isa isa : available_isas()) {
          const ForcedIsa forced(isa);
          std::vector<BlockMaxima> maxima(expected.size(), {7, 7});
          find_maxima({values.data(), shape.rows, shape.columns, shape.columns, columns}, maxima);
          INFO(shape.rows << " x " << shape.columns << " in " << columns << ", " << name_of(isa));
          CHECK(maxima == expected);
        }
      }
    }
  }
}

}  // namespace
}  // namespace halfscope::block_scaler_test
