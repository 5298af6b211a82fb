// Rules on constants that formats lose, for halfscope.torch.lint.
#include <nanobind/stl/string.h>

#include <halfscope/policy/constant_rules.hpp>

#include "binding/bindings.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* lost_documentation =
    R"doc(The effect of a format on a constant of a training, or None where the constant survives.

kind: of the constant, such as "optimizer_epsilon", "decay", "weight_decay"; the kinds that the simulator's lint has.

Returns value, rounded, limit, which is a value nearby that survives, and consequence, a clause. Raises
ValueError for another kind, and as `round` does.)doc";

nb::object lost(const std::string& kind, double value, const std::string& quantizer) {
  const std::optional<LostConstant> found =
      lost_constant(parse_enum<ConstantKind>("kind of constants", kind), value, parse_quantizer(quantizer));
  if (!found) return nb::none();
  nb::dict row;
  row["value"] = found->value;
  row["rounded"] = found->rounded;
  row["limit"] = found->limit;
  row["consequence"] = found->consequence;
  return row;
}

}  // namespace

void bind_constants(nb::module_& module) {
  module.def(
      "lost_constant", lost, nb::arg("kind"), nb::arg("value"), nb::arg("quantizer"),
      nb::sig("def lost_constant(kind: str, value: float, quantizer: str) -> dict[str, typing.Any] | None"),
      lost_documentation);
}

}  // namespace halfscope::python
