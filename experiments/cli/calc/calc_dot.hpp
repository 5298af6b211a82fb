// `halfscope calc dot`: a dot product in the order of a sum, its operands and result in formats
// of their own.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <halfscope/arithmetic/accumulate.hpp>

#include "experiments/cli/calc/calc_operations.hpp"

namespace halfscope {

/// The words of --order, --input and --output; empty where they are left out.
struct DotOptions {
  std::string order, input, output;
};

/// The values of a line.
struct DotOperands {
  std::vector<float> a, b;
  float c = 0;

  template <typename Predicate>
  [[nodiscard]] bool any(Predicate is) const {
    return is(c) || std::any_of(a.begin(), a.end(), is) || std::any_of(b.begin(), b.end(), is);
  }
};

/// a1 .. aK b1 .. bK c, read as numbers of the input and of the output. Throws InvalidArgument unless the
/// number of words is odd.
[[nodiscard]] DotOperands parse_dot_operands(Words words, const DotProduct& dot);

/// The flags of `evaluate_dot`; `is_exact` says that a finite result is the exact sum.
[[nodiscard]] std::uint8_t dot_flags(const DotOperands& x, float result, const FloatFormat& output,
                                     bool is_exact);

/// The order that `options` ask for. Without --input the operands are numbers of the order's format; without
/// --output the result is FP32 of a tensor or matrix core, else a number of the order's format. Throws
/// InvalidArgument for an order that is missing or unknown, and for formats that a tensor or matrix core does
/// not have.
[[nodiscard]] DotProduct parse_dot_product(const DotOptions& options);

/// c + a1 b1 + ... + aK bK for the words a1 .. aK b1 .. bK c. A tensor core adds up from c on; so do the
/// other models, but that a pairwise sum adds c last, and then their sum is rounded to the output, to the
/// nearest. The flags compare the result with the exact sum: 1 inexact where they differ, 4 overflow where it
/// is infinite (or NaN, in a format without infinity) and all words are finite, 16 invalid where it is NaN
/// and no word is, or a word is a signalling NaN. Throws InvalidArgument unless the number of words is odd.
[[nodiscard]] CalcAnswer evaluate_dot(Words words, const DotProduct& dot);

}  // namespace halfscope
