// Makes loss scalers.
#include <halfscope/scaling/scalers.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace halfscope {
namespace {

InvalidArgument unknown_option(const ScalerEntry& scaler, std::string_view option) {
  std::vector<std::string_view> names;
  for (const ScalerOption& known : scaler.options) names.push_back(known.name);
  return InvalidArgument(
      fmt::format("{}: the loss scaler {} has no such option (it has {}); see 'list scalers'", option,
                  scaler.name, names.empty() ? "no option" : fmt::format("{}", fmt::join(names, ", "))));
}

}  // namespace

ScalerSettings resolve_options(const ScalerEntry& scaler, const ScalerSettings& settings) {
  ScalerSettings resolved;
  for (const ScalerOption& option : scaler.options) resolved.emplace(option.name, option.value);
  for (const auto& [name, value] : settings) {
    const auto known = resolved.find(name);
    if (known == resolved.end()) throw unknown_option(scaler, name);
    known->second = value;
  }
  const double initial = option_or(resolved, "initial_scale", 1);
  const double low = option_or(resolved, "min_scale", 0),
               high = option_or(resolved, "max_scale", largest_scale);
  if (!(low <= initial && initial <= high)) {
    throw InvalidArgument(
        fmt::format("initial_scale = {:g}: the loss scaler {} stays between min_scale = {:g} and "
                    "max_scale = {:g}",
                    initial, scaler.name, low, high));
  }
  return resolved;
}

std::unique_ptr<LossScaler> make_scaler(const ScalerEntry& scaler, const ScalerSettings& settings) {
  return scaler.make(resolve_options(scaler, settings));
}

}  // namespace halfscope
