// Counts of blocks beside their definition, element by element, on every instruction set.
#include <halfscope/stats/detail/block_counter.hpp>

#include <halfscope/arithmetic/normal.hpp>
#include <halfscope/core/isa.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/kernel/block/detail/block_element.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"

namespace halfscope::block_counter_test {
namespace {

/// Sums of squares of a segment in sixteen lanes, then over the lanes.
struct SegmentSquares {
  std::array<double, 16> signal{}, error{};

  void add(std::size_t column, double x, double difference) {
    signal[column % 16] += x * x;
    error[column % 16] += difference * difference;
  }
  void finish(BlockCounts& counts) {
    double signals = 0, errors = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      signals += signal[i];
      errors += error[i];
    }
    counts.signal.add(signals);
    counts.error.add(errors);
    *this = {};
  }
};

/// One element at a time, as the counters are defined.
class DefinedCounts {
 public:
  DefinedCounts(std::span<const float> values, const MatrixShape& shape, const BlockFormat& format)
      : values_(values),
        shape_(shape),
        format_(format),
        amax_(detail::tensor_maximum(values, format)),
        tensor_(detail::tensor_factors(amax_, format)),
        element_(format, {}) {}

  [[nodiscard]] BlockCounts count() {
    const MatrixShape grid = block_grid(shape_, format_.block);
    scales_.clear();
    for (std::int64_t i = 0; i < grid.rows * grid.columns; ++i) {
      const detail::BlockRange range = detail::block_range(shape_, format_.block, i);
      scales_.push_back(detail::choose_scale(values_, range, format_, tensor_, amax_));
      add_block(range, scales_.back());
    }
    SegmentSquares squares;
    for (std::int64_t row = 0; row < shape_.rows; ++row) {
      for (std::int64_t column = 0; column < shape_.columns; ++column) {
        const std::int64_t block = row / format_.block.rows * grid.columns + column / format_.block.columns;
        add_element(values_[static_cast<std::size_t>(row * shape_.columns + column)],
                    scales_[static_cast<std::size_t>(block)], static_cast<std::size_t>(column), squares);
        if (column % counted_segment == counted_segment - 1 || column == shape_.columns - 1)
          squares.finish(counts_);
      }
    }
    return counts_;
  }

 private:
  [[nodiscard]] float largest() const {
    const float number = from_bits(format_.element.format.max_finite_bits());
    return format_.scale() == ScaleFormat::e8m0 ? number : number * (1 + 0x1p-21f);
  }
  [[nodiscard]] bool overflows(float magnitude) const {
    const double limit = overflow_limit(format_.element.format);
    return limit_overflows(format_.element.format) ? magnitude >= limit : magnitude > limit;
  }

  void add_block(const detail::BlockRange& range, const BlockScale& scale) {
    float amax = 0;
    bool is_zero = true, is_nonfinite = false;
    range.for_each([&](std::int64_t i) {
      const float x = values_[static_cast<std::size_t>(i)];
      is_zero = is_zero && x == 0;
      is_nonfinite = is_nonfinite || !std::isfinite(x);
      if (std::isfinite(x)) amax = std::max(amax, std::abs(x));
    });
    const bool has_scale = scale.value != 0 && std::isfinite(scale.value);
    const float at_scale =
        format_.rule->step == ScaleStep::multiply ? amax * scale.factor : amax / scale.factor;
    const bool clips = has_scale && amax > 0 && at_scale > largest(), beyond = clips && overflows(at_scale);
    const bool loses = scale.value == 0 ? amax > 0 || std::isnan(at_scale) : !has_scale;
    counts_.blocks += 1;
    counts_.zero_blocks += is_zero;
    counts_.nonfinite_blocks += is_nonfinite;
    counts_.clipped_blocks += clips;
    counts_.overflow_blocks += beyond;
    counts_.blocks_at_risk += beyond || is_nonfinite || loses;
    counts_.zero_scales += scale.value == 0;
    counts_.nan_scales += !std::isfinite(scale.value);
    constexpr std::array<std::pair<unsigned, unsigned>, 3> ends{{{0, 254}, {1, 126}, {1, 0x7F7FFFFF}}};
    const auto [least, most] = ends[static_cast<std::size_t>(format_.scale())];
    counts_.least_scales += scale.code == least;
    counts_.largest_scales += scale.code == most;
    counts_.scale_codes[format_.scale() == ScaleFormat::fp32 ? scale.code >> 23 & 0xFF : scale.code] += 1;
  }

