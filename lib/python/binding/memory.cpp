// Counting of floats by address: what halfscope.torch.watch does with the many small tensors of a model,
// where asking each for its DLPack capsule would take longer than counting it.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <limits>

#include <halfscope/core/dtype.hpp>
#include <halfscope/core/error.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/kernel/reduce/distance.hpp>
#include <halfscope/kernel/reduce/finiteness.hpp>
#include <halfscope/kernel/reduce/magnitudes.hpp>
#include <halfscope/stats/weight_delta.hpp>

#include "binding/bindings.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* floats_documentation =
    R"doc(The histograms for `format` of arrays in CPU memory, each an address, a number of elements and their type.

Types: "f32", "f16", "bf16", "f64" (rounded to odd, as Histogram has it). Whoever calls it vouches for what is there;
`Histogram` checks. Raises ValueError for another type.)doc";

constexpr const char* distance_documentation =
    R"doc(How far an array is from the one that it should be; each as count_floats has them, f32 or f64.

Errors and sizes are sums over the elements whose expected number is finite, in double. Whoever calls it vouches for
what is there. Raises ValueError for another type, two types, and arrays that differ in size.)doc";

constexpr const char* magnitudes_documentation =
    R"doc(Writes sums of |x| over the middle axis of an array (outer, summed, inner), in double; f32 into f64.

Each as count_floats has them; whoever calls it vouches for what is there. Raises ValueError for other types and for a
size that is not that of `axis`.)doc";

constexpr const char* finite_documentation =
    R"doc(Whether all numbers of these arrays are finite, in one pass at the speed of memory.

Each as count_floats has them; whoever calls it vouches for what is there. Raises ValueError for another type.)doc";

constexpr const char* kept_documentation =
    "Copies of float32 arrays in CPU memory, and what became of these; regions as count_floats has them.";

/// A part of the caller's memory: address, elements, type.
using Region = std::tuple<std::uintptr_t, std::size_t, std::string>;
using Regions = std::vector<Region>;

const std::byte* start_of(const Region& region) {
  return reinterpret_cast<const std::byte*>(std::get<0>(region));  // NOLINT(performance-no-int-to-ptr)
}

template <typename Number>
std::span<const Number> numbers_of(const Region& region) {
  return {reinterpret_cast<const Number*>(start_of(region)), std::get<1>(region)};
}

std::span<const float> floats_of(const Region& region) {
  if (std::get<2>(region) != name_of(DType::f32))
    throw InvalidArgument("KeptWeights: weights of " + std::get<2>(region) + "; give f32");
  return numbers_of<float>(region);
}

/// A list of `count` of each index below `size`. One at a time: a vector of histograms, 9 KB each, would be
/// fresh pages in every step.
template <typename Count>
nb::list list_of(std::size_t size, Count&& count) {
  nb::list found;
  for (std::size_t i = 0; i < size; ++i) {
    auto one = [&] {
      const nb::gil_scoped_release release;
      return count(i);
    }();
    found.append(nb::cast(std::move(one)));
  }
  return found;
}

nb::list count_floats(const Regions& regions, const std::string& format) {
  const FloatFormat parsed = parse_format(format);
  return list_of(regions.size(), [&](std::size_t i) {
    ExponentHistogram histogram(parsed);
    const auto& [address, elements, type] = regions[i];
    add_in_threads(histogram, parse_enum<DType>("type", type), start_of(regions[i]), elements);
    return histogram;
  });
}

/// The largest of the numbers' bits without their sign: those of a NaN where there is one.
template <typename Bits>
Bits largest_bits(const std::byte* start, std::size_t size) {
  constexpr auto magnitude = static_cast<Bits>(std::numeric_limits<Bits>::max() >> 1);
  const std::span numbers(reinterpret_cast<const Bits*>(start), size);
  Bits largest = 0;
  for (const Bits number : numbers) largest = std::max(largest, static_cast<Bits>(number & magnitude));
  return largest;
}

