// Counting on a GPU without waiting for it: what halfscope.torch.watch does with CUDA tensors.
#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <halfscope/core/error.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/kernel/histogram/binned_histogram.hpp>
#include <halfscope/kernel/update/update_effect.hpp>

#include "binding/bindings.hpp"
#include "binding/floats.hpp"

namespace halfscope::python {
namespace nb = nanobind;
namespace {

constexpr const char* can_count_documentation =
    "Whether this build has CUDA and the machine a GPU that it can use: arrays there are counted there.";

constexpr const char* device_histogram_documentation =
    R"doc(Queues on `stream`: adds the elements of `array` to `bins`, which `Histogram.from_bins` takes for `format`.

array: as Histogram.update takes it, on a GPU. bins: int64 of one axis on the same GPU, zeros at first; neither may be
freed or changed but by what is queued on `stream` afterwards. stream: a cudaStream_t as a number, 1 for the default
one. Raises ValueError for arrays elsewhere and another number of bins.)doc";

constexpr const char* ratio_documentation =
    "As queue_histogram, for |dw| / |w| of the elements in which neither is zero.";

constexpr const char* updates_documentation =
    R"doc(Queues on `stream` what `lost_updates` counts for `format`, into `numbers`: int64, four zeros on the GPU.

How many updates are not zero; how many of them are lost; and the bits of two doubles, the sums of what is applied and
of what was intended. As queue_histogram in all else.)doc";

using Counts = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cuda>;

/// Elements on the GPU on which their counts are.
struct Input : FloatVec {
  Input(nb::handle array, const Counts& counts, std::uintptr_t stream)
      : FloatVec(array, "queue", Float64::rounded_to_odd, Where::anywhere, stream) {
    if (device() != Device::cuda || gpu() != counts.device_id())
      throw InvalidArgument("queue: the array and its counts are not on the same GPU");
  }
};

std::span<std::int64_t> checked(const Counts& counts, std::size_t size) {
  if (counts.size() != size)
    throw InvalidArgument(fmt::format("queue: {} numbers for counts; {} are needed", counts.size(), size));
  return {counts.data(), size};
}

void queue_histogram(nb::handle array, const Counts& bins, std::uintptr_t stream, const std::string& format) {
  const FloatFormat parsed = parse_format(format);
  const Input input(array, bins, stream);
  const nb::gil_scoped_release release;
  cuda::queue_histogram(input.values(), checked(bins, binned::size), binade_edges(parsed));
}

/// Weights and their updates.
struct InputPair {
  Input weights, updates;

  InputPair(nb::handle first, nb::handle second, const Counts& counts, std::uintptr_t stream)
      : weights(first, counts, stream), updates(second, counts, stream) {
    if (weights.values().size() != updates.values().size())
      throw InvalidArgument("queue: give as many updates as weights");
  }
};

void queue_ratios(nb::handle weights, nb::handle updates, const Counts& bins, std::uintptr_t stream,
                  const std::string& format) {
  const FloatFormat parsed = parse_format(format);
  const InputPair pair(weights, updates, bins, stream);
  const nb::gil_scoped_release release;
  cuda::queue_ratio_histogram(pair.weights.values(), pair.updates.values(), checked(bins, binned::size),
                              binade_edges(parsed));
}

void queue_lost_updates(nb::handle weights, nb::handle updates, const Counts& numbers, std::uintptr_t stream,
                        const std::string& format) {
  const Quantizer storage{parse_format(format)};
  const InputPair pair(weights, updates, numbers, stream);
  const nb::gil_scoped_release release;
  cuda::queue_update_effect(pair.weights.values(), pair.updates.values(),
                            {.before = storage, .after = storage, .stream = {}},
                            checked(numbers, cuda::update_effect_numbers));
}

}  // namespace

void bind_device(nb::module_& module) {
  module.def(
      "can_count_on_gpu", [] { return describe_cuda_device().has_value(); }, can_count_documentation);
  module.def("queue_histogram", queue_histogram, nb::arg("array"), nb::arg("bins"), nb::arg("stream"),
             nb::arg("format") = "fp16", device_histogram_documentation);
  module.def("queue_update_ratios", queue_ratios, nb::arg("weights"), nb::arg("updates"), nb::arg("bins"),
             nb::arg("stream"), nb::arg("format") = "fp16", ratio_documentation);
  module.def("queue_lost_updates", queue_lost_updates, nb::arg("weights"), nb::arg("updates"),
             nb::arg("numbers"), nb::arg("stream"), nb::arg("format") = "fp16", updates_documentation);
}

}  // namespace halfscope::python
