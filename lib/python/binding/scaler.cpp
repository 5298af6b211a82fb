// Makes loss scalers of names and options.
#include "binding/scaler.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

namespace halfscope::python {
namespace nb = nanobind;

ScalerSettings settings_of(const nb::dict& options) {
  ScalerSettings settings;
  for (const auto& [key, value] : options) {
    const auto name = nb::cast<std::string>(key);
    double number = 0;
    if (!nb::try_cast(nb::handle(value), number)) {
      throw nb::type_error(fmt::format("LossScaler: {}= is no number", name).c_str());
    }
    settings[name] = number;
  }
  return settings;
}

NamedScaler make_named_scaler(const std::string& name, const ScalerSettings& options) {
  const ScalerEntry& entry = find_scaler(name);
  check_scaler_options(options);
  ScalerSettings resolved = resolve_options(name, options);
  return {name, resolved, entry.make(resolved)};
}

}  // namespace halfscope::python
