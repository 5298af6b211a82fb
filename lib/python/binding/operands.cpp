// Operands of products in formats of their own, for halfscope.torch.emulate: rules, casts by address, counts.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>

#include <halfscope/core/error.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/policy/operand_scale.hpp>
#include <halfscope/policy/policy.hpp>
#include <halfscope/stats/operand_cast.hpp>

#include "binding/bindings.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* layer_operands_documentation =
    R"doc(The formats that rules, as `halfscope list policies` shows them, give to the operands of an operation in the
layer called `layer`: by "forward.left" and so on, those without one left out.

Raises ValueError for rules that cannot be read.)doc";

constexpr const char* operand_cast_documentation =
    R"doc(The casts of one operand over a training: its format, and the state of a delayed scale.

Raises ValueError for a format or a place ("forward.left") that does not exist.)doc";

constexpr const char* round_operand_documentation =
    R"doc(Rounds (rows, columns) float32 at `address` in CPU memory in place, columns being summed over; returns the
counts, or None unless `counts`. A delayed scale takes in the largest magnitude where it `learns`. Whoever calls it vouches for the memory.)doc";

OperandPlace parse_place(const std::string& text) {
  const auto found =
      std::ranges::find(operand_places, text, [](const OperandPlace& place) { return to_string(place); });
  if (found == operand_places.end())
    throw InvalidArgument(fmt::format("operand '{}'; give forward.left and so on", text));
  return *found;
}

nb::dict layer_operands(const std::string& rules, const std::string& operation, const std::string& layer) {
  const auto entry = std::ranges::find(operation_table, operation, &OperationEntry::name);
  if (entry == operation_table.end())
    throw InvalidArgument(fmt::format("operation '{}' is not in the table of operations", operation));
  const std::vector<OperandRule> parsed = parse_operand_rules(rules);
  const OperationId id(static_cast<std::size_t>(entry - operation_table.begin()));
  const LayerOperands operands = operands_of(parsed, id, layer);
  nb::dict formats;
  for (const OperandPlace& place : operand_places)
    if (operands[place]) formats[nb::cast(to_string(place))] = to_string(*operands[place]);
  return formats;
}

void check_sums(const std::string& rules, const std::string& products) {
  PrecisionPolicy policy;
  policy.operands = parse_operand_rules(rules);
  policy.products = parse_accumulate_model(products);
  check_operand_sums(policy);
}

/// Whether a cast is counted, and whether a delayed scale takes in its magnitude.
struct OperandUse {
  bool counts = true, learns = true;
};

class OperandCaster {
 public:
  OperandCaster(const std::string& format, const std::string& place)
      : format_(parse_operand_format(format)), place_(parse_place(place)) {}

  std::optional<BlockCounts> round(std::uintptr_t address, const MatrixShape& shape, const Site& site,
                                   std::uint64_t seed, const OperandUse& use) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the caller's memory.
    const std::span values{reinterpret_cast<float*>(address),
                           static_cast<std::size_t>(shape.rows * shape.columns)};
    const RandomStream stream{seed, static_cast<std::uint32_t>(site.step), stream_site(site)};
    const nb::gil_scoped_release release;
    if (format_.transform == OperandTransform::hadamard) transform_operand(values, shape);
    const auto counting = use.counts ? OperandCounting::counted : OperandCounting::none;
    return round_operand(values, shape, {format_.format, scale_of(values, use.learns), stream}, counting);
  }

  /// Takes the largest magnitude of the step into a delayed scale.
  void end_step() {
    delayed_.update(amax_, largest(), format_.delayed);
    amax_ = 0;
  }

  /// The largest magnitude of the step under way.
  [[nodiscard]] float amax() const { return amax_; }
  void raise_amax(float amax) { amax_ = std::max(amax_, amax); }
  [[nodiscard]] bool is_delayed() const { return format_.scaling == TensorScaling::delayed; }

  [[nodiscard]] Role role() const { return role_of(place_); }
  [[nodiscard]] float scale() const { return delayed_.scale; }
  [[nodiscard]] bool has_square_tiles() const {
    const auto* blocks = std::get_if<BlockFormat>(&format_.format);
    return blocks != nullptr && blocks->block.rows > 1 && blocks->block.rows == blocks->block.columns;
  }
  [[nodiscard]] bool is_stochastic() const {
    const auto* blocks = std::get_if<BlockFormat>(&format_.format);
    const Quantizer& element = blocks != nullptr ? blocks->element : std::get<Quantizer>(format_.format);
    return element.rounding == Rounding::stochastic;
  }

 private:
  [[nodiscard]] float largest() const { return largest_element(format_.format); }

  float scale_of(std::span<const float> values, bool learns) {
    if (format_.scaling == TensorScaling::none) return 1;
    const float amax = operand_magnitude(values);
    if (format_.scaling == TensorScaling::current) return current_scale(amax, largest());
    if (learns) amax_ = std::max(amax_, amax);
    return delayed_.scale;
  }

  OperandFormat format_;
  OperandPlace place_;
  DelayedScale delayed_{};
  float amax_ = 0;  ///< largest magnitude of the step under way
};

}  // namespace

void bind_operands(nb::module_& module) {
  module.def("layer_operands", layer_operands, nb::arg("rules"), nb::arg("operation"), nb::arg("layer"),
             nb::sig("def layer_operands(rules: str, operation: str, layer: str) -> dict[str, str]"),
             layer_operands_documentation);
  module.def(
      "check_operand_sums", check_sums, nb::arg("rules"), nb::arg("products"),
      "Raises ValueError where rules give operands formats and the order of sums rounds them to another.");
  nb::class_<OperandCaster>(module, "OperandCast", operand_cast_documentation)
      .def(nb::init<const std::string&, const std::string&>(), nb::arg("format"), nb::arg("place"))
      .def(
          "round",
          [](OperandCaster& cast, std::uintptr_t address, std::int64_t rows, std::int64_t columns,
             const std::string& name, bool counts, bool learns, std::uint64_t seed, std::int64_t step,
             std::int32_t part) {
            return cast.round(address, {rows, columns},
                              {.step = step, .tensor = name, .role = cast.role(), .part = part}, seed,
                              {counts, learns});
          },
          nb::arg("address"), nb::arg("rows"), nb::arg("columns"), nb::arg("name"), nb::kw_only(),
          nb::arg("counts") = true, nb::arg("learns") = true, nb::arg("seed") = 0, nb::arg("step") = 0,
          nb::arg("part") = whole_tensor, round_operand_documentation)
      .def("end_step", &OperandCaster::end_step, "Makes the delayed scale of the next step.")
      .def_prop_ro("scale", &OperandCaster::scale, "The delayed scale; 1 where there is none.")
      .def_prop_ro("amax", &OperandCaster::amax,
                   "Largest magnitude of the step under way, for a delayed scale.")
      .def("raise_amax", &OperandCaster::raise_amax, nb::arg("amax"),
           "Takes in the largest magnitude that another process has seen.")
      .def_prop_ro("is_delayed", &OperandCaster::is_delayed, "Whether its scale is a delayed one.")
      .def_prop_ro("has_square_tiles", &OperandCaster::has_square_tiles, "Whether blocks are square.")
      .def_prop_ro("is_stochastic", &OperandCaster::is_stochastic, "Whether it draws random numbers.");
}

}  // namespace halfscope::python
