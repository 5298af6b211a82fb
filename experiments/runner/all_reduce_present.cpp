// Lines and tables about all-reduces.
#include "experiments/runner/all_reduce_present.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/runner/text_table.hpp"
#include "experiments/table/text_width.hpp"

namespace halfscope {
namespace {

/// "0.3 %", a small share with as many digits as it needs.
std::string lost_share(double share) {
  return share == 0 ? "0 %" : fmt::format("{:.2g} %", 100 * share);
}

/// "3.1e-04", with the shares of adds, addends and means that something happened to.
std::string mean_cell(const AllReduceRow& row) {
  std::string text = row.relative_error ? fmt::format("{:.1e}", *row.relative_error) : "-";
  const auto add = [&](char mark, double share) {
    if (share >= 0.005) text += fmt::format(" {}{:.0f}%", mark, 100 * share);
  };
  add('s', row.stagnated);
  add('f', row.flushed);
  add('o', row.overflowed);
  return text;
}

}  // namespace

std::string all_reduce_lines(const ExperimentSummary& summary, std::size_t width) {
  std::string text;
  bool silent = false;
  for (const ArmSummary& arm : summary.arms) {
    if (!arm.all_reduce) continue;
    const AllReduceLosses& losses = *arm.all_reduce;
    silent = silent || losses.stagnated_steps > 0;
    text += fmt::format("  {}: {} ranks; adds that stagnated {}, addends flushed {}, means overflowed {}\n",
                        arm.arm, losses.ranks, lost_share(losses.stagnated), lost_share(losses.flushed),
                        lost_share(losses.overflowed));
  }
  if (text.empty()) return "";
  if (silent) {
    const std::size_t room = width - std::min<std::size_t>(width, 2);
    text += fmt::format("  {}\n", wrapped("An add that stagnates loses a rank's gradient, or the sum so far, "
                                          "and leaves a finite number: no loss scaler sees it.",
                                          room, "  "));
  }
  return "\n  all-reduces\n" + text;
}

std::string all_reduce_tables(const std::vector<AllReduceRow>& all) {
  std::string text;
  for (std::size_t first = 0; first < all.size();) {
    std::vector<std::vector<std::string>> rows{{all[first].gradients, "division"}};
    std::int64_t ranks = 0;
    std::size_t i = first;
    for (std::size_t row = 1; i < all.size() && all[i].gradients == all[first].gradients; ++i, ++row) {
      if (all[i].ranks != ranks) {
        ranks = all[i].ranks;
        rows[0].push_back(fmt::format("N={}", ranks));
        row = 1;
      }
      if (row == rows.size()) rows.push_back({all[i].order, all[i].division});
      rows[row].push_back(mean_cell(all[i]));
    }
    text += fmt::format("\n{}", text_table(rows));
    first = i;
  }
  return fmt::format(
      "\n  error of FP16 means over N ranks, relative, root mean square; s: adds that stagnated, f: addends "
      "flushed, o: means that overflowed\n{}",
      text);
}

}  // namespace halfscope
