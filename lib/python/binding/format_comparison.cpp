// halfscope._core.compare_formats: several formats over arrays by name, and the page of them.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <utility>

#include <halfscope/core/error.hpp>
#include <halfscope/explorer/formats_data.hpp>
#include <halfscope/passes/file_formats.hpp>
#include <halfscope/stats/format_comparison.hpp>

#include "binding/along.hpp"
#include "binding/bindings.hpp"
#include "binding/floats.hpp"

namespace halfscope::python {
namespace nb = nanobind;
using namespace nb::literals;
namespace {

constexpr const char* compare_documentation =
    R"doc(Counts what several formats do to arrays, and chooses the cheapest one of an error within `max_error`.

tensors: pairs of a name and an array; types and errors as Histogram.update. formats: with blocks and without.
axis: the one that blocks run along, in every array. max_error: norm of the error over that of the array.
with_rules: counts every scale rule of the block formats too, which the explorer shows.)doc";

using NamedArray = std::pair<std::string, nb::object>;

/// An array's counts under each counted format.
struct CountedArray {
  std::string name;
  MatrixShape matrix{};
  std::vector<FormatCounts> counts{};
  bool is_vector = false;
};

/// A comparison with the counts that it points to.
class ComparedArrays {
 public:
  ComparedArrays(const std::vector<NamedArray>& tensors, const std::vector<std::string>& names,
                 std::int64_t axis, double max_error, bool with_rules)
      : formats_(parsed(names)), counted_(with_rules ? with_all_rules(formats_) : formats_) {
    const auto exponents = with_rules ? ScaledExponents::counted : ScaledExponents::left_out;
    for (const auto& [name, array] : tensors) count(name, array, axis, exponents);
    std::vector<ComparedTensor> compared;
    for (const CountedArray& array : arrays_)
      compared.push_back(
          {array.name, array.matrix, std::span(array.counts).first(formats_.size()), array.is_vector});
    comparison_ =
        compare_formats(formats_, std::move(compared), {fmt::format("max_error={}", max_error), max_error});
  }

  [[nodiscard]] const FormatComparison& comparison() const { return comparison_; }
  [[nodiscard]] std::optional<std::string> cheapest() const {
    if (!comparison_.cheapest) return std::nullopt;
    return comparison_.formats[*comparison_.cheapest].name;
  }
  [[nodiscard]] std::vector<std::tuple<std::string, std::int64_t, std::int64_t>> tensors() const {
    std::vector<std::tuple<std::string, std::int64_t, std::int64_t>> all;
    for (const CountedArray& array : arrays_)
      all.emplace_back(array.name, array.matrix.rows, array.matrix.columns);
    return all;
  }
  [[nodiscard]] FormatCounts counts(std::size_t tensor, std::size_t format) const {
    return arrays_.at(tensor).counts.at(format);
  }
  /// Whether zeros fill up a block of the tensor under the format.
  [[nodiscard]] bool padded(std::size_t tensor, std::size_t format) const {
    return is_padded(formats_.at(format), arrays_.at(tensor).matrix);
  }
  [[nodiscard]] bool is_vector(std::size_t tensor) const { return arrays_.at(tensor).is_vector; }
  [[nodiscard]] FormatsData explorer() const {
    FormatsData data(counted_);
    for (const CountedArray& array : arrays_) data.add({array.name, array.matrix, array.counts});
    data.advise(format_advice(comparison_));
    data.start_at(formats_[comparison_.best()]);
    return data;
  }

 private:
  /// Without repetitions.
  static std::vector<TensorFormat> parsed(const std::vector<std::string>& names) {
    std::vector<TensorFormat> formats;
    for (const std::string& name : names) append_new(parse_tensor_format(name), formats);
    return formats;
  }

  void count(const std::string& name, nb::handle array, std::int64_t axis, ScaledExponents exponents) {
    const std::string what = fmt::format("'{}'", name);
    const FloatVec input(array, what, Float64::rounded_to_odd);
    const Along along(input.shape(), axis, what.c_str());
    const nb::gil_scoped_release release;
    std::vector<float> moved;
    arrays_.push_back(
        {name, along.matrix(),
         count_formats(along.rows_of(input.values(), moved), along.matrix(), counted_, exponents),
         input.shape().size() < 2});
  }

