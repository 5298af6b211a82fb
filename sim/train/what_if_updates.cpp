// Adds multiplied updates to rounded weights.
#include "sim/train/what_if_updates.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include <halfscope/core/error.hpp>
#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/cast/round.hpp>

namespace halfscope {
namespace {

std::vector<WhatIfUpdates> empty_rows(const std::vector<FloatFormat>& formats) {
  std::vector<WhatIfUpdates> rows;
  for (const FloatFormat& format : formats)
    for (int rate = least_rate_log2; rate <= most_rate_log2; ++rate)
      rows.push_back({.format = to_string(format), .rate_log2 = rate});
  return rows;
}

/// `exact` rounded to odd: rounding it again, to fewer bits, gives what rounding `exact` would.
float rounded_to_odd(double exact) {
  const auto nearest = static_cast<float>(exact);
  const bool is_odd = (std::bit_cast<std::uint32_t>(nearest) & 1u) != 0;
  if (!std::isfinite(nearest) || double{nearest} == exact || is_odd) return nearest;
  return std::nextafter(nearest, exact > double{nearest} ? INFINITY : -INFINITY);
}

/// Adds `updates` to `stored` weights, numbers of `format`, and counts what they apply.
void add_updates_at_rate(std::span<const float> stored, std::span<const float> updates,
                         const FloatFormat& format, WhatIfUpdates& row) {
  std::vector<float> scaled(updates.size()), updated(updates.size());
  const float factor = std::ldexp(1.0f, row.rate_log2);
  std::ranges::transform(updates, scaled.begin(), [&](float update) { return factor * update; });
  for (std::size_t i = 0; i < scaled.size(); ++i)
    updated[i] = rounded_to_odd(double{stored[i]} + double{scaled[i]});
  round(updated, updated, {.format = format});
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    const double intended = scaled[i], applied = double{updated[i]} - double{stored[i]};
    if (intended == 0 || !std::isfinite(applied)) continue;
    ++row.nonzero;
    row.lost += applied == 0 ? 1 : 0;
    row.projection.along += applied * intended;
    row.projection.square += intended * intended;
  }
}

}  // namespace

Json to_json(const WhatIfUpdates& row) {
  return {{"format", row.format},
          {"rate_log2", row.rate_log2},
          {"nonzero", row.nonzero},
          {"lost", row.lost},
          {"along_intended", row.projection.along},
          {"intended_square", row.projection.square}};
}

std::vector<FloatFormat> parse_weight_formats(std::string_view names) {
  std::vector<FloatFormat> formats;
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    const FloatFormat format = parse_format(names.substr(0, comma));
    if (std::ranges::count(formats, format) > 0)
      throw InvalidArgument(fmt::format("{} is named twice; name each format once", to_string(format)));
    formats.push_back(format);
    if (comma == names.size()) break;
    names.remove_prefix(comma + 1);
    if (names.empty()) (void)parse_format(names);  // a comma at the end
  }
  return formats;
}

UpdateQuestions::UpdateQuestions(const std::vector<FloatFormat>& formats, std::vector<WhatIfUpdates>* rows)
    : formats_(formats), rows_(rows) {
  if (rows_ != nullptr && rows_->empty()) *rows_ = empty_rows(formats);
}

void UpdateQuestions::before(const Parameter& parameter) {
  if (asks()) before_ = to_host_floats(parameter.master);
}

void UpdateQuestions::after(const Parameter& parameter) {
  if (!asks()) return;
  const Array after = to_host_floats(parameter.master);
  const std::span<const float> weights = before_.values();
  std::vector<float> updates(after.size()), stored(after.size());
  for (std::size_t i = 0; i < updates.size(); ++i) updates[i] = after[i] - weights[i];
  auto row = rows_->begin();
  for (const FloatFormat& format : formats_) {
    round(weights, stored, {.format = format});
    for (int rate = least_rate_log2; rate <= most_rate_log2; ++rate)
      add_updates_at_rate(stored, updates, format, *row++);
  }
}

}  // namespace halfscope
