// Collects and widens the elements of an array on the device.
#include <halfscope/kernel/cast/detail/gather.hpp>

#include <halfscope/kernel/cast/detail/widen_element.hpp>
#include <halfscope/kernel/detail/launch.cuh>

namespace halfscope::cuda {
namespace {

struct Gather {
  StridedArray array;
  float* out;

  template <typename Stored>
  HALFSCOPE_HD Stored at(std::int64_t offset) const {
    return reinterpret_cast<const Stored*>(array.data)[offset];
  }
  HALFSCOPE_HD float element(std::int64_t offset) const {
    switch (array.type) {
      case DType::f16:
        return from_bits(widen_code<fp16>(at<std::uint16_t>(offset)));
      case DType::bf16:
        return from_bits(std::uint32_t{at<std::uint16_t>(offset)} << 16);
      case DType::f32:
        return at<float>(offset);
      case DType::f64:
        return rounded_to_odd(at<double>(offset));
      case DType::f8_e4m3:
        return from_bits(widen_code<fp8_e4m3>(at<std::uint8_t>(offset)));
      case DType::f8_e5m2:
        return from_bits(widen_code<fp8_e5m2>(at<std::uint8_t>(offset)));
    }
    return 0;
  }
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    std::int64_t offset = 0, left = i;
    for (std::size_t axis = array.axes; axis-- > 0;) {
      const std::int64_t extent = array.extents[axis];
      offset += left % extent * array.strides[axis];
      left /= extent;
    }
    out[i] = element(offset);
  }
};

}  // namespace

void gather(const StridedArray& array, std::span<float> out) {
  (void)on_device(std::span(array.data, out.size()));
  for_each(static_cast<std::int64_t>(out.size()), Gather{array, on_device(out)}, "gather");
}

}  // namespace halfscope::cuda
