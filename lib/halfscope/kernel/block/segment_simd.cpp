// Values and codes of elements at the scales of their blocks, compiled once per instruction set.
#include <halfscope/kernel/block/detail/segment_simd.hpp>

#include <halfscope/format/encoding.hpp>
#include <halfscope/kernel/block/detail/ordinary_lanes.hpp>
#include <halfscope/kernel/cast/detail/round_lanes.hpp>
#include <halfscope/kernel/detail/vector.hpp>

// Nothing here may be emitted out of line under a name that other translation units share.
namespace halfscope {
namespace {

/// Elements that are read at a time, whatever the instruction set.
constexpr std::size_t step_columns = 16;

/// Elements of a vector at their scale.
template <RoundWay way, ScaleStep step, ZeroSign zero>
struct ElementsAtScale {
  RoundingGrid grid;
  float nan;
  HALFSCOPE_HD FloatVec operator()(FloatVec x, FloatVec factor) const {
    FloatVec scaled = step == ScaleStep::multiply ? x * factor : x / factor;
    if constexpr (zero == ZeroSign::dropped) scaled = scaled == 0.0f ? FloatVec{} : scaled;
    const FloatVec element = round_lanes_by<way>(scaled, grid);
    return element == element ? element : all_lanes(nan);
  }
};

template <RoundWay way, typename Body>
void with_way(const SegmentRounding& rounding, const Body& body) {
  constexpr auto multiply = ScaleStep::multiply, divide = ScaleStep::divide;
  constexpr auto kept = ZeroSign::kept, dropped = ZeroSign::dropped;
  const bool keeps = rounding.zero == kept;
  if (rounding.step == multiply) {
    if (keeps) return body(ElementsAtScale<way, multiply, kept>{rounding.grid, rounding.nan});
    return body(ElementsAtScale<way, multiply, dropped>{rounding.grid, rounding.nan});
  }
  if (keeps) return body(ElementsAtScale<way, divide, kept>{rounding.grid, rounding.nan});
  body(ElementsAtScale<way, divide, dropped>{rounding.grid, rounding.nan});
}

/// Calls body(element) with the function that makes elements of values and factors.
template <typename Body>
void with_elements(const Segment& segment, const SegmentRounding& rounding, const Body& body) {
  if (segment.is_ordinary && rounding.takes_ordinary) return with_ordinary_lanes(rounding, body);
  switch (round_way(rounding.grid)) {
    case RoundWay::by_adding:
      return with_way<RoundWay::by_adding>(rounding, body);
    case RoundWay::by_carrying:
      return with_way<RoundWay::by_carrying>(rounding, body);
    case RoundWay::by_element:
      break;
  }
  with_way<RoundWay::by_element>(rounding, body);
}

/// Calls step(values, column, count) for every 16 columns; the last ones, if fewer, are copied and followed
/// by zeros.
template <typename Step>
HALFSCOPE_HD void for_each_step(const Segment& segment, const Step& step) {
  std::size_t column = 0;
  for (; column + step_columns <= segment.count; column += step_columns)
    step(segment.values + column, column, step_columns);
  if (column == segment.count) return;
  alignas(64) float rest[step_columns] = {};
  std::memcpy(rest, segment.values + column, (segment.count - column) * sizeof(float));
  step(rest, column, segment.count - column);
}

/// The codes of elements that are numbers of the format, or NaN where it has one.
struct CodeLanes {
  explicit CodeLanes(const SegmentRounding& rounding)
      : least_normal(rounding.grid.min_normal_field << 23),
        place((rounding.grid.min_normal_field + rounding.grid.dropped_bits) << 23),
        dropped(static_cast<int>(rounding.grid.dropped_bits)),
        bias(((rounding.grid.min_normal_field - 1) << 23) >> rounding.grid.dropped_bits),
        sign_shift(32 - code_width(rounding.element)),
        nan(detail::nan_code(rounding.element)) {}

  HALFSCOPE_HD Ints operator()(FloatVec element) const {
    const Ints magnitude = magnitude_of(element), sign = as_ints(element) & all_lanes(sign_bit);
    const FloatVec step = as_floats(all_lanes(place));
    const Ints subnormal = as_ints(as_floats(magnitude) + step) - all_lanes(place);
    const Ints normal = (magnitude >> dropped) - all_lanes(bias);
    const Ints number = magnitude < all_lanes(least_normal) ? subnormal : normal;
    const Ints code = number | as_ints(as_words(sign) >> sign_shift);
    return element == element ? code : all_lanes(nan);
  }

