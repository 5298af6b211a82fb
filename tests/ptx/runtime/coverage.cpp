// Coverage of a process as a line of JSON; names are those of PTX and need no escapes.
#include "tests/ptx/runtime/coverage.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>

#include <halfscope/core/error.hpp>

namespace halfscope::ptx {
namespace {

using Counts = std::map<std::string_view, std::uint64_t>;

std::string json(const Counts& counts) {
  std::vector<std::string> fields;
  for (const auto& [name, count] : counts) fields.push_back(fmt::format("\"{}\": {}", name, count));
  return fmt::format("{{{}}}", fmt::join(fields, ", "));
}

Counts launches_of(const Coverage& coverage, const std::vector<const Entry*>& entries) {
  Counts counts;
  for (const Entry* entry : entries) {
    const auto launched = coverage.launches.find(entry->name);
    counts[entry->name] = launched == coverage.launches.end() ? 0 : launched->second;
  }
  return counts;
}

Counts executions_of(const Coverage& coverage, const std::vector<const Entry*>& entries) {
  Counts counts;
  for (const Entry* entry : entries) {
    for (const Instruction& instruction : entry->code) counts[all_opcodes()[instruction.opcode]->name] = 0;
  }
  for (auto& [name, count] : counts) count = coverage.executed(name);
  return counts;
}

}  // namespace

std::string coverage_line(const Coverage& coverage, const std::vector<const Entry*>& entries) {
  return fmt::format("{{\"entries\": {}, \"opcodes\": {}}}\n", json(launches_of(coverage, entries)),
                     json(executions_of(coverage, entries)));
}

void append_line(const std::string& file, const std::string& line) {
  const int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const bool written =
      opened >= 0 && ::write(opened, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int error = errno;
  if (opened >= 0) ::close(opened);
  if (!written) throw RuntimeFailure(fmt::format("append to {}: {}", file, std::strerror(error)));
}

}  // namespace halfscope::ptx
