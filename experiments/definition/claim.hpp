// Claim that an experiment puts to the test, and the outcomes that would bear it out.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/core/names.hpp>

namespace halfscope {

/// How an arm should end beside its baseline.
enum class Expected : std::uint8_t { as_good, worse, better };
template <>
inline constexpr std::array<std::string_view, 3> enum_names<Expected>{"as_good", "worse", "better"};

/// `arm` ends within `margin` of `baseline`, on either side (as_good), or behind it (worse) or ahead of it
/// (better) by more than `margin`. The margin is in the metric's unit; a share of the baseline where the
/// metric is compared by ratio.
struct Expectation {
  std::string arm, baseline;
  Expected expected = Expected::as_good;
  double margin = 0;     ///< above 0 for as_good
  std::string reason{};  ///< why the margin is as large as this, a sentence

  bool operator==(const Expectation&) const = default;
};

/// One sentence of the paper's, or after it, and what it leads one to expect of the arms.
struct Claim {
  std::string text;
  std::vector<Expectation> expectations{};  ///< empty: nothing of it is judged

  bool operator==(const Claim&) const = default;
};

}  // namespace halfscope
