// Rounds, counts and squares the elements of ordinary rows, compiled once per instruction set.
#include <halfscope/kernel/block/detail/ordinary_simd.hpp>

#include <bit>
#include <utility>

#include <halfscope/kernel/block/detail/binade_lanes.hpp>
#include <halfscope/kernel/block/detail/lane_sums.hpp>
#include <halfscope/kernel/block/detail/ordinary_lanes.hpp>

// Nothing here may be emitted out of line under a name that other translation units share.
namespace halfscope {
namespace {

struct OrdinarySums {
  SquareLanes signal, error;
  LaneCounts zeros, zero_values, below_normal, clipped;
  Words least = ~Words{};  ///< magnitudes at the scale; with planes alone, which leave zeros out
};

/// Sixteen columns of a row, and the place of their values, or null.
struct OrdinaryStep {
  const float* x;
  const BlockScale& scale;
  float* values;
};
/// Numbers for all elements of a row.
struct RowConstants {
  float tensor_scale, normal, largest;
  bool counts_clipped, counts_numbers;
};
/// The steps that planes add at a time.
constexpr std::size_t group_columns = BinadePlanes::group * ordinary_step;

/// Counts of the group's step with that number.
template <bool has_tensor_scale, std::size_t number_of_step, typename Lanes>
HALFSCOPE_HD void count_step(const OrdinaryStep& step, const Lanes& element, const RowConstants& shared,
                             BinadeLanes* binades, OrdinarySums& sums) {
  const FloatVec factor = all_lanes(step.scale.factor), unit = all_lanes(step.scale.value);
  const FloatVec tensor = all_lanes(shared.tensor_scale), normal = all_lanes(shared.normal);
  for (std::size_t i = 0; i < ordinary_step; i += lanes) {
    const FloatVec number = load(step.x + i), exact = element.scaled(number, factor);
    const Ints magnitude = magnitude_of(exact), rounded = element.rounded(magnitude);
    const FloatVec at_unit = as_floats(rounded | (as_ints(exact) & all_lanes(sign_bit))) * unit;
    const FloatVec value = has_tensor_scale ? at_unit * tensor : at_unit;
    if (step.values != nullptr) store(step.values + i, value);
    if (binades != nullptr) {
      binades->template add<number_of_step>(i / lanes, magnitude);
      sums.least = as_words(magnitude) < sums.least ? as_words(magnitude) : sums.least;
    } else if (shared.counts_numbers) {
      sums.zeros.add(is_zero(number));
    }
    if (shared.counts_clipped) sums.clipped.add(is_less(as_ints(all_lanes(shared.largest)), magnitude));
    sums.zero_values.add(is_zero(value));
    sums.below_normal.add(is_less(rounded, as_ints(normal)));
    if (shared.counts_numbers) sums.signal.add(i, step.x + i);
    sums.error.add(i, number - value);
  }
}

/// The scales of a row's steps, one after the other; the last one is that of all steps beyond the row.
class StepScales {
 public:
  HALFSCOPE_HD explicit StepScales(const OrdinaryRow& row)
      : scale_(row.scales.data()),
        last_(row.scales.data() + row.scales.size() - 1),
        of_block_(row.columns / ordinary_step),
        left_(of_block_) {}
  HALFSCOPE_HD const BlockScale& next() {
    const BlockScale& scale = *scale_;
    if (--left_ == 0) {
      left_ = of_block_;
      scale_ = scale_ < last_ ? scale_ + 1 : last_;
    }
    return scale;
  }

