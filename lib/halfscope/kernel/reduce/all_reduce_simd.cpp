// The loops of an all-reduce, compiled once per instruction set.
#include <halfscope/kernel/reduce/detail/all_reduce_simd.hpp>

#include <halfscope/kernel/cast/detail/round_lanes.hpp>
#include <halfscope/kernel/detail/vector.hpp>

// Nothing here may be emitted out of line under a name that other translation units share: everything is in
// an unnamed namespace or always inlined.
namespace halfscope {
namespace {

HALFSCOPE_HD Ints is_finite(FloatVec x) {
  return magnitude_of(x) < all_lanes(infinity_bits);
}

/// True in the first `count` lanes.
HALFSCOPE_HD Ints first_lanes(std::int64_t count) {
  Ints numbers;
  for (std::size_t i = 0; i < lanes; ++i) numbers[i] = static_cast<std::int32_t>(i);
  return numbers < Ints{} + static_cast<std::int32_t>(count);
}

/// Lanes that were true, each -1.
std::int64_t number_true(Ints counts) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < lanes; ++i) sum -= counts[i];
  return sum;
}

using Halves [[gnu::vector_size(vector_bytes / 2)]] = std::uint16_t;

HALFSCOPE_HD Ints widen_halves(Halves x) {
  return __builtin_convertvector(x, Ints);
}
HALFSCOPE_HD Halves narrow_to_halves(Ints x) {
  return __builtin_convertvector(x, Halves);
}

/// Elements of the wire's formats, a vector at a time. `to` is a number of the format.
struct Fp16Elements {
  static constexpr std::size_t bytes = 2;
  HALFSCOPE_HD static FloatVec load_from(const std::byte* from) {
#if defined(__F16C__)
    return load_fp16(from);
#else
    Halves codes;
    std::memcpy(&codes, from, sizeof codes);
    const Ints code = widen_halves(codes), magnitude = (code & 0x7FFF) << 13, sign = (code & 0x8000) << 16;
    // Exponents differ by 112 in their bias; a multiplication takes subnormals along.
    const Ints finite = as_ints(as_floats(magnitude) * all_lanes(0x1p112f));
    const Ints special = magnitude | all_lanes(infinity_bits);
    return as_floats((magnitude < all_lanes(0x0F800000u) ? finite : special) | sign);
#endif
  }
  HALFSCOPE_HD static void store_to(std::byte* to, FloatVec x) {
    const Ints magnitude = magnitude_of(x), sign = (as_ints(x) >> 16) & 0x8000;
    const Ints normal = (magnitude - all_lanes(112u << 23)) >> 13;
    const Ints subnormal = as_ints(as_floats(magnitude) + all_lanes(0.5f)) - all_lanes(to_bits(0.5f));
    Ints code = magnitude < all_lanes(0x38800000u) ? subnormal : normal;
    code = magnitude >= all_lanes(infinity_bits) ? all_lanes(0x7C00u) : code;
    code = (magnitude > all_lanes(infinity_bits) ? all_lanes(0x7E00u) : code | sign);
    const Halves codes = narrow_to_halves(code);
    std::memcpy(to, &codes, sizeof codes);
  }
};

struct Bf16Elements {
  static constexpr std::size_t bytes = 2;
  HALFSCOPE_HD static FloatVec load_from(const std::byte* from) {
    Halves codes;
    std::memcpy(&codes, from, sizeof codes);
    return as_floats(widen_halves(codes) << 16);
  }
  HALFSCOPE_HD static void store_to(std::byte* to, FloatVec x) {
    const Halves codes = narrow_to_halves((as_ints(x) >> 16) & 0xFFFF);
    std::memcpy(to, &codes, sizeof codes);
  }
};

struct Fp32Elements {
  static constexpr std::size_t bytes = 4;
  HALFSCOPE_HD static FloatVec load_from(const std::byte* from) {
    FloatVec x;
    std::memcpy(&x, from, sizeof x);
    return x;
  }
  HALFSCOPE_HD static void store_to(std::byte* to, FloatVec x) { std::memcpy(to, &x, sizeof x); }
};

template <typename Body>
void with_elements_of(DType wire, const Body& body) {
  if (wire == DType::f16) return body(Fp16Elements{});
  if (wire == DType::bf16) return body(Bf16Elements{});
  body(Fp32Elements{});
}

