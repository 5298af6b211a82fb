// Table of the precision policies, for halfscope.torch.emulate.
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <halfscope/kernel/gemm/gemm.hpp>
#include <halfscope/policy/policy.hpp>

#include "binding/bindings.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* policies_documentation =
    R"doc(The policies with a name: of each a summary, the format of every role, the order of its products, the
storage of parameters ("reduced" or "fp32"), whether those of batch norm stay FP32, its operations by list, and the
formats of its products' operands; and how updates are added to weights in a narrow format.)doc";

nb::dict roles_of(const PrecisionPolicy& policy) {
  nb::dict roles;
  for (std::size_t i = 0; i < policy.quantizers.size(); ++i)
    roles[nb::cast(enum_names<Role>[i])] = to_string(policy.quantizers[i]);
  return roles;
}

nb::dict lists_of(const PrecisionPolicy& policy) {
  nb::dict lists;
  for (std::size_t i = 0; i < operation_table.size(); ++i)
    lists[nb::cast(operation_table[i].name)] = nb::cast(name_of(policy.lists[i]));
  return lists;
}

nb::list policies() {
  nb::list table;
  for (const NamedPolicy& entry : policy_table) {
    const PrecisionPolicy policy = entry.make();
    nb::dict row;
    row["policy"] = entry.name;
    row["summary"] = entry.summary;
    row["roles"] = roles_of(policy);
    row["products"] = to_string(policy.products);
    row["operands"] = to_string(policy.operands);
    row["weight_sum"] = name_of(policy.weight_sum);
    row["parameters"] = policy.parameters == StoredParameters::reduced ? "reduced" : "fp32";
    row["keep_batch_norm_fp32"] = policy.keep_batch_norm_fp32;
    row["operations"] = lists_of(policy);
    table.append(row);
  }
  return table;
}

nb::dict describe_quantizer(const std::string& text) {
  const Quantizer quantizer = parse_quantizer(text);
  nb::dict row;
  row["quantizer"] = to_string(quantizer);
  row["format"] = to_string(quantizer.format);
  row["identity"] = quantizer.is_identity();
  return row;
}

std::string checked_default_products(const std::string& weight, const std::string& activation,
                                     const std::string& activation_gradient) {
  return to_string(
      default_products(PrecisionPolicy{}
                           .with(Role::weight, parse_quantizer(weight))
                           .with(Role::activation, parse_quantizer(activation))
                           .with(Role::activation_gradient, parse_quantizer(activation_gradient))));
}

std::string checked_product_model(const std::string& text) {
  const AccumulateModel model = parse_accumulate_model(text);
  check_product_model(model);
  return to_string(model);
}

}  // namespace

void bind_policies(nb::module_& module) {
  module.def("policy_table", policies, nb::sig("def policy_table() -> list[dict[str, typing.Any]]"),
             policies_documentation);
  module.def(
      "describe_quantizer", describe_quantizer, nb::arg("text"),
      nb::sig("def describe_quantizer(text: str) -> dict[str, typing.Any]"),
      "Its own text, its format, and whether it changes no number. Raises ValueError as `round` does.");
  module.def("default_products", checked_default_products, nb::arg("weight"), nb::arg("activation"),
             nb::arg("activation_gradient"),
             "The sums of matrix products of operands in these quantizers, where none are asked for.");
  module.def(
      "default_sum_order", [] { return to_string(ScopedAccumulate{}.model); },
      "The order of sums over many elements, where none is asked for.");
  module.def("product_model", checked_product_model, nb::arg("text"),
             "The own name of an order of matrix products. Raises ValueError for one of single terms alone.");
}

}  // namespace halfscope::python
