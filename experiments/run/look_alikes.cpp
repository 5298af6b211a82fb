// Each note appears once, however many options and runs name its format.
#include "experiments/run/look_alikes.hpp"

#include <fmt/format.h>

#include <set>
#include <string>

#include <halfscope/core/stderr_text.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope {

void note_look_alike(const FloatFormat& format) {
  static std::set<std::string> said;
  const std::string note = look_alike_note(format);
  if (!note.empty() && said.insert(note).second) print_stderr(fmt::format("note: {}\n", note));
}

void note_look_alikes(const std::vector<PlannedRun>& runs) {
  for (const PlannedRun& run : runs) {
    for (const Quantizer& quantizer : run.settings.policy.quantizers) note_look_alike(quantizer.format);
  }
}

}  // namespace halfscope
