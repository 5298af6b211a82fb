// A loss scaler that Python holds.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include <halfscope/scaling/scalers.hpp>

namespace halfscope::python {

struct NamedScaler {
  std::string name;
  ScalerSettings options;  ///< every one that it has
  std::unique_ptr<LossScaler> scaler;
};

/// Options of loss scalers from numbers by name. Throws TypeError for a value that is no number.
[[nodiscard]] ScalerSettings settings_of(const nanobind::dict& options);

/// `name` is one of the table, or a number, which is a static scale. Throws InvalidArgument.
[[nodiscard]] NamedScaler make_named_scaler(const std::string& name, const ScalerSettings& options);

}  // namespace halfscope::python
