// The runs of a sweep whose shares are trained apart, as the experiment's folder lists them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>

namespace halfscope {

/// Seeds by arm.
using SweepRuns = std::map<std::string, std::set<std::int64_t>>;

/// Runs listed in `folder`/sweep.json; none without that file. Throws InvalidArgument with the file.
[[nodiscard]] SweepRuns read_sweep(const std::filesystem::path& folder);

/// Adds `runs` to that file, which every share of one request writes alike.
void add_to_sweep(const std::filesystem::path& folder, const SweepRuns& runs);

}  // namespace halfscope
