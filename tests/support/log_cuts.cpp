// Logs that a kill cut after any byte: what they say is what their whole lines say.
#include "tests/support/log_cuts.hpp"

#include <algorithm>
#include <string_view>

#include <halfscope/core/error.hpp>

namespace halfscope {
namespace log_cuts_of_tests {
namespace {

/// Whether another object of the line, or the end of its array, begins there.
bool has_object_at(std::string_view rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" ,"), rest.size()));
  return rest.starts_with("{\"") || rest.starts_with("]");
}

/// Verdicts of the log up to each carriage return of its next line, up to each entry of the Trainer's
/// history or of an array, and behind all of it.
std::vector<std::string> allowed_behind(const SkipLogReader& before, std::string_view line) {
  const bool has_entries = line.find("log_history") != std::string_view::npos;
  std::vector<std::string> allowed{said_by(before)};
  for (std::size_t at = 0; at <= line.size(); ++at) {
    const bool ends_entry = at > 0 && line[at - 1] == '}' && (has_entries || has_object_at(line.substr(at)));
    if (at < line.size() && line[at] != '\r' && !ends_entry) continue;
    SkipLogReader reader = before;
    reader.line(line.substr(0, at));
    allowed.push_back(said_by(reader));
  }
  return allowed;
}

}  // namespace
}  // namespace log_cuts_of_tests

std::string said_by(const SkipLogReader& reader) {
  try {
    return verdict_of(reader.finish());
  } catch (const InvalidArgument&) {
    return "refused";
  }
}

std::string misread_cut(const std::vector<std::string>& lines) {
  SkipLogReader before;
  for (const std::string_view line : lines) {
    const std::vector<std::string> allowed = log_cuts_of_tests::allowed_behind(before, line);
    for (std::size_t size = 1; size <= line.size(); ++size) {
      SkipLogReader cut = before;
      cut.cut_line(line.substr(0, size));
      if (std::ranges::find(allowed, said_by(cut)) == allowed.end())
        return std::string(line.substr(0, size)) + " -> " + said_by(cut);
    }
    before.line(line);
  }
  return {};
}

}  // namespace halfscope
