// Signs that tensors are the weights of a model and no gradients: a loss scale means nothing for weights.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <halfscope/stats/exponent_histogram.hpp>

namespace halfscope {

/// Names and values of tensors, by which weights are told. Weights and their gradients mostly have the same
/// names and sizes, so that there often is no sign at all.
class WeightSigns {
 public:
  /// A tensor of `axes` axes; `file` is where it is from, which may be empty.
  void look_at(std::string_view name, std::string_view file, std::size_t axes,
               const ExponentHistogram& counts);

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
