// Formats of options, and the note about those that are mistaken for OCP's.
#include "experiments/cli/format_option.hpp"

#include <fmt/format.h>

#include <halfscope/core/error.hpp>
#include <halfscope/core/stderr_text.hpp>

#include "experiments/run/look_alikes.hpp"

namespace halfscope {

Quantizer parse_quantizer_option(std::string_view text) {
  const Quantizer quantizer = parse_quantizer(text);
  note_look_alike(quantizer.format);
  return quantizer;
}

FloatFormat parse_counted_format(std::string_view text) {
  const auto [format, rounding, overflow, random_bits] = parse_quantizer_option(text);
  if (rounding != Rounding::nearest_even) {
    throw InvalidArgument(
        fmt::format("--format '{}': give --format {}; casts to nearest even are counted, no other rounding",
                    text, to_string(format)));
  }
  if (overflow == Overflow::saturate)
    print_stderr(fmt::format("note: {}: numbers that saturate are counted as overflow\n", text));
  return format;
}

FloatFormat parse_format_option(std::string_view name) {
  const FloatFormat format = parse_format(name);
  note_look_alike(format);
  return format;
}

TensorFormat parse_tensor_format_option(std::string_view name) {
  TensorFormat format = parse_tensor_format(name);
  note_look_alike(element_format(format));
  return format;
}

}  // namespace halfscope
