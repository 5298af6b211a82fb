// halfscope.BlockCounts and count_blocks.
#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <optional>
#include <utility>

#include <halfscope/core/error.hpp>
#include <halfscope/stats/block_counts.hpp>

#include "binding/along.hpp"
#include "binding/bindings.hpp"
#include "binding/floats.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* count_documentation =
    R"doc(Counts what a block format does to an array, which stays as it is; see `round` for the values.

array: any shape, float32, float16 or bfloat16, in CPU memory; NumPy, PyTorch, JAX, or what speaks DLPack.
format: a block format: "mxfp8_e4m3", "mxfp4/floor", "nvfp4", "block(fp8_e4m3, 1x64, e8m0/rceil)".
axis: the one along which blocks run. A last block that the array does not fill counts as if zeros followed.

Raises ValueError for another format and an axis that there is not, TypeError as `round` does.)doc";

/// All counts of a matrix, each an integer that adds up.
using Numbers = std::array<std::int64_t, sizeof(BlockCounts) / sizeof(std::int64_t)>;
using NumberArray = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::object numbers(const BlockCounts& counts) {
  const auto all = std::bit_cast<Numbers>(counts);
  auto copy = std::make_unique_for_overwrite<std::int64_t[]>(all.size());
  std::ranges::copy(all, copy.get());
  return to_array(std::move(copy), {all.size()}, nb::none());
}

BlockCounts from_numbers(const NumberArray& given) {
  Numbers all{};
  if (given.size() != all.size())
    throw InvalidArgument(fmt::format("BlockCounts: {} numbers; give {}", given.size(), all.size()));
  std::copy_n(given.data(), all.size(), all.begin());
  return std::bit_cast<BlockCounts>(all);
}

std::optional<std::pair<int, int>> scale_range(const BlockCounts& counts, const std::string& format) {
  const auto range = counts.scale_range(parse_block_format(format).scale());
  if (!range) return std::nullopt;
  return std::pair{range->low, range->high};
}

BlockCounts count_array(nb::handle array, const std::string& name, std::int64_t axis) {
  const BlockFormat format = parse_block_format(name);
  const FloatVec input(array, "count_blocks");
  const Along along(input.shape(), axis, "count_blocks");
  const nb::gil_scoped_release release;
  std::vector<float> moved;
  return count_blocks(along.rows_of(input.values(), moved), along.matrix(), format);
}

}  // namespace

void bind_block_counts(nb::module_& module) {
  nb::class_<BlockCounts>(module, "BlockCounts",
                          "Counts of elements, blocks and scales that a format in blocks changed.")
      .def(nb::init<>())
      .def_ro("elements", &BlockCounts::elements)
      .def_ro("zeros", &BlockCounts::zeros)
      .def_ro("nonfinite", &BlockCounts::nonfinite)
      .def_ro("lost", &BlockCounts::lost)
      .def_ro("flushed", &BlockCounts::flushed)
      .def_ro("flushed_by_scale", &BlockCounts::flushed_by_scale)
      .def_ro("subnormal", &BlockCounts::subnormal)
      .def_ro("clipped", &BlockCounts::clipped)
      .def_ro("overflow", &BlockCounts::overflow)
      .def_ro("blocks", &BlockCounts::blocks)
      .def_ro("zero_blocks", &BlockCounts::zero_blocks)
      .def_ro("nonfinite_blocks", &BlockCounts::nonfinite_blocks)
      .def_ro("clipped_blocks", &BlockCounts::clipped_blocks)
      .def_ro("overflow_blocks", &BlockCounts::overflow_blocks)
      .def_ro("blocks_at_risk", &BlockCounts::blocks_at_risk)
      .def_ro("zero_scales", &BlockCounts::zero_scales)
      .def_ro("least_scales", &BlockCounts::least_scales)
      .def_ro("largest_scales", &BlockCounts::largest_scales)
      .def_ro("nan_scales", &BlockCounts::nan_scales)
      .def("signal_to_noise_db", &BlockCounts::signal_to_noise_db,
           "10 log10 of signal over error; infinity without error, NaN without signal.")
      .def(
          "relative_error", [](const BlockCounts& counts) { return relative_error(counts); },
          "Norm of the error over that of the tensor; infinite where finite elements became NaN or infinite.")
      .def("scale_range", scale_range, nb::arg("format"),
           "Least and largest floor(log2) of the scales, which are of `format`; None where all are zero or "
           "NaN.")
      .def("merge", &BlockCounts::merge, nb::arg("part"), "Adds the counts of another part or step.")
      .def("numbers", numbers, nb::sig("def numbers(self) -> numpy.ndarray"),
           "All counts as int64 that add up, for a sum over processes.")
      .def_static("from_numbers", from_numbers, nb::arg("numbers"),
                  nb::sig("def from_numbers(numbers: numpy.ndarray) -> BlockCounts"),
                  "Counts of such numbers. Raises ValueError for another number of them.")
      .def(nb::self == nb::self);
  module.def("count_blocks", count_array, nb::arg("array"), nb::arg("format"), nb::kw_only(),
             nb::arg("axis") = -1, count_documentation);
}

}  // namespace halfscope::python
