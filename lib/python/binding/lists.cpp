// Tables of formats and of orders of sums, for halfscope.list_formats and halfscope.list_orders.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <cmath>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/core/error.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/format/catalogue.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/kernel/histogram/histogram.hpp>

#include "binding/bindings.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

void add_numbers(nb::dict& row, const FloatFormat& format) {
  row["exponent_bits"] = format.exponent_bits;
  row["mantissa_bits"] = format.mantissa_bits;
  row["largest"] = static_cast<double>(from_bits(format.max_finite_bits()));
  row["smallest_normal"] = std::ldexp(1.0, format.min_exponent());
  row["smallest"] = std::ldexp(1.0, format.lowest_exponent());
}

nb::list formats() {
  nb::list table;
  for (const NamedFormat& entry : format_catalogue) {
    nb::dict row;
    row["format"] = entry.name;
    row["summary"] = entry.summary;
    add_numbers(row, entry.format);
    table.append(row);
  }
  return table;
}

nb::dict describe_format(const std::string& name) {
  const FloatFormat format = parse_format(name);
  const auto [to_overflow, to_normal] = binade_edges(format);
  nb::dict row;
  row["format"] = to_string(format);
  add_numbers(row, format);
  row["binade_edges"] = nb::make_tuple(std::min(to_normal, to_overflow), std::max(to_normal, to_overflow));
  return row;
}

/// Whether single terms can be added up in this way, and not products alone.
bool adds_terms(std::string_view name) {
  try {
    check_reduction_model(parse_accumulate_model(name));
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

nb::list orders() {
  nb::list table;
  const auto append = [&](const NamedAccumulateModel& entry) {
    nb::dict row;
    row["order"] = entry.name;
    row["summary"] = entry.summary;
    row["sums"] = adds_terms(entry.name);
    table.append(row);
  };
  std::ranges::for_each(accumulate_models, append);
  std::ranges::for_each(cpu_product_models, append);
  return table;
}

}  // namespace

void bind_lists(nb::module_& module) {
  module.def(
      "format_table", formats, nb::sig("def format_table() -> list[dict[str, object]]"),
      "The formats with a name: a summary, their bits, and their largest, smallest normal and smallest "
      "positive number.");
  module.def("describe_format", describe_format, nb::arg("name"),
             nb::sig("def describe_format(name: str) -> dict[str, typing.Any]"),
             "A row of format_table for any format, without a summary; format is its own name, binade_edges "
             "the two of "
             "BinadeEdges, the smaller one first.");
  module.def("order_table", orders, nb::sig("def order_table() -> list[dict[str, object]]"),
             "The orders of sums with a name: a summary, and whether they add up single terms too.");
}

}  // namespace halfscope::python
