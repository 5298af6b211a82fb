// halfscope._core.ExplorerData, and the files of the loss-scale explorer.
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include <halfscope/core/error.hpp>
#include <halfscope/explorer/explorer_data.hpp>
#include <halfscope/format/quantizer.hpp>

#include "binding/bindings.hpp"

namespace halfscope::python {
namespace nb = nanobind;
using namespace nb::literals;
namespace {

constexpr const char* add_documentation =
    R"doc(Adds the elements of `histogram` times 2^shift_log2 to the tensor called `name` at `step`.

role: "activation_gradient", "weight_gradient", or anything else to choose tensors by. Raises ValueError for a
histogram made for another format.)doc";

void mark(ExplorerData& data, std::string label, double scale_log2) {
  if (!std::isfinite(scale_log2)) throw InvalidArgument(fmt::format("mark '{}' at 2^{}", label, scale_log2));
  data.mark(std::move(label), scale_log2);
}

}  // namespace

void bind_explorer(nb::module_& module) {
  nb::class_<ExplorerData>(module, "ExplorerData", "Counts of tensors by step, and the advice about them.")
      .def(
          "__init__",
          [](ExplorerData* data, const std::string& format) {
            new (data) ExplorerData(parse_format(format));
          },
          "format"_a = "fp16")
      .def("add",
           nb::overload_cast<const std::string&, const std::string&, std::int64_t, const ExponentHistogram&,
                             int>(&ExplorerData::add),
           "name"_a, "role"_a, "step"_a, "histogram"_a, "shift_log2"_a = 0, add_documentation)
      .def("mark", mark, "label"_a, "scale_log2"_a, "A scale to point at.")
      .def(
          "advise",
          [](ExplorerData& data, const std::vector<TensorFit>& fits, const Advice& advice) {
            data.advise(fits, advice);
          },
          "fits"_a, "advice"_a, "Fits of the tensors, by name, and what is advised for all of them.")
      .def("start_at", &ExplorerData::start_at, "scale_log2"_a, "The scale that is shown first.")
      .def("json", explorer_json, "The data as the script reads them, safe inside a <script> element.")
      .def("answer", explorer_answer, "The advice in words, as HTML.")
      .def(
          "page",
          [](const ExplorerData& data, const std::string& title) { return explorer_page(title, data); },
          "title"_a, "A self-contained HTML document.");
  module.def("explorer_script", explorer_script, "The ES module that draws an explorer.");
  module.def("explorer_style", explorer_style, "Its style sheet.");
  module.def("explorer_legend", explorer_legend, "Its words explained, as HTML.");
}

}  // namespace halfscope::python
