// Runs a step at each of several loss scales.
#include "sim/train/scale_probe.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <halfscope/core/name_list.hpp>
#include <halfscope/scaling/scaler_options.hpp>

namespace halfscope {
namespace {

/// Nothing where `text` is no number.
std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

double parse_scale(std::string_view text) {
  constexpr std::string_view power = "2^";
  const bool is_power = text.substr(0, power.size()) == power;
  std::optional<double> value = number_in(is_power ? text.substr(power.size()) : text);
  if (value && is_power) value = std::exp2(*value);
  if (!value || !(*value >= smallest_scale && *value <= largest_scale)) {
    throw InvalidArgument(
        fmt::format("'{}' is no loss scale; give numbers from {:.4g} to {:.4g} or powers such as 2^10, "
                    "separated by commas",
                    text, smallest_scale, largest_scale));
  }
  return *value;
}

}  // namespace

std::optional<double> ScaleProbe::error() const {
  std::vector<double> errors;
  for (const Fp32Comparison& tensor : weight_gradients) {
    if (!tensor.finite) return std::numeric_limits<double>::infinity();
    if (tensor.relative_error) errors.push_back(*tensor.relative_error);
  }
  if (errors.empty()) return std::nullopt;
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  if (errors.size() % 2 == 1) return *middle;
  return (*std::max_element(errors.begin(), middle) + *middle) / 2;
}

Json to_json(const ScaleProbe& probe) {
  const std::optional<double> error = probe.error();
  Json tensors = Json::array();
  bool finite = true;
  for (const Fp32Comparison& tensor : probe.weight_gradients) {
    tensors.push_back(to_json(tensor));
    finite = finite && tensor.finite;
  }
  return {{"scale", probe.scale},
          {"finite", finite},
          {"error", error && finite ? Json(*error) : Json()},
          {"tensors", tensors}};
}

std::vector<double> parse_scales(std::string_view text) {
  std::vector<double> scales;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    scales.push_back(parse_scale(text.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) (void)parse_scale(text);  // a comma at the end
  }
  return scales;
}

std::vector<ScaleProbe> probe_scales(const ProbeOptions& options, std::uint64_t seed,
                                     const StepContext& context, const RepeatStep& repeat) {
  const Fp32Reference reference({Role::weight_gradient}, seed, context.step, repeat);
  std::vector<ScaleProbe> probes;
  probes.reserve(options.scales.size());
  for (const double scale : options.scales) {
    StepContext scaled = context;
    scaled.loss_scale = scale;
    scaled.layerwise.reset();
    probes.push_back({scale, reference.compare(options.policy, scaled, repeat)});
  }
  return probes;
}

}  // namespace halfscope