 private:
  const BlockScale *scale_, *last_;
  std::size_t of_block_, left_;
};

/// Zeros of a row, and whether other elements at their scale are below a magnitude.
template <typename Lanes>
HALFSCOPE_HD void find_small(const OrdinaryRow& row, const Lanes& element, std::uint32_t magnitude,
                             OrdinaryCounts& counts) {
  LaneCounts zeros;
  LeastMagnitude least;
  std::int64_t beyond = 0;
  for_each_ordinary_step(
      row, [&](const float* x, std::size_t /*column*/, std::size_t count, const BlockScale& scale)
               __attribute__((always_inline)) {
                 for (std::size_t i = 0; i < ordinary_step; i += lanes) {
                   zeros.add(is_zero(load(x + i)));
                   least.add(magnitude_of(element.scaled(load(x + i), all_lanes(scale.factor))));
                 }
                 beyond += static_cast<std::int64_t>(ordinary_step - count);
               });
  counts.zeros = zeros.sum() - beyond;
  counts.is_below_planes = least.is_below(magnitude);
}

/// The last columns are copied and followed by zeros.
template <bool has_tensor_scale, typename Lanes>
HALFSCOPE_HD OrdinaryCounts count_row(const OrdinaryRow& row, const RowConstants& shared,
                                      const Lanes& element, float* values, BinadeLanes* binades) {
  OrdinarySums sums;
  StepScales scales(row);
  const std::size_t size = row.values.size();
  std::int64_t beyond = 0;
  alignas(64) float last[group_columns], last_values[group_columns];
  for (std::size_t column = 0; column < size; column += group_columns) {
    const std::size_t left = size - column;
    const float* x = row.values.data() + column;
    float* to = values == nullptr ? nullptr : values + column;
    if (left < group_columns) {
      std::memset(last, 0, sizeof last);
      std::memcpy(last, x, left * sizeof(float));
      x = last;
      to = last_values;
      beyond = static_cast<std::int64_t>(group_columns - left);
    }
    [&]<std::size_t... step>(std::index_sequence<step...> /*steps*/) __attribute__((always_inline)) {
      (count_step<has_tensor_scale, step>(
           {x + step * ordinary_step, scales.next(), to == nullptr ? nullptr : to + step * ordinary_step},
           element, shared, binades, sums),
       ...);
    }
    (std::make_index_sequence<BinadePlanes::group>{});
    if (binades != nullptr) binades->end_group();
    if (to == last_values && values != nullptr)
      std::memcpy(values + column, last_values, left * sizeof(float));
  }
  const std::int64_t zero_values = sums.zero_values.sum();
  OrdinaryCounts counts{.zeros = sums.zeros.sum() - beyond,
                        .zero_values = zero_values - beyond,
                        .subnormal = sums.below_normal.sum() - zero_values,
                        .clipped = sums.clipped.sum(),
                        .signal = sums.signal.sum(),
                        .error = sums.error.sum()};
  if (binades == nullptr) return counts;
  binades->finish();
  counts.zeros = 0;
  if (least_lane(sums.least) < binades->first_magnitude())
    find_small(row, element, binades->first_magnitude(), counts);
  return counts;
}

template <bool has_tensor_scale, typename Lanes>
HALFSCOPE_HD OrdinaryCounts count_row(const OrdinaryRow& row, const RowConstants& shared,
                                      const Lanes& element, const OrdinaryOutput& out) {
  if (out.planes == nullptr) return count_row<has_tensor_scale>(row, shared, element, out.values, nullptr);
  BinadeLanes binades(*out.planes);
  return count_row<has_tensor_scale>(row, shared, element, out.values, &binades);
}

}  // namespace

template <>
OrdinaryCounts count_ordinary_isa<target_isa>(const OrdinaryRow& row, const SegmentRounding& rounding,
                                              float normal, const OrdinaryOutput& out) {
  const bool counts_clipped = out.largest != nullptr;
  const RowConstants shared{rounding.tensor_scale, normal, counts_clipped ? *out.largest : 0, counts_clipped,
                            out.numbers == nullptr};
  OrdinaryCounts counts;
  with_ordinary_lanes(rounding, [&](const auto& element) {
    counts = rounding.tensor_scale == 1 ? count_row<false>(row, shared, element, out)
                                        : count_row<true>(row, shared, element, out);
  });
  if (out.numbers != nullptr) {
    counts.zeros = out.numbers->zeros;
    counts.signal = out.numbers->signal;
  }
  return counts;
}

template <>
NumberCounts count_numbers_isa<target_isa>(const float* values, std::size_t count) {
  SquareLanes signal;
  LaneCounts zeros;
  const auto add = [&](const float* x) __attribute__((always_inline)) {
    for (std::size_t i = 0; i < ordinary_step; i += lanes) {
      zeros.add(is_zero(load(x + i)));
      signal.add(i, x + i);
    }
  };
  const std::size_t whole = count / ordinary_step * ordinary_step;
  for (std::size_t i = 0; i < whole; i += ordinary_step) add(values + i);
  if (whole == count) return {zeros.sum(), signal.sum()};
  alignas(64) float last[ordinary_step] = {};
  std::memcpy(last, values + whole, (count - whole) * sizeof(float));
  add(last);
  return {zeros.sum() - static_cast<std::int64_t>(whole + ordinary_step - count), signal.sum()};
}

template <>
std::int64_t count_from_isa<target_isa>(const OrdinaryRow& row, ScaleStep step, float magnitude) {
  const Ints limit = as_ints(all_lanes(magnitude));
  const bool multiplies = step == ScaleStep::multiply;
  LaneCounts below;
  std::int64_t all = 0;
  for_each_ordinary_step(
      row, [&](const float* x, std::size_t /*column*/, std::size_t /*count*/,
               const BlockScale& scale) __attribute__((always_inline)) {
        const FloatVec factor = all_lanes(scale.factor);
        for (std::size_t i = 0; i < ordinary_step; i += lanes) {
          const FloatVec number = load(x + i), exact = multiplies ? number * factor : number / factor;
          below.add(is_less(magnitude_of(exact), limit));
        }
        all += ordinary_step;
      });
  return all - below.sum();
}

template <>
void add_planes_isa<target_isa>(const BinadePlanes& planes, std::int64_t* counts) {
  constexpr std::size_t low = BinadePlanes::group_levels, high = BinadePlanes::carry_level;
  constexpr auto group = static_cast<std::uint32_t>(BinadePlanes::group);
  const std::uint32_t eights = planes.groups / group, rest = planes.groups % group;
  const auto levels = high + static_cast<std::size_t>(std::bit_width(eights));
  for (std::size_t binade = 0; binade < BinadePlanes::binades; ++binade) {
    const std::size_t word = binade / BinadePlanes::binades_per_word;
    const auto bit = static_cast<int>(binade % BinadePlanes::binades_per_word);
    Ints sums{};
    for (std::size_t lane = 0; lane < BinadePlanes::lanes; lane += lanes) {
      const auto bits = [&](const BinadePlanes::Plane& plane) {
        return as_ints(as_words(load_bits(plane[word].data() + lane)) >> bit) & 1;
      };
      Ints sum{};
      for (std::size_t level = levels; level-- > 0;) {
        sum = sum + sum + bits(planes.sums[level]);
        if (level >= high && (eights >> (level - high) & 1u) != 0)
          sum = sum + bits(planes.waiting[level - high]);
        for (std::size_t i = 0; level == low && i < rest; ++i) sum = sum + bits(planes.carried[i]);
      }
      sums = sums + sum;
    }
    for (std::size_t i = 0; i < lanes; ++i) counts[binade] += sums[i];
  }
}

}  // namespace halfscope
