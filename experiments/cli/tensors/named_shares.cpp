// A few shares in words, and the number of the others.
#include "experiments/cli/tensors/named_shares.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/stats/what_if.hpp>

namespace halfscope {

std::string first_shares(const std::vector<NamedShare>& shares) {
  constexpr std::size_t shown = 8;
  std::string words;
  for (std::size_t i = 0; i < std::min(shown, shares.size()); ++i)
    words += fmt::format("{}{} ({})", i == 0 ? "" : ", ", shares[i].tensor, share_text(shares[i].share));
  if (shares.size() > shown) words += fmt::format(" and {} more", shares.size() - shown);
  return words;
}

}  // namespace halfscope