  std::uint32_t least_normal, place;
  int dropped;
  std::uint32_t bias;
  int sign_shift;
  std::uint32_t nan;
};

/// A number in columns `first` to `end`, whole steps of them by vectors.
HALFSCOPE_HD void fill(float* to, std::size_t first, std::size_t end, float number) {
  std::size_t i = first;
  for (; i + step_columns <= end; i += step_columns) {
    for (std::size_t part = 0; part < step_columns; part += lanes) store(to + i + part, all_lanes(number));
  }
  for (; i < end; ++i) to[i] = number;
}

using Bytes [[gnu::vector_size(lanes)]] = std::uint8_t;

}  // namespace

template <>
void spread_isa<target_isa>(const BlockScale* blocks, const SegmentPlace& place, SegmentScales& to) {
  for (std::size_t at = 0; at < place.count;) {
    const std::size_t block = (place.column + at) / place.columns;
    const std::size_t block_end = (block + 1) * place.columns - place.column;
    const std::size_t end = block_end < place.count ? block_end : place.count;
    fill(to.factors.data(), at, end, blocks[block].factor);
    fill(to.values.data(), at, end, blocks[block].value);
    at = end;
  }
  const std::size_t whole = (place.count + step_columns - 1) / step_columns * step_columns;
  fill(to.factors.data(), place.count, whole, 1.0f);
  fill(to.values.data(), place.count, whole, 1.0f);
}

template <>
void write_values_isa<target_isa>(const Segment& segment, const SegmentRounding& rounding, float* out) {
  const FloatVec tensor = all_lanes(rounding.tensor_scale);
  with_elements(segment, rounding, [&](auto element) {
    for_each_step(segment, [&](const float* x, std::size_t column, std::size_t count) {
      alignas(64) float values[step_columns];
      for (std::size_t i = 0; i < step_columns; i += lanes) {
        const FloatVec number = element(load(x + i), load(segment.factors + column + i));
        store(values + i, with_one_nan(number * load(segment.scales + column + i) * tensor));
      }
      std::memcpy(out + column, values, count * sizeof(float));
    });
  });
}

template <>
void write_codes_isa<target_isa>(const Segment& segment, const SegmentRounding& rounding,
                                 std::uint8_t* codes) {
  const CodeLanes code(rounding);
  with_elements(segment, rounding, [&](auto element) {
    for_each_step(segment, [&](const float* x, std::size_t column, std::size_t count) {
      std::uint8_t bytes[step_columns];
      for (std::size_t i = 0; i < step_columns; i += lanes) {
        const FloatVec number = element(load(x + i), load(segment.factors + column + i));
        const Bytes some = __builtin_convertvector(as_words(code(number)), Bytes);
        std::memcpy(bytes + i, &some, sizeof some);
      }
      std::memcpy(codes + column, bytes, count);
    });
  });
}

template <>
void ordinary_values_isa<target_isa>(const OrdinaryRow& row, const SegmentRounding& rounding, float* out) {
  const auto write = [&]<bool has_tensor_scale>(auto element) __attribute__((always_inline)) {
    const FloatVec tensor = all_lanes(rounding.tensor_scale);
    for_each_ordinary_step(
        row, [&](const float* x, std::size_t column, std::size_t count, const BlockScale& scale)
                 __attribute__((always_inline)) {
                   alignas(64) float values[step_columns];
                   float* const to = count == step_columns ? out + column : values;
                   const FloatVec factor = all_lanes(scale.factor), unit = all_lanes(scale.value);
                   for (std::size_t i = 0; i < step_columns; i += lanes) {
                     const FloatVec number = element(load(x + i), factor) * unit;
                     store(to + i, has_tensor_scale ? number * tensor : number);
                   }
                   if (count < step_columns) std::memcpy(out + column, values, count * sizeof(float));
                 });
  };
  with_ordinary_lanes(rounding, [&](auto element) {
    rounding.tensor_scale == 1 ? write.template operator()<false>(element)
                               : write.template operator()<true>(element);
  });
}

template <>
void ordinary_codes_isa<target_isa>(const OrdinaryRow& row, const SegmentRounding& rounding,
                                    std::uint8_t* codes) {
  const CodeLanes code(rounding);
  with_ordinary_lanes(rounding, [&](auto element) {
    for_each_ordinary_step(
        row, [&](const float* x, std::size_t column, std::size_t count,
                 const BlockScale& scale) __attribute__((always_inline)) {
          std::uint8_t bytes[step_columns];
          const FloatVec factor = all_lanes(scale.factor);
          for (std::size_t i = 0; i < step_columns; i += lanes) {
            const Bytes some = __builtin_convertvector(as_words(code(element(load(x + i), factor))), Bytes);
            std::memcpy(bytes + i, &some, sizeof some);
          }
          std::memcpy(codes + column, bytes, count);
        });
  });
}

template <>
void nearest_ue4m3_isa<target_isa>(const float* numbers, std::size_t count, std::uint32_t* codes) {
  constexpr float place = 0x1p14f;  // whose last bit is the smallest number
  constexpr std::uint32_t dropped = 20, below_half = (1u << (dropped - 1)) - 1, bias = 120u << 3, nan = 0x7F;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const float x = numbers[i];
    const std::uint32_t bits = to_bits(x), subnormal = to_bits(x + place) - to_bits(place);
    const std::uint32_t normal = ((bits + below_half + ((bits >> dropped) & 1u)) >> dropped) - bias;
    const std::uint32_t code = x < 0x1p-6f ? subnormal : normal;
    codes[i] = bits > infinity_bits ? nan : code;
  }
}

}  // namespace halfscope