/// Calls body(rounding) with the rounding to a format of the wire.
template <typename Body>
void with_wire_rounding(const FloatFormat& format, const Body& body) {
  if (format == FloatFormat{}) return body(Identity{});
  if (format == fp16) return body(RoundToFp16{});
  body(RoundTo<RoundWay::by_carrying>{rounding_grid({.format = format})});
}

/// The quotient or product that a step makes of numbers of the wire's format, before it is rounded.
HALFSCOPE_HD FloatVec divided(FloatVec x, const DivisionStep& step) {
  return step.kind == DivisionStep::Kind::divide ? x / all_lanes(step.constant)
                                                 : x * all_lanes(step.constant);
}

struct Vanished {
  Ints flushed{}, overflowed{};

  HALFSCOPE_HD void note(FloatVec before, FloatVec after) {
    flushed += (magnitude_of(before) != 0) & (magnitude_of(after) == 0);
    overflowed += is_finite(before) & ~is_finite(after);
  }
};

template <typename Elements, typename Round>
AllReduceCounters write_all(const AddendsJob& job, const Round& to) {
  const float* const from = job.gradients.data();
  const std::size_t count = job.gradients.size();
  const bool divides = job.step.kind != DivisionStep::Kind::none;
  Vanished vanished;
  const auto addend = [&](FloatVec gradient) __attribute__((always_inline)) {
    FloatVec x = to(gradient);
    if (divides) x = to(divided(x, job.step));
    vanished.note(gradient, x);
    return with_one_nan(x);
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    Elements::store_to(job.addends + i * Elements::bytes, addend(load(from + i)));
  if (i < count) {
    std::byte rest[lanes * Elements::bytes];
    Elements::store_to(rest, addend(load_some(from + i, count - i)));
    std::memcpy(job.addends + i * Elements::bytes, rest, (count - i) * Elements::bytes);
  }
  return {.addends_flushed = number_true(vanished.flushed),
          .addends_overflowed = number_true(vanished.overflowed)};
}

HALFSCOPE_HD Words one_at_most(Ints x) {
  const Words word = as_words(x), one = Words{} + 1;
  return word < one ? word : one;
}

/// 1 in the lanes of two nonzero numbers whose sum is finite and one of them: then its magnitude is that of
/// the larger one.
HALFSCOPE_HD Words stagnates(FloatVec a, FloatVec b, FloatVec sum) {
  const Ints x = magnitude_of(a), y = magnitude_of(b), result = magnitude_of(sum);
  const Ints most = x > y ? x : y, least = x > y ? y : x;
  const Words finite = as_words(result - static_cast<std::int32_t>(infinity_bits)) >> 31;
  return one_at_most(least) & finite & ~one_at_most(result ^ most);
}

/// A run of a block: where its addends are, and its place in the block.
struct RunInBlock {
  const std::byte* addends;  ///< rank 0's, the others' behind it
  std::int64_t rotation;
  std::size_t place, vectors;
};

/// The partial sums of a block, on a stack.
template <typename Elements, typename Round>
class BlockSums {
 public:
  BlockSums(const SumsJob& job, const Round& to) : job_(job), to_(to), ranks_(job.addends.ranks()) {
    std::size_t place = 0;
    for (const AddRun& run : job.runs) {
      const std::int64_t column = run.first - job.addends.first();
      const std::size_t vectors = (static_cast<std::size_t>(run.count) + lanes - 1) / lanes;
      runs_[count_] = {job.addends.at(0, column), run.rotation, place, vectors};
      last_lanes_[count_++] = first_lanes(run.count - static_cast<std::int64_t>((vectors - 1) * lanes));
      place += static_cast<std::size_t>((run.count + sum_alignment - 1) / sum_alignment * sum_alignment);
    }
  }

  void run() {
    for (const AddStep& step : job_.sequence) take(step);
    for (std::size_t i = 0; i < count_; ++i) {
      const AddRun& run = job_.runs[i];
      std::memcpy(job_.sums + (run.first - job_.addends.first()), stack_[0] + runs_[i].place,
                  static_cast<std::size_t>(run.count) * sizeof(float));
    }
  }
  [[nodiscard]] std::int64_t stagnated() const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < lanes; ++i) sum += stagnated_[i];
    return sum;
  }

 private:
  static constexpr std::int64_t row_bytes = sum_block * static_cast<std::int64_t>(Elements::bytes);

  /// Addends of the rank that stands in place of the sequence's `rank`.
  [[nodiscard]] const std::byte* row_of(const RunInBlock& run, std::int64_t rank) const {
    const std::int64_t rotated = rank + run.rotation;
    return run.addends + (rotated < ranks_ ? rotated : rotated - ranks_) * row_bytes;
  }

  void take(const AddStep& step) {
    if (step.kind == AddStep::Kind::join) --depth_;
    if (step.kind == AddStep::Kind::begin) ++depth_;
    for (std::size_t i = 0; i < count_; ++i) {
      const RunInBlock& run = runs_[i];
      float* const sum = stack_[depth_ - 1] + run.place;
      if (step.kind == AddStep::Kind::join) {
        const float* const other = stack_[depth_] + run.place;
        add_to(
            sum,
            i, [other](std::size_t v) __attribute__((always_inline)) { return load(other + v * lanes); });
        continue;
      }
      const std::byte* const row = row_of(run, step.rank);
      const auto addend = [row](std::size_t v) __attribute__((always_inline)) {
        return Elements::load_from(row + v * lanes * Elements::bytes);
      };
      if (step.kind == AddStep::Kind::add) {
        add_to(sum, i, addend);
      } else {
        for (std::size_t v = 0; v < run.vectors; ++v) store(sum + v * lanes, addend(v));
      }
    }
  }

  template <typename Addend>
  HALFSCOPE_HD void add_to(float* sum, std::size_t index, const Addend& addend) {
    Words stagnated = stagnated_, here{};
    for (std::size_t v = 0; v < runs_[index].vectors; ++v) {
      const FloatVec a = load(sum + v * lanes), b = addend(v), next = to_(a + b);
      store(sum + v * lanes, next);
      stagnated += here;
      here = stagnates(a, b, next);
    }
    stagnated_ = stagnated + (here & as_words(last_lanes_[index]));
  }

  const SumsJob& job_;
  const Round to_;
  const std::int64_t ranks_;
  Words stagnated_{};
  std::size_t depth_ = 0, count_ = 0;
  RunInBlock runs_[most_runs];
  Ints last_lanes_[most_runs];  ///< lanes of a run's last vector that have elements
  float stack_[most_partial_sums][sum_block];
};

