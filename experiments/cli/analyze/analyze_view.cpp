// Sorts by a key; tensors that are equal in it stay in the order of the files.
#include "experiments/cli/analyze/analyze_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include <halfscope/core/names.hpp>

namespace halfscope {
namespace {

using Before = bool (*)(const AnalyzedTensor&, const AnalyzedTensor&);

double harm_beyond_underflow(const AnalyzedTensor& t) {
  return t.report.counts.of_all(t.report.counts.overflow + t.report.nonfinite);
}

auto worst_of(const AnalyzedTensor& t) {
  return std::tuple(harm_beyond_underflow(t), t.report.counts.flushed_fraction(),
                    t.report.counts.subnormal_fraction());
}

double error_of(const AnalyzedTensor& t) {
  return t.reference ? t.reference->relative_error().value_or(HUGE_VAL) : -1;
}

/// `first` before `second` where its value is greater.
template <auto value>
bool descending(const AnalyzedTensor& first, const AnalyzedTensor& second) {
  return value(first) > value(second);
}

struct SortKey {
  std::string_view name;
  Before before;
};
constexpr std::array keys{
    SortKey{worst_first, descending<worst_of>},
    SortKey{"flushed",
            descending<[](const AnalyzedTensor& t) { return t.report.counts.flushed_fraction(); }>},
    SortKey{"subnormal",
            descending<[](const AnalyzedTensor& t) { return t.report.counts.subnormal_fraction(); }>},
    SortKey{"overflow",
            descending<[](const AnalyzedTensor& t) { return t.report.counts.overflow_fraction(); }>},
    SortKey{"nonfinite", descending<[](const AnalyzedTensor& t) { return t.report.nonfinite; }>},
    SortKey{"lost_energy", descending<[](const AnalyzedTensor& t) { return t.report.lost_energy; }>},
    SortKey{"relative_error", descending<error_of>},
    SortKey{"elements", descending<[](const AnalyzedTensor& t) { return t.report.counts.elements; }>},
    SortKey{"name",
            [](const AnalyzedTensor& a, const AnalyzedTensor& b) { return a.report.name < b.report.name; }},
};

bool is_wanted(const AnalyzedTensor& tensor, const std::vector<Threshold>& only) {
  return std::all_of(only.begin(), only.end(), [&](const Threshold& threshold) {
    const auto value = value_of(threshold, tensor);
    return value && threshold.is_reached(*value);
  });
}

}  // namespace

std::vector<std::string> sort_key_names() {
  const auto names = table_names(keys);
  return {names.begin(), names.end()};
}

View view_of(const Analysis& analysis, const ViewOptions& options) {
  View view;
  view.all = analysis.tensors.size();
  for (const AnalyzedTensor& tensor : analysis.tensors) {
    if (is_wanted(tensor, options.only)) view.tensors.push_back(&tensor);
  }
  view.matching = view.tensors.size();
  if (!options.sort.empty()) {
    const Before before = find_in_table("key of --sort", options.sort, keys).before;
    std::stable_sort(view.tensors.begin(), view.tensors.end(),
                     [before](const AnalyzedTensor* a, const AnalyzedTensor* b) { return before(*a, *b); });
  }
  if (options.top && *options.top < view.tensors.size()) view.tensors.resize(*options.top);
  return view;
}

}  // namespace halfscope
