// Reading options of loss scalers.
#include <halfscope/scaling/scaler_options.hpp>

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include <halfscope/core/names.hpp>

namespace halfscope {

double parse_scaler_option(const ScalerOptionEntry& option, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool read = error == std::errc{} && end == text.data() + text.size();
  const bool whole = option.kind == OptionKind::whole_number;
  if (!read || !(value >= option.low && value <= option.high) || (whole && value != std::floor(value))) {
    throw InvalidArgument(fmt::format("{} = '{}': give {} from {:.4g} to {:.4g}", option.name, text,
                                      whole ? "an integer" : "a number", option.low, option.high));
  }
  return value;
}

void check_scaler_options(const ScalerSettings& settings) {
  for (const auto& [name, value] : settings) {
    const ScalerOptionEntry& option = find_in_table("scaler option", name, scaler_option_table);
    (void)parse_scaler_option(option, fmt::format("{}", value));
  }
}

double option_or(const ScalerSettings& settings, std::string_view name, double otherwise) {
  const auto found = settings.find(name);
  return found == settings.end() ? otherwise : found->second;
}

}  // namespace halfscope
