// Coverage of a process as a line of JSON, which tests/ptx/coverage.py merges with those of others.
#pragma once

#include <string>
#include <vector>

#include "tests/ptx/machine.hpp"

namespace halfscope::ptx {

/// {"entries": {NAME: launches, ...}, "opcodes": {NAME: executions, ...}} of `entries` and the typed opcodes
/// in their code, of those never launched or executed too.
[[nodiscard]] std::string coverage_line(const Coverage& coverage, const std::vector<const Entry*>& entries);

/// Appends in one piece, so that several processes can share a file. Throws RuntimeFailure.
void append_line(const std::string& file, const std::string& line);

}  // namespace halfscope::ptx
