// Formats of options, and the note about those that are mistaken for OCP's.
#include "experiments/cli/format_option.hpp"

#include <fmt/format.h>

#include <halfscope/core/error.hpp>
#include <halfscope/core/stderr_text.hpp>

namespace halfscope {

Quantizer parse_quantizer_option(std::string_view text) {
  const Quantizer quantizer = parse_quantizer(text);
  const std::string note = look_alike_note(quantizer.format);
  if (!note.empty()) print_stderr(fmt::format("note: {}\n", note));
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

}  // namespace halfscope
