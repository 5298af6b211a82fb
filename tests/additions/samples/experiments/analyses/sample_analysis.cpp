// A finding as a newcomer would add it: how many arms have a result.
#include <fmt/format.h>

#include "experiments/analyses/analyses.hpp"

namespace halfscope {

AnalysisResult find_sample(const AnalysisInput& input) {
  Table table{{{"what", "what"}, {"count", "count"}}, {{"arms", count_cell(std::ssize(input.summary.arms))}}};
  AnalysisResult result{.key = "sample", .values = rows_json(table)};
  result.sections.push_back({.heading = "a sample finding", .table = std::move(table)});
  result.sentence = fmt::format("{} arms have a result", input.summary.arms.size());
  return result;
}

}  // namespace halfscope
