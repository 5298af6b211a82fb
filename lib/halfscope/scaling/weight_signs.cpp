// Looks for names and values that gradients do not have.
#include <halfscope/scaling/tensor_report.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include <halfscope/core/detail/small_letters.hpp>
#include <halfscope/core/escape.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {
namespace weight_signs {
namespace {

constexpr std::array statistics{"running_mean", "running_var", "num_batches_tracked", "moving_mean",
                                "moving_variance"};
constexpr std::array states{"exp_avg", "exp_avg_sq", "momentum_buffer"};
constexpr std::array gains{"weight", "gain", "gamma", "scale"};
constexpr std::array parameters{"weight", "bias", "kernel"};

/// A gain has so many elements at least, all from 2^-2 to 2^2.
constexpr std::int64_t least_gain = 8;
constexpr int gain_binades = 2;

/// Behind the last of `separators`.
std::string_view last_part(std::string_view name, std::string_view separators) {
  const std::size_t at = name.find_last_of(separators);
  return at == std::string_view::npos ? name : name.substr(at + 1);
}

bool is_one_of(std::string_view word, std::span<const char* const> words) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace
}  // namespace weight_signs

bool lie_around_1(const ExponentHistogram& counts) {
  using namespace weight_signs;
  const BinadeRange range = filled_binades(counts);
  const int last = range.first_exponent + static_cast<int>(range.binades.size()) - 1;
  return counts.nonzero() == counts.elements() && counts.elements() >= least_gain &&
         range.first_exponent >= -gain_binades && last < gain_binades;
}

void WeightSigns::look_at(const SignedTensor& tensor) {
  using namespace weight_signs;
  const std::string full = in_small_letters(tensor.name), last(last_part(full, "./"));
  const std::string place = in_small_letters(last_part(tensor.file, "/"));
  is_gradient_ =
      is_gradient_ || full.find("grad") != std::string::npos || place.find("grad") != std::string::npos;
  has_parameters_ = has_parameters_ || is_one_of(last, parameters);
  if (reason_) return;
  if (is_one_of(last, statistics))
    reason_ = fmt::format("'{}' is a running statistic, which has no gradient", escaped(tensor.name));
  else if (is_one_of(last, states))
    reason_ = fmt::format("'{}' is an optimizer's state, which checkpoints hold", escaped(tensor.name));
  else if (tensor.axes == 1 && is_one_of(last, gains) && tensor.lies_around_1)
    reason_ = fmt::format("all {} values of '{}' lie within a factor of 4 of 1, as a normalisation's gain",
                          tensor.elements, escaped(tensor.name));
}

std::optional<std::string> WeightSigns::reason() const {
  return is_gradient_ ? std::nullopt : reason_;
}

std::string say_weights(const std::string& reason) {
  return fmt::format(
      "Weights: 'halfscope formats FILE' compares formats for them; a loss scale has no effect on weights\n"
      "  Why: {}.\n"
      "  Sure: as far as names and values tell; for gradients give their tensors or their file a name with "
      "'grad'",
      reason);
}

std::string say_weights_in_doubt() {
  return "\n  If these are weights: a loss scale has no effect on them; 'halfscope formats FILE' compares "
         "formats";
}

}  // namespace halfscope
