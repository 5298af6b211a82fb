// The histograms in a run's histograms.jsonl.
#include <fmt/format.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cmath>
#include <halfscope/core/error.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/json/histogram_json.hpp>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "binding/bindings.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* histogram_file_documentation =
    R"doc(Calls take(step, role, tensor, scale_log2, histogram) for each record of a run's histograms.jsonl, in their order.

scale_log2: of the loss scale that the counts carry; one that is no power of two counts as the nearest. Raises
ValueError, with file and line, for what is no record of a histogram.)doc";

constexpr const char* histogram_line_documentation =
    R"doc(Calls take for one record as each_histogram does; where: its file and line, for errors.)doc";

/// `key` of the record, as a T. Throws InvalidArgument where it is missing or of another kind.
template <typename T>
T member(const Json& record, const char* key) {
  const auto found = record.is_object() ? record.find(key) : record.end();
  if (found == record.end() || (std::is_same_v<T, std::string> ? !found->is_string() : !found->is_number()))
    throw InvalidArgument(
        fmt::format("expected an object with step, role, tensor and scale; {} is missing", key));
  return found->get<T>();
}

int scale_log2(const Json& record) {
  const auto scale = member<double>(record, "scale");
  if (!(scale > 0)) throw InvalidArgument(fmt::format("scale = {}", scale));
  return static_cast<int>(std::lround(std::log2(scale)));
}

void take_record(const Json& record, const nb::callable& take) {
  take(member<std::int64_t>(record, "step"), member<std::string>(record, "role"),
       member<std::string>(record, "tensor"), scale_log2(record), halfscope::histogram_of(record));
}

void take_histogram(std::string_view line, const std::string& where, const nb::callable& take) {
  const Json record = parse_json(line, where);
  try {
    take_record(record, take);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", where, error.what()));
  }
}

void each_histogram(const std::filesystem::path& path, const nb::callable& take) {
  read_lines(path, [&](std::size_t line, std::string_view text) {
    take_histogram(text, fmt::format("{}:{}", path.string(), line), take);
  });
}

}  // namespace

void bind_histogram_file(nb::module_& module) {
  module.def("each_histogram", each_histogram, nb::arg("path"), nb::arg("take"),
             histogram_file_documentation);
  module.def("take_histogram", take_histogram, nb::arg("line"), nb::arg("where"), nb::arg("take"),
             histogram_line_documentation);
}

}  // namespace halfscope::python
