// Report of one tensor: a cast at scale 1, and the scales that fit; a line of `halfscope analyze`. Signs that
// tensors are the weights of a model and no gradients: a loss scale means nothing for weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <halfscope/scaling/advisor.hpp>
#include <halfscope/stats/tensor_summary.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {

struct TensorReport {
  std::string name;
  WhatIf counts;
  std::int64_t zeros = 0;
  std::int64_t nonfinite = 0;
  float max_abs = 0;
  double lost_energy = 0;        ///< share of the sum of squares that is flushed
  std::optional<double> cosine;  ///< between the tensor and what the cast leaves; see TensorSummary::cosine
  bool lies_around_1 = false;    ///< see lie_around_1
  TensorFit fit;
};

[[nodiscard]] TensorReport report_tensor(std::string name, const TensorSummary& summary,
                                         const AdvisorOptions& options = {});

/// Whether all values lie within a factor of 4 of 1, as those of a normalisation's gain do; eight at least.
[[nodiscard]] bool lie_around_1(const ExponentHistogram& counts);

/// A tensor by what tells weights from gradients.
struct SignedTensor {
  std::string_view name, file;  ///< where it is from, which may be empty
  std::size_t axes = 0;
  std::int64_t elements = 0;
  bool lies_around_1 = false;
};

/// Names and values of tensors, by which weights are told. Weights and their gradients mostly have the same
/// names and sizes, so that there often is no sign at all.
class WeightSigns {
 public:
  void look_at(const SignedTensor& tensor);

  /// The reason to take all of them for weights: "'bn1.running_var' is a running statistic, which has no
  /// gradient". Empty without one, and where a tensor or a file is called a gradient.
  [[nodiscard]] std::optional<std::string> reason() const;

  /// Whether names leave it open: they are those of a model's parameters, and none is called a gradient.
  [[nodiscard]] bool are_in_doubt() const { return !is_gradient_ && !reason_ && has_parameters_; }

 private:
  std::optional<std::string> reason_{};
  bool is_gradient_ = false, has_parameters_ = false;
};

/// Takes the place of advice on a loss scale: what to type for weights, and why.
[[nodiscard]] std::string say_weights(const std::string& reason);
/// A last line of the advice on tensors that may be either.
[[nodiscard]] std::string say_weights_in_doubt();

}  // namespace halfscope
