// Parses formats of state, scales and rounds.
#include "sim/optim/moment_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <halfscope/core/error.hpp>
#include <halfscope/core/name_list.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/cast/round.hpp>

#include "lib/nn/elementwise.hpp"

namespace halfscope {
namespace {

constexpr std::string_view scaled_suffix = "+scaled";

MomentFormat parse_moment_format(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw InvalidArgument(fmt::format("'{}': give SLOT=FORMAT, as second_moment=bf16/stochastic", text));
  MomentFormat format{.slot = std::string(text.substr(0, equals))};
  std::string_view quantizer = text.substr(equals + 1);
  const std::size_t plus = quantizer.find('+');
  if (plus != std::string_view::npos) {
    if (quantizer.substr(plus) != scaled_suffix) {
      throw InvalidArgument(
          fmt::format("'{}': there is no {}; give {}", text, quantizer.substr(plus), scaled_suffix));
    }
    format.scale = MomentScale::current;
    quantizer = quantizer.substr(0, plus);
  }
  format.quantizer = parse_quantizer(quantizer);
  return format;
}

/// Exponents that FP32 has both ways.
constexpr int largest_exponent = 126;

float scale_of(const MomentFormat& format, const Array& moment) {
  if (format.scale == MomentScale::none) return 1;
  const float largest = largest_magnitude(moment.view());
  if (largest == 0 || !std::isfinite(largest)) return 1;
  const double room = static_cast<double>(from_bits(format.quantizer.format.max_finite_bits())) /
                      static_cast<double>(largest);
  return std::ldexp(1.0f, std::clamp(std::ilogb(room), -largest_exponent, largest_exponent));
}

}  // namespace

std::vector<MomentFormat> parse_moment_formats(std::string_view text) {
  std::vector<MomentFormat> formats;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    formats.push_back(parse_moment_format(part));
  }
  return formats;
}

void round_moment(const MomentFormat& format, const RandomStream& stream, Array& moment) {
  if (format.quantizer.is_identity()) return;
  const float factor = scale_of(format, moment);
  if (factor != 1) scale(moment.view(), factor, moment.values());
  round_in_threads(moment.values(), format.quantizer, stream);
  if (factor != 1) scale(moment.view(), 1 / factor, moment.values());
}

}  // namespace halfscope
