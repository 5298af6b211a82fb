// Block-scaled products, compiled once per instruction set: four rows of a by a vector of b's at a time.
#include <halfscope/kernel/gemm/detail/gemm_blocks_simd.hpp>

#include <halfscope/kernel/detail/scratch.hpp>
#include <halfscope/kernel/gemm/detail/grouped_sums.hpp>
#include <halfscope/kernel/gemm/detail/single_sums.hpp>

// Nothing here may be emitted out of line under a name that other translation units share.
namespace halfscope {
namespace {

template <typename T>
void take_rows(const T* from, const Panel& panel, std::size_t length, T* to) {
  for (std::size_t i = 0; i < lanes; ++i) {
    const T* const row = from + (panel.first + i) * length;
    for (std::size_t k = 0; k < length; ++k) to[k * lanes + i] = i < panel.count ? row[k] : T{};
  }
}

void take_panel(const BlockRows& b, const Panel& panel) {
  const std::size_t depth = depth_of(b), blocks = blocks_of(b);
  const RightMatrix columns{b.values.get() + panel.first * depth, static_cast<std::int64_t>(panel.count), 1,
                            b.depth};
  copy_panel<lanes>(columns, depth, panel.values);
  take_rows(b.scales.data(), panel, blocks, panel.scales);
  take_rows(b.exponents.data(), panel, blocks, panel.exponents);
  take_rows(b.nonzero.data(), panel, depth / 16, panel.nonzero);
}

/// Limits that the rows of a panel set, a lane each: exponents, and the sign where a row is not computed at
/// all.
struct PanelLimits {
  Ints least{}, largest{}, beyond{};
};
HALFSCOPE_HD std::int32_t is_beyond(const BlockRows& x, std::size_t row, const PairLimits& limits) {
  const bool is_wide = x.largest.data()[row] - x.least.data()[row] > limits.spread;
  return is_wide || x.special.data()[row] != 0 ? -1 : 0;
}
PanelLimits limits_of(const BlockRows& b, const Panel& panel, const PairLimits& limits) {
  PanelLimits all;
  for (std::size_t i = 0; i < panel.count; ++i) {
    const std::size_t row = panel.first + i;
    all.least[i] = b.least.data()[row];
    all.largest[i] = b.largest.data()[row];
    all.beyond[i] = is_beyond(b, row, limits);
  }
  return all;
}
/// All bits of the lanes whose products with a row of a are not computed.
HALFSCOPE_HD Ints beyond_limits(const BlockRows& a, std::size_t row, const PanelLimits& b,
                                const PairLimits& limits) {
  const Ints low = (b.least + a.least.data()[row]) - limits.lowest;
  const Ints high = limits.highest - (b.largest + a.largest.data()[row]);
  return b.beyond | is_beyond(a, row, limits) | low | high;
}

/// Panels of b side by side, so that a strip of a is read once for all of them.
class Panels {
 public:
  Panels(const BlockRows& b, const BlockColumns& columns)
      : first_(static_cast<std::size_t>(columns.first)),
        last_(static_cast<std::size_t>(columns.last)),
        depth_(depth_of(b)),
        blocks_(blocks_of(b)),
        padded_(rounded_up(depth_, depth_block)),
        values_(count() * depth_ * lanes),
        scales_(count() * blocks_ * lanes),
        exponents_(count() * blocks_ * lanes),
        nonzero_(count() * depth_ / 16 * lanes),
        words_(count() * padded_ / 4 * lanes) {}

  [[nodiscard]] std::size_t count() const { return (last_ - first_ + lanes - 1) / lanes; }
  [[nodiscard]] Panel panel(std::size_t i) const {
    const std::size_t first = first_ + i * lanes, at = i * lanes;
    return {first,
            smaller(lanes, last_ - first),
            values_.data() + at * depth_,
            scales_.data() + at * blocks_,
            exponents_.data() + at * blocks_,
            nonzero_.data() + at * (depth_ / 16),
            words_.data() + at * (padded_ / 4)};
  }