/// In place; every NaN becomes the quiet one.
template <typename Round>
AllReduceCounters divide_all(const MeansJob& job, const Round& to) {
  const bool divides = job.step.kind != DivisionStep::Kind::none;
  Vanished vanished;
  const auto mean = [&](FloatVec sum) __attribute__((always_inline)) {
    const FloatVec rounded = to(sum), x = divides ? to(divided(rounded, job.step)) : rounded;
    vanished.note(sum, x);
    return with_one_nan(x);
  };
  float* const sums = job.sums.data();
  const std::size_t count = job.sums.size();
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t some = count - i < lanes ? count - i : lanes;
    store_some(sums + i, mean(load_some(sums + i, some)), some);
  }
  return {.means_flushed = number_true(vanished.flushed)};
}

}  // namespace

template <>
AllReduceCounters write_addends_isa<target_isa>(const AddendsJob& job) {
  AllReduceCounters counters;
  with_elements_of(job.wire, [&](auto elements) {
    with_wire_rounding(job.wire_format, [&](auto to) { counters = write_all<decltype(elements)>(job, to); });
  });
  return counters;
}

template <>
std::int64_t add_ranks_isa<target_isa>(const SumsJob& job) {
  std::int64_t stagnated = 0;
  with_elements_of(job.addends.wire(), [&](auto elements) {
    with_wire_rounding(job.sum_format, [&](auto to) {
      BlockSums<decltype(elements), decltype(to)> sums(job, to);
      sums.run();
      stagnated = sums.stagnated();
    });
  });
  return stagnated;
}

template <>
AllReduceCounters divide_sums_isa<target_isa>(const MeansJob& job) {
  AllReduceCounters counters;
  with_wire_rounding(job.wire_format, [&](auto to) { counters = divide_all(job, to); });
  return counters;
}

}  // namespace halfscope
