// Makes loss scalers.
#include <halfscope/scaling/scalers.hpp>

#include <halfscope/scaling/static_scaler.hpp>

namespace halfscope {

std::unique_ptr<LossScaler> make_unscaled(const ScalerOptions& /*options*/) {
  return std::make_unique<StaticScaler>(1.0);
}

std::unique_ptr<LossScaler> make_static(const ScalerOptions& options) {
  return std::make_unique<StaticScaler>(options.static_scale);
}

std::unique_ptr<LossScaler> make_dynamic(const ScalerOptions& options) {
  return std::make_unique<DynamicScaler>(options.dynamic);
}

}  // namespace halfscope
