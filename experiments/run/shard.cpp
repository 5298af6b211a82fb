// Chooses runs by their place in the list.
#include "experiments/run/shard.hpp"

#include <fmt/format.h>

#include <charconv>

#include "sim/train/start_weights.hpp"

namespace halfscope {
namespace {

/// A whole number from 1 at the beginning of `text`, which loses it; 0 where there is none.
std::int64_t take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return 0;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool is_in(const Shard& shard, std::size_t place) {
  return static_cast<std::int64_t>(place) % shard.count == shard.index - 1;
}

/// Marks the runs whose weights `run` needs, and those that they need, where they are not done.
void mark_sources(const std::vector<PlannedRun>& runs, std::size_t run, std::vector<bool>& chosen) {
  for (const std::string& arm : source_arms(runs[run].settings.config)) {
    const auto path = runs[run].folder.of_arm(arm).path();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (chosen[i] || runs[i].folder.path() != path || runs[i].folder.is_done()) continue;
      chosen[i] = true;
      mark_sources(runs, i, chosen);
    }
  }
}

}  // namespace

Shard parse_shard(std::string_view text) {
  constexpr std::int64_t most = 1'000'000;
  std::string_view rest = text;
  Shard shard{.index = take_number(rest)};
  const bool has_slash = rest.starts_with('/');
  if (has_slash) rest.remove_prefix(1);
  shard.count = take_number(rest);
  if (!has_slash || !rest.empty() || shard.index < 1 || shard.index > shard.count || shard.count > most) {
    throw InvalidArgument(
        fmt::format("--shard '{}': give I/N, the share I from 1 to N of N shares, as 2/12", text));
  }
  return shard;
}

std::vector<PlannedRun> share_of(const std::vector<PlannedRun>& runs, const Shard& shard) {
  std::vector<PlannedRun> own;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (is_in(shard, i)) own.push_back(runs[i]);
  return own;
}

std::vector<PlannedRun> runs_of_shard(const std::vector<PlannedRun>& runs, const Shard& shard) {
  std::vector<bool> chosen(runs.size(), false);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!is_in(shard, i)) continue;
    chosen[i] = true;
    if (!runs[i].folder.is_done()) mark_sources(runs, i, chosen);
  }
  std::vector<PlannedRun> own;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (chosen[i]) own.push_back(runs[i]);
  return own;
}

}  // namespace halfscope