double largest_magnitude(const Region& region) {
  const std::byte* start = start_of(region);
  const std::size_t size = std::get<1>(region);
  switch (parse_enum<DType>("type", std::get<2>(region))) {
    case DType::f32:
      return std::bit_cast<float>(largest_bits<std::uint32_t>(start, size));
    case DType::f64:
      return std::bit_cast<double>(largest_bits<std::uint64_t>(start, size));
    case DType::f16:
      return decode(largest_bits<std::uint16_t>(start, size), fp16);
    case DType::bf16:
      return decode(largest_bits<std::uint16_t>(start, size), bf16);
    default:
      throw InvalidArgument("largest_magnitude: give f32, f16, bf16 or f64");
  }
}

bool is_finite_region(const Region& region) {
  switch (parse_enum<DType>("type", std::get<2>(region))) {
    case DType::f32:
      return all_finite(numbers_of<std::uint32_t>(region), std::uint32_t{0x7F800000});
    case DType::f64:
      return all_finite(numbers_of<std::uint64_t>(region), std::uint64_t{0x7FF0000000000000});
    case DType::f16:
      return all_finite(numbers_of<std::uint16_t>(region), std::uint16_t{0x7C00});
    case DType::bf16:
      return all_finite(numbers_of<std::uint16_t>(region), std::uint16_t{0x7F80});
    default:
      throw InvalidArgument("all_finite: give f32, f16, bf16 or f64");
  }
}

bool are_finite(const Regions& regions) {
  const nb::gil_scoped_release release;
  return std::ranges::all_of(regions, is_finite_region);
}

DistanceSums distance_between(const Region& found, const Region& expected) {
  const std::string& type = std::get<2>(expected);
  if (std::get<2>(found) != type)
    throw InvalidArgument("distance_sums: " + std::get<2>(found) + " beside " + type + "; give one type");
  const nb::gil_scoped_release release;
  if (type == name_of(DType::f64))
    return distance_sums(numbers_of<double>(found), numbers_of<double>(expected));
  if (type == name_of(DType::f32))
    return distance_sums(numbers_of<float>(found), numbers_of<float>(expected));
  throw InvalidArgument("distance_sums: give f32 or f64");
}

void add_magnitudes(const Region& values, const std::tuple<std::size_t, std::size_t, std::size_t>& axis,
                    const Region& sums) {
  if (std::get<2>(values) != name_of(DType::f32) || std::get<2>(sums) != name_of(DType::f64))
    throw InvalidArgument("magnitude_sums: " + std::get<2>(values) + " and sums of " + std::get<2>(sums) +
                          "; give f32 and f64");
  const auto& [outer, summed, inner] = axis;
  auto* start = reinterpret_cast<double*>(std::get<0>(sums));  // NOLINT(performance-no-int-to-ptr)
  const nb::gil_scoped_release release;
  magnitude_sums(numbers_of<float>(values), {.outer = outer, .summed = summed, .inner = inner},
                 {start, std::get<1>(sums)});
}

class KeptWeights {
 public:
  KeptWeights() = default;
  ~KeptWeights() = default;
  KeptWeights(const KeptWeights&) = delete;  // std::vector would say that its elements can be copied
  KeptWeights& operator=(const KeptWeights&) = delete;

  void keep(const Regions& regions) {
    const nb::gil_scoped_release release;
    copies_.resize(regions.size());
    for (std::size_t i = 0; i < regions.size(); ++i) copies_[i].fill(floats_of(regions[i]));
  }

  [[nodiscard]] nb::list moved(const Regions& regions, const std::string& format) const {
    const FloatFormat parsed = parse_format(format);
    if (regions.size() != copies_.size())
      throw InvalidArgument("KeptWeights.moved: other arrays than were kept");
    return list_of(regions.size(), [&](std::size_t i) {
      return count_weight_delta(copies_[i].values(), floats_of(regions[i]), parsed);
    });
  }

