// Shares of tensors that are over a limit, on one line of stderr.
#pragma once

#include <string>
#include <vector>

namespace halfscope {

struct NamedShare {
  std::string tensor;
  double share = 0;
};

/// "layer1 (12.00 %), layer2 (3.00 %) and 7 more"
[[nodiscard]] std::string first_shares(const std::vector<NamedShare>& shares);

}  // namespace halfscope
