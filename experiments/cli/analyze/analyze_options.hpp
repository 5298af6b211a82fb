// The options of `halfscope analyze`, and the request that they make.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/cli/analyze/analyze.hpp"
#include "experiments/cli/analyze/analyze_findings.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/tensors/tensor_options.hpp"

namespace halfscope {

struct AnalyzeOptions {
  TensorOptions tensors;
  AnalyzeRequest request;
  std::string format = "fp16", tolerance = "20%", sort;
  std::optional<std::string> predivide;
  std::optional<std::int64_t> ranks;
  std::vector<std::string> fail_on, only, groups;
};

void add_analyze_options(CLI::App& command, AnalyzeOptions& options);

/// Throws InvalidArgument where options do not go together.
[[nodiscard]] AnalyzeRequest request_of(const AnalyzeOptions& options);

/// The thresholds `texts` of `option`. Throws InvalidArgument where what they judge was not given.
[[nodiscard]] std::vector<Threshold> thresholds_of(std::string_view option,
                                                   const std::vector<std::string>& texts,
                                                   const AnalyzeRequest& request);

}  // namespace halfscope
