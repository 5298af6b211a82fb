// Formats of an optimizer's state between its steps, each with a scale of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <halfscope/core/random.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope {

/// Scale of an array of state: none, or 2^floor(log2(largest number of the format / largest magnitude)).
enum class MomentScale : std::uint8_t { none, current };

/// Format of one array of state, as "second_moment" is.
struct MomentFormat {
  std::string slot;  ///< "*": all of them
  Quantizer quantizer{};
  MomentScale scale = MomentScale::none;

  friend bool operator==(const MomentFormat&, const MomentFormat&) = default;
};

/// "SLOT=FORMAT[/ROUNDING][/OVERFLOW][+scaled]", separated by commas; of two for one slot the later holds.
/// Throws InvalidArgument for a text without a slot, as parse_quantizer does, and for another option.
[[nodiscard]] std::vector<MomentFormat> parse_moment_formats(std::string_view text);

/// Rounds an array of state, on the active device. An array of zeros, and one with a number that is not
/// finite, has no scale.
void round_moment(const MomentFormat& format, const RandomStream& stream, Array& moment);

}  // namespace halfscope
