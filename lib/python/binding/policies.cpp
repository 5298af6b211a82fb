// Precision policies for halfscope.torch: the table, the parser of a policy's texts, and globs of layers.
#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <map>

#include <halfscope/kernel/gemm/gemm.hpp>
#include <halfscope/policy/detail/globs.hpp>
#include <halfscope/policy/policy_texts.hpp>

#include "binding/bindings.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* policies_documentation =
    R"doc(The policies with a name: of each a summary, the format of every role, the order of its products, the
storage of parameters ("reduced" or "fp32"), whether those of batch norm stay FP32, its operations by list, and the
formats of its products' operands; and how updates are added to weights in a narrow format.)doc";

constexpr const char* policy_documentation =
    R"doc(The policy that settings say, as `halfscope run --set` takes them: "policy" (a name, or a format of the network's
tensors), formats by role, "order", "sum_order" and "operands"; what is left out is the policy's.

Raises ValueError for another key, for a text that is none, and for settings that rule one another out.)doc";

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

PrecisionPolicy policy_of(const std::map<std::string, std::string>& settings) {
  PolicyTexts texts;
  for (const auto& [key, text] : settings) set_policy_text(texts, key, text);
  return parse_policy(texts);
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
  nb::class_<PrecisionPolicy>(module, "Policy", policy_documentation)
      .def(
          "__init__",
          [](PrecisionPolicy* policy, const std::map<std::string, std::string>& settings) {
            new (policy) PrecisionPolicy(policy_of(settings));
          },
          nb::arg("settings"),
          nb::sig("def __init__(self, settings: collections.abc.Mapping[str, str]) -> None"))
      .def_prop_ro("roles", roles_of, nb::sig("def roles(self) -> dict[str, str]"),
                   "The format of each role.")
      .def_prop_ro("lists", lists_of, nb::sig("def lists(self) -> dict[str, str]"),
                   "The list of each operation.")
      .def_prop_ro(
          "order", [](const PrecisionPolicy& p) { return to_string(p.products); }, "The order of products.")
      .def_prop_ro(
          "operands", [](const PrecisionPolicy& p) { return to_string(p.operands); },
          "Rules of products' operands.")
      .def_prop_ro(
          "weight_sum", [](const PrecisionPolicy& p) { return std::string(name_of(p.weight_sum)); },
          "The sum of updates and stored weights.")
      .def_prop_ro(
          "stores_fp32", [](const PrecisionPolicy& p) { return p.parameters == StoredParameters::fp32; },
          "Whether parameters are FP32 and are cast for each operation, as under autocast.")
      .def_prop_ro(
          "keeps_batch_norm", [](const PrecisionPolicy& p) { return p.keep_batch_norm_fp32; },
          "Whether batch norm's parameters stay FP32.")
      .def(
          "sum_order_in",
          [](const PrecisionPolicy& p, const std::string& layer) {
            return to_string(p.reductions_in(layer));
          },
          nb::arg("layer"), "The order of other sums in a layer.");
  module.def("policy_keys", policy_keys, nb::sig("def policy_keys() -> list[str]"), "Settings of a policy.");
  module.def("matches_glob", matches_glob, nb::arg("glob"), nb::arg("layer"),
             "Whether a layer's name matches a glob of the shell.");
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
