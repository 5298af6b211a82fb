// DType conversions on the device, one thread per element.
#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/detail/launch.cuh>

namespace halfscope::cuda {
namespace {

struct ConvertElement {
  ElementReader from;
  ElementWriter to;
  HALFSCOPE_HD void operator()(std::int64_t i) const { to.set(i, from[i]); }
};

}  // namespace

void convert(const ConstArrayView& from, const ArrayView& to) {
  for_each(static_cast<std::int64_t>(from.size()), ConvertElement{on_device(from), on_device(to)}, "convert");
}

}  // namespace halfscope::cuda
