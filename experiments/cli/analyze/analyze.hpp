// Findings of `halfscope analyze`: the request, and the reports about tensors.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <halfscope/explorer/explorer_data.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/passes/file_comparison.hpp>
#include <halfscope/scaling/averaging.hpp>
#include <halfscope/scaling/tensor_report.hpp>

#include "experiments/cli/analyze/tensor_groups.hpp"
#include "experiments/cli/tensors/tensor_files.hpp"
#include "experiments/cli/tensors/tensor_labels.hpp"

namespace halfscope {

struct AnalyzeRequest {
  TensorFiles input;
  std::vector<std::string> against;  ///< files of reference tensors
  TensorGroups groups;
  FloatFormat format;
  AdvisorOptions advisor;
  std::optional<Averaging> averaging{};  ///< over ranks, which takes its part of the windows
  std::string page;                      ///< a path to write the explorer to; empty: none
};

/// A tensor, or several that were added up.
struct AnalyzedTensor {
  std::string name;  ///< the tensor's or the group's
  std::string file;  ///< its place, for people; empty for a group
  std::int64_t tensors = 1;
  std::int64_t beyond_fp32 = 0;  ///< see SummarisedTensor
  TensorReport report;           ///< its name is the one that is printed
  std::optional<ReferenceComparison> reference;
  /// Where the request has a page. Most files have neither these nor blocks, and hundreds of thousands of
  /// tensors.
  std::unique_ptr<BinadeTotals> counts{};
  std::unique_ptr<BlockFindings> blocks{};  ///< blocks of a tensor that was dequantized
};

struct Analysis {
  FloatFormat format{};
  AdvisorOptions advisor{};
  std::optional<Averaging> averaging{};  ///< that the windows are after
  FilesRead read{};
  std::vector<AnalyzedTensor> tensors{};
  bool is_quantized = false;  ///< a tensor is quantized: no loss scale is advised on
  WeightSigns signs{};        ///< whether the tensors are weights
  Advice advice{};

  /// Loss scales mean something for gradients alone.
  [[nodiscard]] bool has_windows() const { return !is_quantized && !signs.reason(); }
};

/// Appends what is in the request's files. A file that is wrong is one line on stderr, and the others go on.
/// Throws InvalidArgument where no file holds a tensor that is asked for.
void analyze_files(const AnalyzeRequest& request, Analysis& analysis);

/// Gives every tensor the name that is printed, in reports and in the advice about them.
void label_tensors(Analysis& analysis, Labels labels);

}  // namespace halfscope
