// Sums of the histograms in a run's histograms.jsonl.
#include <fmt/format.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <halfscope/core/error.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/io/file.hpp>
#include <halfscope/io/json/histogram_json.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "binding/bindings.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* documentation =
    R"doc(All histograms of a file of records added up: (role, log2 of the loss scale, histogram) each.

A scale that is no power of two counts as the nearest one. Counts for different formats stay apart. Raises ValueError,
with file and line, for what is no record of a histogram.)doc";

using Sum = std::tuple<std::string, int, ExponentHistogram>;

/// Role, format, and log2 of the scale.
using Kind = std::tuple<std::string, std::string, int>;

void add_record(std::map<Kind, ExponentHistogram>& sums, const Json& record) {
  if (!record.is_object() || !record.contains("role") || !record["role"].is_string() ||
      !record.contains("scale") || !record["scale"].is_number() || record["scale"].get<double>() <= 0) {
    throw InvalidArgument("expected an object with role, scale and the counts of a histogram");
  }
  const ExponentHistogram histogram = histogram_of(record);
  const int scale_log2 = static_cast<int>(std::lround(std::log2(record["scale"].get<double>())));
  const Kind kind{record["role"].get<std::string>(), to_string(histogram.format()), scale_log2};
  const auto [sum, is_new] = sums.try_emplace(kind, histogram);
  if (!is_new) sum->second.merge(histogram);
}

std::vector<Sum> sum_histograms(const std::filesystem::path& path) {
  std::map<Kind, ExponentHistogram> sums;
  {
    const nb::gil_scoped_release release;
    read_lines(path, [&](std::size_t line, std::string_view text) {
      const std::string where = fmt::format("{}:{}", path.string(), line);
      const Json record = parse_json(text, where);
      try {
        add_record(sums, record);
      } catch (const InvalidArgument& error) {
        throw InvalidArgument(fmt::format("{}: {}", where, error.what()));
      }
    });
  }
  std::vector<Sum> found;
  for (auto& [kind, sum] : sums) found.emplace_back(std::get<0>(kind), std::get<2>(kind), sum);
  return found;
}

}  // namespace

void bind_histogram_file(nb::module_& module) {
  module.def("sum_histograms", sum_histograms, nb::arg("path"), documentation);
}

}  // namespace halfscope::python
