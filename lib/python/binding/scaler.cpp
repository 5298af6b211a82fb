// Makes a loss scaler of a name and options.
#include "binding/scaler.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace halfscope::python {
namespace {

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool read = error == std::errc{} && end == text.data() + text.size();
  return read ? std::optional(value) : std::nullopt;
}

}  // namespace

NamedScaler make_named_scaler(const std::string& name, ScalerSettings options) {
  const std::optional<double> scale = number_in(name);
  const ScalerEntry& entry = find_in_table("loss scaler", scale ? "static" : name, scaler_table);
  if (scale && !options.emplace("initial_scale", *scale).second) {
    throw InvalidArgument(fmt::format("initial_scale: the loss scaler {} is a constant; leave it out", name));
  }
  for (const auto& [option, value] : options) {
    const auto& known = find_in_table("scaler option", option, scaler_option_table);
    (void)parse_scaler_option(known, fmt::format("{}", value));
  }
  ScalerSettings resolved = resolve_options(entry, options);
  return {name, resolved, entry.make(resolved)};
}

}  // namespace halfscope::python