  void add_element(float x, const BlockScale& scale, std::size_t column, SegmentSquares& squares) {
    const float at_scale = element_.scaled(x, scale), number = element_(x, scale, 0);
    const float value = detail::element_value(number, scale.value, tensor_, format_);
    const bool is_finite = std::isfinite(x), counts = is_finite && x != 0;
    const bool has_scale = counts && scale.value != 0 && std::isfinite(scale.value);
    const float normal = static_cast<float>(power_of_two(format_.element.format.min_exponent()));
    counts_.elements += 1;
    counts_.zeros += x == 0;
    counts_.nonfinite += !is_finite;
    counts_.lost += is_finite && !std::isfinite(value);
    counts_.flushed += counts && value == 0;
    counts_.flushed_by_scale += counts && scale.value == 0;
    counts_.subnormal += has_scale && std::abs(number) < normal && value != 0;
    counts_.clipped += has_scale && std::abs(at_scale) > largest();
    counts_.overflow += has_scale && overflows(std::abs(at_scale));
    if (is_finite && std::isfinite(value)) squares.add(column % counted_segment, x, x - value);
    if (!has_scale || at_scale == 0 || !std::isfinite(at_scale)) return;
    ++counts_.exponents[static_cast<std::size_t>(std::ilogb(at_scale) - BlockCounts::first_exponent)];
  }

  std::span<const float> values_;
  MatrixShape shape_;
  const BlockFormat& format_;
  float amax_;
  TensorFactors tensor_;
  detail::ElementRounding element_;
  std::vector<BlockScale> scales_{};
  BlockCounts counts_{};
};

/// How the numbers of a matrix are spread.
enum class Numbers { normal, wide, tiny, with_specials };

std::vector<float> numbers(std::size_t count, Numbers kind) {
  constexpr std::array specials{0.0f, -0.0f, INFINITY, NAN, 1e-40f, -1e-42f, 3.4e38f};
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto step = static_cast<int>(i * 7 % 53);
    const int exponent = kind == Numbers::normal ? 0 : kind == Numbers::tiny ? -120 - step % 30 : step - 26;
    values[i] = std::ldexp(normal_pair({.seed = 3}, i / 2)[i % 2], exponent);
    if (i % 64 < 16 && i % 5000 < 2000) values[i] *= i % 128 < 16 ? 0.0f : 1e-12f;
    if (kind == Numbers::with_specials && i % 397 == 5) values[i] = specials[i / 397 % specials.size()];
  }
  return values;
}

void check_counts(const BlockFormat& format, const MatrixShape& shape) {
  for (const Numbers kind : {Numbers::normal, Numbers::wide, Numbers::tiny, Numbers::with_specials}) {
    const std::vector<float> values = numbers(static_cast<std::size_t>(shape.rows * shape.columns), kind);
    const BlockCounts expected = DefinedCounts(values, shape, format).count();
    for (const Isa isa : available_isas()) {
      const ForcedIsa forced(isa);
      INFO(to_string(format) << ", " << shape.rows << " x " << shape.columns << ", numbers "
                             << static_cast<int>(kind) << ", " << name_of(isa));
      std::vector<float> rounded(values.size()), direct(values.size()), in_place = values;
      round_blocks(values, direct, shape, format);
      const BlockCounts counts = count_blocks(values, shape, format, {}, rounded);
      CHECK(std::ranges::equal(rounded, direct, same_bits));
      CHECK(count_blocks(in_place, shape, format, {}, in_place) == expected);
      CHECK(std::ranges::equal(in_place, direct, same_bits));
      CHECK(counts.flushed == expected.flushed);
      CHECK(counts.subnormal == expected.subnormal);
      CHECK(counts.clipped == expected.clipped);
      CHECK(counts.blocks_at_risk == expected.blocks_at_risk);
      CHECK(counts.exponents == expected.exponents);
      CHECK((counts.signal == expected.signal && counts.error == expected.error));
      CHECK(counts == expected);
    }
  }
}

