// Rounding of a caller's floats in place by address, counted on the way: the casts of
// halfscope.torch.emulate.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>

#include <halfscope/core/error.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/kernel/cast/noise.hpp>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/stats/cast_counts.hpp>
#include <halfscope/stats/site.hpp>

#include "binding/bindings.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* cast_class_documentation =
    R"doc(A cast: which quantizer rounds a tensor of a role, and which random numbers stochastic rounding draws.

Raises ValueError for an unknown quantizer or role.)doc";

constexpr const char* rounded_cast_documentation =
    R"doc(Rounds `elements` float32 at `address` in CPU memory in place and returns what it met.

detail: "counters", "histogram" for a histogram of the exact numbers too, or "none" for neither: then it returns None.
Whoever calls it vouches for the memory.)doc";

constexpr const char* noise_documentation =
    R"doc(Multiplies `elements` float32 at `address` in CPU memory by 1 + amount r, in place, with r uniform in [-1, 1).

Whole numbers up to 1 / amount stay, infinities and NaNs, and what `held`, a format by name, holds. seed: of the numbers
r. Whoever calls it vouches for the memory. Raises ValueError for an unknown format, and for an amount that is not
between 2^-24 and 1.)doc";

/// The caller's memory.
std::span<float> floats_at(std::uintptr_t address, std::size_t elements) {
  return {reinterpret_cast<float*>(address), elements};  // NOLINT(performance-no-int-to-ptr)
}

void add_noise_at(std::uintptr_t address, std::size_t elements, double amount, std::uint64_t seed,
                  const std::optional<std::string>& held) {
  if (!(amount >= 0x1p-24 && amount <= 1))
    throw InvalidArgument(fmt::format("add_noise: amount {}; give 2^-24 to 1", amount));
  RelativeNoise noise{.amount = static_cast<float>(amount), .seed = seed};
  if (held) noise.held = parse_format(*held);
  const nb::gil_scoped_release release;
  add_noise(floats_at(address, elements), noise);
}

/// A tensor's part in a step has random bits of its own.
struct CastPlace {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::int32_t part = whole_tensor;
};

class Cast {
 public:
  Cast(const std::string& quantizer, const std::string& role)
      : quantizer_(parse_quantizer(quantizer)), role_(parse_enum<Role>("role", role)) {}

  [[nodiscard]] std::optional<CastCounts> round(std::uintptr_t address, std::size_t elements,
                                                const std::string& tensor, const std::string& detail,
                                                const CastPlace& place) const {
    const std::span<float> values = floats_at(address, elements);
    const RandomStream stream{place.seed, place.step,
                              stream_site({.tensor = tensor, .role = role_, .part = place.part})};
    const auto looked_at = parse_enum<CastDetail>("detail", detail);
    const nb::gil_scoped_release release;
    if (looked_at != CastDetail::none) return round_and_count(values, quantizer_, looked_at, stream);
    round_in_threads(values, quantizer_, stream);
    return std::nullopt;
  }

 private:
  Quantizer quantizer_;
  Role role_;
};

}  // namespace

void bind_casts(nb::module_& module) {
  module.def("add_noise", add_noise_at, nb::arg("address"), nb::arg("elements"), nb::kw_only(),
             nb::arg("amount"), nb::arg("seed"), nb::arg("held") = nb::none(), noise_documentation);
  nb::class_<CastCounts>(module, "CastCounts", "Counts of an array's elements before and after a cast.")
      .def_ro("elements", &CastCounts::elements)
      .def_prop_ro("zeros", [](const CastCounts& counts) { return counts.counters.zeros; })
      .def_prop_ro("nonfinite", [](const CastCounts& counts) { return counts.counters.nonfinite; })
      .def_prop_ro("flushed", [](const CastCounts& counts) { return counts.counters.flushed; })
      .def_prop_ro("subnormal", [](const CastCounts& counts) { return counts.counters.subnormal; })
      .def_prop_ro("overflow", [](const CastCounts& counts) { return counts.counters.overflow; })
      .def_prop_ro("max_abs", [](const CastCounts& counts) { return counts.counters.max_abs; })
      .def_prop_ro(
          "before", [](const CastCounts& counts) { return counts.before; },
          "the histogram of the exact numbers, or None");
  nb::class_<Cast>(module, "Cast", cast_class_documentation)
      .def(nb::init<const std::string&, const std::string&>(), nb::arg("quantizer"), nb::arg("role"))
      .def(
          "round",
          [](const Cast& cast, std::uintptr_t address, std::size_t elements, const std::string& tensor,
             const std::string& detail, std::uint64_t seed, std::uint32_t step, std::int32_t part) {
            return cast.round(address, elements, tensor, detail, {seed, step, part});
          },
          nb::arg("address"), nb::arg("elements"), nb::arg("tensor"), nb::kw_only(),
          nb::arg("detail") = "counters", nb::arg("seed") = 0, nb::arg("step") = 0,
          nb::arg("part") = whole_tensor, rounded_cast_documentation);
}

}  // namespace halfscope::python
