// Makes a loss scaler of a name and options.
#include "binding/scaler.hpp"

#include <fmt/format.h>

namespace halfscope::python {

NamedScaler make_named_scaler(const std::string& name, const ScalerSettings& options) {
  const ScalerEntry& entry = find_scaler(name);
  for (const auto& [option, value] : options) {
    const auto& known = find_in_table("scaler option", option, scaler_option_table);
    (void)parse_scaler_option(known, fmt::format("{}", value));
  }
  ScalerSettings resolved = resolve_options(name, options);
  return {name, resolved, entry.make(resolved)};
}

}  // namespace halfscope::python
