// Formats of options, and the note about those that are mistaken for OCP's.
#include "experiments/cli/format_option.hpp"

#include <fmt/format.h>

#include <halfscope/core/stderr_text.hpp>

namespace halfscope {

FloatFormat parse_format_option(std::string_view name) {
  const FloatFormat format = parse_format(name);
  const std::string note = look_alike_note(format);
  if (!note.empty()) print_stderr(fmt::format("note: {}\n", note));
  return format;
}

}  // namespace halfscope