 private:
  std::size_t first_, last_, depth_, blocks_, padded_;
  Scratch<float> values_, scales_;
  Scratch<std::int32_t> exponents_;
  Scratch<std::uint32_t> nonzero_, words_;
};

template <typename Sums>
bool multiply_blocks(const BlockRows& a, const BlockRows& b, const BlockScaledUnit& unit,
                     const BlockColumns& columns, float* c) {
  const Sums kernel(a, b, unit);
  const Panels panels(b, columns);
  const Scratch<PanelLimits> limits(panels.count());
  for (std::size_t i = 0; i < panels.count(); ++i) {
    take_panel(b, panels.panel(i));
    kernel.pack(panels.panel(i));
    limits.data()[i] = limits_of(b, panels.panel(i), Sums::limits);
  }
  const auto rows = static_cast<std::size_t>(a.rows), width = static_cast<std::size_t>(b.rows);
  Ints any{};
  for (std::size_t row = 0; row < rows; row += strip_rows) {
    const StripRows strip{row, smaller(strip_rows, rows - row)};
    for (std::size_t n = 0; n < panels.count(); ++n) {
      const Panel panel = panels.panel(n);
      StripSums sums;
      kernel.add(strip, panel, sums);
      for (std::size_t i = 0; i < strip.count; ++i) {
        const Ints beyond =
            (sums.beyond[i] | beyond_limits(a, row + i, limits.data()[n], Sums::limits)) >> 31;
        any |= beyond;
        const FloatVec sum = as_floats(as_ints(sums.c[i]) | (beyond & all_lanes(quiet_nan_bits)));
        store_some(c + (row + i) * width + panel.first, sum, panel.count);
      }
    }
  }
  return any_negative(any);
}

using Bytes [[gnu::vector_size(lanes)]] = std::uint8_t;

HALFSCOPE_HD Ints load_codes(const std::uint8_t* from) {
  Bytes codes;
  std::memcpy(&codes, from, sizeof codes);
  return __builtin_convertvector(codes, Ints);
}
/// A bit for each lane, which none has below 0.
HALFSCOPE_HD std::uint32_t positive_lanes(Ints x) {
#if defined(__AVX512F__)
  const auto bits = reinterpret_cast<__m512i>(x);
  return _mm512_test_epi32_mask(bits, bits);
#elif defined(__AVX2__)
  return static_cast<std::uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(0 - x)));
#elif defined(__SSE2__)
  return static_cast<std::uint32_t>(_mm_movemask_ps(reinterpret_cast<__m128>(0 - x)));
#else
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < lanes; ++i) bits |= (x[i] > 0 ? 1u : 0u) << i;
  return bits;
#endif
}

/// The numbers of a format's codes.
struct ElementDecoder {
  explicit ElementDecoder(const FloatFormat& format)
      : mask(static_cast<std::int32_t>((1u << sign_place(format)) - 1)),
        least_normal(std::int32_t{1} << format.mantissa_bits),
        largest(static_cast<std::int32_t>(format.max_finite_bits())),
        fields((127 - format.bias()) * (1 << 23)),
        up(23 - format.mantissa_bits),
        sign_up(31 - static_cast<int>(sign_place(format))),
        smallest(from_bits(static_cast<std::uint32_t>(127 + format.min_exponent() - format.mantissa_bits)
                           << 23)) {}

  [[nodiscard]] static std::uint32_t sign_place(const FloatFormat& format) {
    return static_cast<std::uint32_t>(format.exponent_bits + format.mantissa_bits);
  }
  /// Lanes of `beyond` become negative where a number is infinite or NaN.
  HALFSCOPE_HD FloatVec number(Ints code, Ints magnitude, Ints& beyond) const {
    const FloatVec subnormal = __builtin_convertvector(magnitude, FloatVec) * smallest;
    const Ints normal = (magnitude << up) + fields;
    const Ints number = magnitude < least_normal ? as_ints(subnormal) : normal;
    beyond |= largest - number;
    const Words sign = as_words(code & ~mask) << sign_up;
    return as_floats(number | as_ints(sign));
  }

  std::int32_t mask, least_normal, largest, fields;
  int up, sign_up;
  float smallest;
};

}  // namespace

template <>
bool decode_elements_isa<target_isa>(const std::uint8_t* codes, std::size_t count, const FloatFormat& format,
                                     float* values, std::uint32_t* nonzero) {
  constexpr std::size_t group = 16;
  const ElementDecoder decode(format);
  Ints beyond{};
  for (std::size_t first = 0; first < count; first += group) {
    const std::size_t here = smaller(group, count - first);
    std::uint8_t some[group] = {};
    // A length that the compiler knows is one load.
    if (here == group)
      std::memcpy(some, codes + first, group);
    else
      std::memcpy(some, codes + first, here);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < group; i += lanes) {
      const Ints code = load_codes(some + i), magnitude = code & decode.mask;
      store(values + first + i, decode.number(code, magnitude, beyond));
      bits |= positive_lanes(magnitude) << i;
    }
    nonzero[first / group] = bits;
  }
  return any_negative(beyond);
}

template <>
bool gemm_blocks_isa<target_isa>(const BlockRows& a, const BlockRows& b, const BlockScaledUnit& unit,
                                 const BlockColumns& columns, float* c) {
  if (unit.group > 1) return multiply_blocks<GroupedSums>(a, b, unit, columns, c);
  return multiply_blocks<SingleSums>(a, b, unit, columns, c);
}

}  // namespace halfscope
