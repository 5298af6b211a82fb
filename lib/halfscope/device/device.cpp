// The active device, which does not depend on what the device is.
#include <halfscope/device/device.hpp>

#include <halfscope/device/detail/device_memory.hpp>

namespace halfscope {

DeviceScope::DeviceScope(Device device) : previous_(detail::active_device) {
  if (device == Device::cuda) device_memory::require_device();
  detail::active_device = device;
}

}  // namespace halfscope