  std::vector<TensorFormat> formats_, counted_;
  std::vector<CountedArray> arrays_{};
  FormatComparison comparison_{};
};

void bind_sums(nb::module_& module) {
  nb::class_<SharedScale>(module, "SharedScale", "Cost of one scale for a whole tensor.")
      .def_ro("row", &SharedScale::row)
      .def_ro("column", &SharedScale::column)
      .def_ro("largest", &SharedScale::largest, "magnitude there")
      .def_ro("flushed_up_to", &SharedScale::flushed_up_to, "magnitudes up to here become zero")
      .def_ro("flushed_by_rows", &SharedScale::flushed_by_rows,
              "values that would, with a scale for each row");
  nb::class_<ColumnErrors>(module, "ColumnErrors", "Errors of columns, where few of them have the norm.")
      .def_ro("median_error", &ColumnErrors::median)
      .def_ro("worst_tenth_error", &ColumnErrors::worst_tenth, "a tenth of the columns errs by it or more")
      .def_ro("largest", &ColumnErrors::largest, "column of the largest norm")
      .def_ro("norm_ratio", &ColumnErrors::norm_ratio, "its norm over that of the median column");
  nb::class_<FormatCounts>(module, "FormatCounts", "Counts of one format over one tensor.")
      .def_ro("counts", &FormatCounts::counts)
      .def_ro("scale_log2", &FormatCounts::scale_log2,
              "power of two that divided the elements; None of block formats and of those beyond 8 bits")
      .def_prop_ro(
          "median_row_error", [](const FormatCounts& found) { return found.rows.median; },
          "error of the median row, relative to its norm")
      .def_prop_ro("worst_row_error", [](const FormatCounts& found) { return found.rows.worst; })
      .def_prop_ro("worst_row", [](const FormatCounts& found) { return found.rows.worst_row; })
      .def_prop_ro(
          "rows", [](const FormatCounts& found) { return found.rows.rows; }, "that are not zero")
      .def_ro("columns", &FormatCounts::columns, "errors of columns; None where no few have the norm")
      .def_ro("shared", &FormatCounts::shared,
              "element that sets the scale of all, where more than one value in a hundred is flushed by it");
  nb::class_<FormatSum>(module, "FormatSum", "Counts of one format over all tensors.")
      .def_ro("name", &FormatSum::name)
      .def_ro("counts", &FormatSum::counts)
      .def_prop_ro("bits_per_element", &FormatSum::bits_per_element, "with the scales")
      .def_ro("worst_error", &FormatSum::worst_error, "of any tensor, relative to its norm")
      .def_ro("worst", &FormatSum::worst, "index of that tensor; None without tensors")
      .def_ro("worst_row_error", &FormatSum::worst_row_error, "largest error of a row of any tensor")
      .def_ro("most_flushed", &FormatSum::most_flushed,
              "largest share of a tensor's values that becomes zero")
      .def_ro("fits", &FormatSum::fits, "nothing is beyond the limit")
      .def_prop_ro(
          "padded_tensors", [](const FormatSum& sum) { return sum.padded.size(); },
          "tensors with a block that zeros fill up");
}

}  // namespace

void bind_format_comparison(nb::module_& module) {
  bind_sums(module);
  nb::class_<ComparedArrays>(module, "FormatComparison", "Formats held against each other over arrays.")
      .def(nb::init<const std::vector<NamedArray>&, const std::vector<std::string>&, std::int64_t, double,
                    bool>(),
           "tensors"_a, "formats"_a, "axis"_a, "max_error"_a, "with_rules"_a, compare_documentation)
      .def_prop_ro("formats", [](const ComparedArrays& all) { return all.comparison().formats; })
      .def_prop_ro(
          "left_out", [](const ComparedArrays& all) { return all.comparison().left_out; },
          "arrays of one axis, which are in no sum")
      .def_prop_ro("tensors", &ComparedArrays::tensors,
                   "name, rows and columns of each; rows run along the axis of the blocks")
      .def("counts", &ComparedArrays::counts, "tensor"_a, "format"_a, "Counts of one, both by index.")
      .def_prop_ro("cheapest", &ComparedArrays::cheapest, "None where no format stays within the limit")
      .def_prop_ro("verdict", [](const ComparedArrays& all) { return cheapest_line(all.comparison()); })
      .def("is_vector", &ComparedArrays::is_vector, "tensor"_a, "Whether that array has one axis.")
      .def("padded", &ComparedArrays::padded, "tensor"_a, "format"_a,
           "Whether zeros fill up a block of that tensor under that format, both by index.")
      .def(
          "json", [](const ComparedArrays& all) { return formats_explorer_json(all.explorer()); },
          "The formats under every rule that was counted, as the script reads them.")
      .def(
          "page",
          [](const ComparedArrays& all, const std::string& title) {
            return formats_page(title, all.explorer());
          },
          "title"_a, "A self-contained HTML document of them.");
  module.def("decibels", decibels, "relative_error"_a,
             "Signal over noise in dB of a relative error; infinite without error.");
}

}  // namespace halfscope::python