TEST_CASE("counts of every format and rule are those of the elements one by one", "[block]") {
  for (const NamedBlockFormat& entry : block_formats) {
    for (const ScaleRule& rule : scale_rules) {
      if (rule.scale != entry.format.scale()) continue;
      BlockFormat format = entry.format;
      format.rule = &rule;
      for (const MatrixShape& shape : {MatrixShape{3, 31}, {17, 259}, {2, 2100}}) check_counts(format, shape);
    }
  }
}

TEST_CASE("counts are the same where blocks do not fit segments, or the elements' format is another",
          "[block]") {
  for (const char* name :
       {"block(fp8_e4m3, 1x1500, e8m0/rceil)", "block(fp4_e2m1, 32x1, e8m0/floor)",
        "block(fp6_e3m2, 3x7, fp32/te)", "block(fp8_e5m2, 2x48, e8m0/floor)",
        "block(e2m3, 1x16, fp32/deepseek)", "block(float8_e4m3fnuz, 1x32, e8m0/even)",
        "block(p3109_k8p4se, 4x64, e8m0/nearest)", "block(p3109_k6p1sf, 1x32, e8m0/floor)"}) {
    for (const MatrixShape& shape : {MatrixShape{5, 3100}, {65, 40}})
      check_counts(parse_block_format(name), shape);
  }
}

TEST_CASE("the counts of one part are those of many, however large it is", "[block]") {
  const std::int64_t rows = 1100;  // more groups than planes of bits hold
  const std::vector<float> values = numbers(static_cast<std::size_t>(rows * counted_segment), Numbers::wide);
  const BlockCounter counter(parse_block_format("mxfp8_e4m3"), 0, ScaledExponents::counted);
  BlockCounts all, merged;
  const CountedPart whole{.values = values, .shape = {rows, counted_segment}};
  counter.add(whole, all);
  for (std::int64_t row = 0; row < rows; row += 100) counter.add(whole.rows(row, 100), merged);
  CHECK(all == merged);
}

TEST_CASE("an empty matrix has no counts", "[block]") {
  CHECK(count_blocks({}, {0, 32}, parse_block_format("nvfp4")) == BlockCounts{});
}

TEST_CASE("a cast with one scale counts as one block of the whole", "[block]") {
  for (const char* name : {"fp8_e4m3", "fp8_e5m2", "fp4_e2m1", "fp16", "bf16", "float8_e4m3fnuz"}) {
    for (const Numbers kind : {Numbers::normal, Numbers::wide, Numbers::with_specials}) {
      const std::vector<float> values = numbers(3100, kind);
      const Quantizer quantizer = parse_quantizer(name);
      for (const float factor : {1.0f, 0x1p7f, 0x1p-9f}) {
        BlockCounts expected;
        SegmentSquares squares;
        const Quantizer saturating{quantizer.format, quantizer.rounding, Overflow::saturate};
        for (std::size_t i = 0; i < values.size(); ++i) {
          const float x = values[i], number = round(x * factor, saturating), value = number * (1 / factor);
          expected.zeros += x == 0;
          expected.flushed += std::isfinite(x) && x != 0 && value == 0;
          expected.clipped +=
              std::isfinite(x) && std::abs(x * factor) > from_bits(quantizer.format.max_finite_bits());
          if (std::isfinite(x) && std::isfinite(value)) squares.add(i % 1024, x, x - value);
          if (i % 1024 == 1023 || i + 1 == values.size()) squares.finish(expected);
        }
        for (const Isa isa : available_isas()) {
          const ForcedIsa forced(isa);
          INFO(name << ", numbers " << static_cast<int>(kind) << ", factor " << factor << ", "
                    << name_of(isa));
          const BlockCounts counts = count_scaled(values, quantizer, factor);
          CHECK(counts.zeros == expected.zeros);
          CHECK(counts.flushed == expected.flushed);
          CHECK(counts.clipped == expected.clipped);
          CHECK((counts.signal == expected.signal && counts.error == expected.error));
        }
      }
    }
  }
}

}  // namespace
}  // namespace halfscope::block_counter_test
