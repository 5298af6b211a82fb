// Checks sizes; on the CPU there are floats only, so that converting is copying.
#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/cast/round.hpp>

namespace halfscope {

void convert(const ConstArrayView& from, const ArrayView& to) {
  detail::check_equal_sizes("convert", from.size(), to.size());
  if (active_device() == Device::cuda) return cuda::convert(from, to);
  copy_values(from.floats(), to.floats());
}

void round_into(std::span<const float> from, const ArrayView& to, const Quantizer& q,
                const RandomStream& stream) {
  detail::check_equal_sizes("round_into", from.size(), to.size());
  if (active_device() == Device::cuda) return cuda::round_into(from, to, q, stream);
  round(from, to.floats(), q, stream);
}

Array to_dtype(Array array, DType storage) {
  return array.dtype() == storage ? std::move(array) : stored_copy(array, storage);
}

Array stored_copy(const Array& array, DType storage) {
  Array copy(array.shape(), storage, array.device());
  convert(array.view(), copy.view());
  return copy;
}

Array to_host_floats(const Array& array) {
  if (array.dtype() == DType::f32) return array.to(Device::cpu);
  return stored_copy(array, DType::f32).to(Device::cpu);
}

FloatsOf::FloatsOf(const Array& array) {
  const bool widens = array.dtype() != DType::f32;
  if (widens) copy_ = stored_copy(array, DType::f32);
  values_ = widens ? std::as_const(copy_).values() : array.values();
}

}  // namespace halfscope
