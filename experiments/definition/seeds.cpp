// Reads seeds.
#include "experiments/definition/seeds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

#include <halfscope/core/error.hpp>
#include <halfscope/core/name_list.hpp>

namespace halfscope {

std::int64_t parse_seed(std::string_view text) {
  std::uint32_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seed);
  if (text.empty() || error != std::errc{} || rest != end)
    throw InvalidArgument(fmt::format("seed '{}': give a whole number from 0 to {}", text,
                                      std::numeric_limits<std::uint32_t>::max()));
  return seed;
}

std::vector<std::int64_t> parse_seed_list(std::string_view text) {
  std::vector<std::int64_t> seeds;
  for (const std::string_view part : split_at_commas(text)) {
    const std::int64_t seed = parse_seed(part);
    if (std::ranges::find(seeds, seed) != seeds.end())
      throw InvalidArgument(fmt::format("seed {} is given twice", seed));
    seeds.push_back(seed);
  }
  return seeds;
}

std::vector<std::int64_t> first_seeds(std::int64_t count) {
  std::vector<std::int64_t> seeds(static_cast<std::size_t>(count));
  std::iota(seeds.begin(), seeds.end(), 0);
  return seeds;
}

}  // namespace halfscope