 private:
  /// Memory that is not zeroed first and that grows to what is needed.
  class Copy {
   public:
    void fill(std::span<const float> values) {
      if (values.size() > capacity_) {
        memory_ = std::make_unique_for_overwrite<float[]>(values.size());
        capacity_ = values.size();
      }
      size_ = values.size();
      constexpr std::int64_t grain = 1 << 18;
      parallel_for_ranges(static_cast<std::int64_t>(size_), grain,
                          [&](std::int64_t first, std::int64_t count) noexcept {
                            std::copy_n(values.data() + first, count, memory_.get() + first);
                          });
    }
    [[nodiscard]] std::span<const float> values() const { return {memory_.get(), size_}; }

   private:
    std::unique_ptr<float[]> memory_;
    std::size_t size_ = 0, capacity_ = 0;
  };

  std::vector<Copy> copies_;
};

}  // namespace

void bind_memory(nb::module_& module) {
  module.def("count_floats", count_floats, nb::arg("arrays"), nb::arg("format") = "fp16",
             nb::sig("def count_floats(arrays: Sequence[tuple[int, int, str]], format: str = 'fp16') -> "
                     "list[Histogram]"),
             floats_documentation);
  module.def("largest_magnitude", largest_magnitude, nb::arg("array"),
             nb::sig("def largest_magnitude(array: tuple[int, int, str]) -> float"),
             "The largest magnitude of an array, as count_floats has them; NaN where one is NaN, 0 of none.");
  module.def("all_finite", are_finite, nb::arg("arrays"),
             nb::sig("def all_finite(arrays: Sequence[tuple[int, int, str]]) -> bool"), finite_documentation);
  nb::class_<DistanceSums>(module, "DistanceSums", "Sums over an array and the one that it should be.")
      .def_ro("squared_error", &DistanceSums::squared_error, "of found - expected")
      .def_ro("squared_size", &DistanceSums::squared_size, "of expected")
      .def_ro("squared_found", &DistanceSums::squared_found, "of found")
      .def_ro("product", &DistanceSums::product, "of found and expected")
      .def_ro("largest_error", &DistanceSums::largest_error,
              "the largest |found - expected|, of finite elements alone")
      .def_ro("spoiled", &DistanceSums::spoiled,
              "elements that are infinite or NaN, and expected to be finite")
      .def_ro("moved", &DistanceSums::moved, "elements that are expected not to be zero")
      .def_ro("still", &DistanceSums::still, "those among them that are zero")
      .def_ro("strayed", &DistanceSums::strayed,
              "elements that are expected to be infinite or NaN, and are another number");
  module.def("distance_sums", distance_between, nb::arg("found"), nb::arg("expected"),
             nb::sig("def distance_sums(found: tuple[int, int, str], expected: tuple[int, int, str]) -> "
                     "DistanceSums"),
             distance_documentation);
  module.def("magnitude_sums", add_magnitudes, nb::arg("values"), nb::arg("axis"), nb::arg("sums"),
             nb::sig("def magnitude_sums(values: tuple[int, int, str], axis: tuple[int, int, int], "
                     "sums: tuple[int, int, str]) -> None"),
             magnitudes_documentation);
  nb::class_<WeightDelta>(module, "WeightDelta", "Effect of a step on the weights of one array.")
      .def_ro("counters", &WeightDelta::counters,
              "counts of updates that the format would lose, as lost_updates")
      .def_ro("ratios", &WeightDelta::ratios, "as update_ratios");
  nb::class_<KeptWeights>(module, "KeptWeights", kept_documentation)
      .def(nb::init<>())
      .def("keep", &KeptWeights::keep, nb::arg("arrays"), "Copies them, in place of what was kept before.")
      .def("moved", &KeptWeights::moved, nb::arg("arrays"), nb::arg("format") = "fp16",
           nb::sig("def moved(self, arrays: Sequence[tuple[int, int, str]], format: str = 'fp16') -> "
                   "list[WeightDelta]"),
           "The delta of each array since `keep`, in the same order and of the same lengths, for `format`.");
}

}  // namespace halfscope::python
