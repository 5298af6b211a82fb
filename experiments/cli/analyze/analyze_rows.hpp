// Rows of the analysis: a tensor each, or a group of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <halfscope/passes/file_summary.hpp>

#include "experiments/cli/analyze/analyze.hpp"
#include "experiments/cli/tensors/tensor_lookup.hpp"

namespace halfscope {

/// Sums of the tensors of one group.
struct GroupSums {
  TensorSummary summary;
  std::int64_t tensors = 0, beyond_fp32 = 0;
  std::optional<ReferenceComparison> reference;

  void add(const GroupSums& other);
};

/// Summaries of the tensors, or of groups of them.
class SummaryRows final : public TensorRows {
 public:
  /// Throws InvalidArgument where the reference files cannot be read.
  SummaryRows(const AnalyzeRequest& request, Analysis& analysis);

  void count(std::span<const ChosenTensors> files, const CountEvents& events) override;
  void begin(const SelectedFile& file) override;
  void end() override;
  void drop() override;
  /// Adds the groups. Throws InvalidArgument where no tensor has a reference.
  void finish();

 private:
  void take(const SummarisedTensor& found);
  [[nodiscard]] std::optional<TensorInFile> reference_of(std::size_t index);
  [[nodiscard]] AnalyzedTensor row(const std::string& name, const std::string& file,
                                   const GroupSums& sums) const;

  const AnalyzeRequest& request_;
  Analysis& analysis_;
  std::optional<TensorLookup> references_;
  const SelectedFile* file_ = nullptr;
  std::size_t begin_ = 0;                              // place of the file's first tensor among all
  std::map<std::string, GroupSums> of_file_, groups_;  // by name
};

}  // namespace halfscope
