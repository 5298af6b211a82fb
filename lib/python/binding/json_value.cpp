// Copies Python's values into JSON's.
#include "binding/json_value.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <nlohmann/json.hpp>

#include <halfscope/core/error.hpp>
#include <halfscope/format/quantizer.hpp>

#include "binding/histogram_record.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr int deepest = 64;

Json json_at(nb::handle given, int depth);

Json object_of(nb::handle mapping, int depth) {
  Json object = Json::object();
  for (const nb::handle key : nb::object(mapping.attr("keys")())) {
    object[nb::cast<std::string>(nb::str(key))] = json_at(mapping[key], depth);
  }
  return object;
}

Json array_of(nb::handle sequence, int depth) {
  Json array = Json::array();
  for (const nb::handle item : sequence) array.push_back(json_at(item, depth));
  return array;
}

/// The Python value of a NumPy scalar, or of an array without axes; any other value itself.
nb::object without_numpy(nb::handle value) {
  const bool scalar =
      nb::hasattr(value, "item") && nb::hasattr(value, "ndim") && value.attr("ndim").equal(nb::int_(0));
  return scalar ? nb::object(value.attr("item")()) : nb::borrow(value);
}

Json number_of(nb::handle value) {
  std::int64_t whole = 0;
  if (PyIndex_Check(value.ptr()) != 0 && nb::try_cast(nb::object(nb::int_(value)), whole)) return whole;
  return nb::cast<double>(nb::float_(value));
}

/// Members of the record, for a trace: its replay knows FP16 alone.
Json histogram_at(const ExponentHistogram& histogram, int depth) {
  if (histogram.format() != fp16) {
    throw InvalidArgument(fmt::format("a Histogram of {}: give one of fp16", to_string(histogram.format())));
  }
  return json_at(record_of(histogram), depth);
}

Json json_at(nb::handle given, int depth) {
  const nb::object value = without_numpy(given);
  if (depth > deepest) throw InvalidArgument("a record is nested deeper than 64");
  if (value.is_none()) return nullptr;
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::isinstance<ExponentHistogram>(value))
    return histogram_at(nb::cast<const ExponentHistogram&>(value), depth);
  if (nb::hasattr(value, "keys")) return object_of(value, depth + 1);
  if (PySequence_Check(value.ptr()) != 0) return array_of(value, depth + 1);
  if (PyIndex_Check(value.ptr()) != 0 || nb::hasattr(value, "__float__")) return number_of(value);
  return nb::cast<std::string>(nb::repr(value));
}

}  // namespace

Json json_of(nb::handle value) {
  return json_at(value, 0);
}

}  // namespace halfscope::python
