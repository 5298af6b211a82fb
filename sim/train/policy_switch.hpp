// A policy that takes the place of a run's own from a step on.
#pragma once

#include <cstdint>
#include <string>

#include <halfscope/policy/policy.hpp>

namespace halfscope {

/// Formats and sums of later steps.
struct PolicySwitch {
  std::int64_t step = 1;  ///< the first with it, from 1
  PrecisionPolicy policy{};
};

/// "step=N, policy=NAME", N from 1 on. Weights and the optimizer's state stay as `own` stores them. Throws
/// InvalidArgument for another text and for a policy that there is not.
[[nodiscard]] PolicySwitch parse_policy_switch(const std::string& text, const PrecisionPolicy& own);

}  // namespace halfscope
