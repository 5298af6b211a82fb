// Makes loss scalers.
#include <halfscope/scaling/scalers.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace halfscope {
namespace {

InvalidArgument unknown_option(const ScalerEntry& scaler, std::string_view option) {
  std::vector<std::string_view> names;
  for (const ScalerOption& known : scaler.options) names.push_back(known.name);
  return InvalidArgument(
      fmt::format("{}: the loss scaler {} has no such option (it has {}); see 'list scalers'", option,
                  scaler.name, names.empty() ? "no option" : fmt::format("{}", fmt::join(names, ", "))));
}

/// Throws InvalidArgument with the number that "2^k" stands for.
void refuse_power_of_two(const std::string& text) {
  constexpr std::string_view base = "2^";
  if (!text.starts_with(base)) return;
  int exponent = 0;
  const auto [end, error] = std::from_chars(text.data() + base.size(), text.data() + text.size(), exponent);
  const float scale = std::ldexp(1.0f, exponent);
  if (error != std::errc{} || end != text.data() + text.size() || scale == 0 || !std::isfinite(scale)) return;
  throw InvalidArgument(fmt::format("loss scale '{}': give the number, {}", text, scale));
}

/// The number that a scaler's name is, if it is one. Throws InvalidArgument where it cannot be a scale.
std::optional<double> static_scale(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end == text.data() || end != text.data() + text.size()) {
    refuse_power_of_two(text);
    return std::nullopt;
  }
  const auto as_float = static_cast<float>(value);
  if (error != std::errc{} || !(as_float > 0) || !std::isfinite(as_float)) {
    throw InvalidArgument(fmt::format(
        "loss scale '{}': give a positive number that FP32 holds, or a name of 'list scalers'", text));
  }
  return value;
}

}  // namespace

const ScalerEntry& find_scaler(const std::string& name) {
  return find_in_table("loss scale", static_scale(name) ? "static" : name, scaler_table);
}

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

ScalerSettings resolve_options(const std::string& name, ScalerSettings settings) {
  // config.json holds the number twice, so it may come back as both.
  if (const auto scale = static_scale(name)) {
    const double initial = settings.emplace("initial_scale", *scale).first->second;
    if (initial != *scale) {
      throw InvalidArgument(
          fmt::format("initial_scale = {:g}: loss_scale = {} is a constant; leave one out", initial, name));
    }
  }
  return resolve_options(find_scaler(name), settings);
}

std::unique_ptr<LossScaler> make_scaler(const ScalerEntry& scaler, const ScalerSettings& settings) {
  return scaler.make(resolve_options(scaler, settings));
}

std::unique_ptr<LossScaler> make_scaler(const std::string& name, const ScalerSettings& settings) {
  return find_scaler(name).make(resolve_options(name, settings));
}

}  // namespace halfscope
