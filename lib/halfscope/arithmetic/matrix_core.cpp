// The matrix-core models: exact sums, rounded pairs, and sums of products that are cut off.
#include <halfscope/arithmetic/matrix_core.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include <halfscope/arithmetic/detail/fused_step.hpp>
#include <halfscope/arithmetic/exact.hpp>
#include <halfscope/arithmetic/round_exact.hpp>
#include <halfscope/core/detail/equal_sizes.hpp>

namespace halfscope {
namespace {

using Numbers = std::span<const float>;

float exact_step(Numbers a, Numbers b, float c) {
  ExactSum sum;
  sum.add(unpack(c));
  for (std::size_t k = 0; k < a.size(); ++k) sum.add(exact_product(unpack(a[k]), unpack(b[k])));
  const Exact total = sum.total();
  return total.significand == 0 ? 0 : round_exact(total, Quantizer{}).value;
}

/// A subnormal result as CDNA2 has it: a zero of its sign.
float flushed(float x) {
  return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
}

/// A subnormal operand of `format`: a positive zero.
float normal_operand(float x, const FloatFormat& format) {
  return std::fabs(x) < std::ldexp(1.0f, format.min_exponent()) ? 0 : x;
}

/// The sum of `count` products in a binary tree.
float rounded_sum(const float* products, std::size_t count) {
  if (count == 1) return products[0];
  return flushed(rounded_sum(products, count / 2) + rounded_sum(products + count / 2, count / 2));
}

float rounded_step(Numbers a, Numbers b, float c, const MatrixCoreStep& step) {
  std::array<float, 4> products{};
  for (std::size_t k = 0; k < a.size(); ++k)
    products[k] = flushed(normal_operand(a[k], step.input) * normal_operand(b[k], step.input));
  return flushed(normal_operand(c, fp32) +
                 rounded_sum(products.data(), static_cast<std::size_t>(step.products)));
}

/// value * 2^-distance, rounded down; a negative distance is exact.
std::int64_t moved_down(std::int64_t value, int distance) {
  return distance >= 0 ? value >> std::min(distance, 63) : value * (std::int64_t{1} << -distance);
}

constexpr int cut_bits = 24, sum_bits = 32, result_bits = 31, nothing = -10000;

/// sum * 2^(exponent - cut_bits).
struct CutSum {
  std::int64_t sum = 0;
  int exponent = nothing;  ///< the largest of the products that are not zero
};

/// The products k = first, first + stride, ..., cut off toward zero below the largest exponent.
CutSum cut_sum(Numbers a, Numbers b, const FloatFormat& input, std::size_t first, std::size_t stride) {
  const auto product = [&](std::size_t k) {
    return detail::multiply(detail::decode(a[k], input), detail::decode(b[k], input));
  };
  CutSum result;
  for (std::size_t k = first; k < a.size(); k += stride) {
    const detail::Decoded x = product(k);
    if (x.significand != 0) result.exponent = std::max(result.exponent, x.exponent);
  }
  for (std::size_t k = first; k < a.size(); k += stride) {
    const detail::Decoded x = product(k);
    if (x.significand == 0) continue;
    result.sum +=
        detail::align(x.significand, cut_bits - 2 * input.mantissa_bits, result.exponent - x.exponent);
  }
  return result;
}

/// Both sums, rounded down below the larger exponent.
CutSum joined(const CutSum& x, const CutSum& y) {
  const int exponent = std::max(x.exponent, y.exponent);
  return {moved_down(x.sum, exponent - x.exponent) + moved_down(y.sum, exponent - y.exponent), exponent};
}

/// The sum and c, `c_bits` of which count below the largest exponent unless it is dropped.
float add_cut(const CutSum& products, float c, bool drops_small) {
  constexpr int least = -126;
  const detail::Decoded start = detail::decode(c, fp32);
  const int exponent = std::max({products.exponent, start.exponent, least});
  std::int64_t sum = moved_down(products.sum, exponent - products.exponent - (sum_bits - cut_bits));
  if (!drops_small || exponent - start.exponent <= cut_bits + 1) {
    const std::int64_t kept =
        moved_down(start.significand, exponent - start.exponent - (cut_bits - fp32.mantissa_bits));
    sum += kept * (std::int64_t{1} << (sum_bits - cut_bits));
  }
  if (sum == 0) return 0;
  const int unit = exponent - sum_bits;
  const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  const int leading = std::max(63 - leading_zeros(magnitude) + unit, least);
  const int dropped = std::max(leading - result_bits - unit, 0);
  const double value = static_cast<double>(sum >> dropped) * power_of_two(unit + dropped);  // exact
  return static_cast<float>(value);
}

float cut_step(Numbers a, Numbers b, float c, const MatrixCoreStep& step) {
  if (step.sum == MatrixCoreSum::cut) return add_cut(cut_sum(a, b, step.input, 0, 1), c, false);
  return add_cut(joined(cut_sum(a, b, step.input, 0, 2), cut_sum(a, b, step.input, 1, 2)), c, true);
}

/// The infinities and NaNs of c and the products; finite products may be infinite.
detail::Exceptions specials_of(Numbers a, Numbers b, float c, const MatrixCoreStep& step) {
  detail::Exceptions specials;
  specials.see(c);
  for (std::size_t k = 0; k < a.size(); ++k) {
    const bool finite = std::isfinite(a[k]) && std::isfinite(b[k]);
    if (!finite) specials.see(a[k] * b[k]);
    // Rounds to infinity only where the exact product does.
    const double product = static_cast<double>(a[k]) * static_cast<double>(b[k]);
    if (finite && step.sum != MatrixCoreSum::exact && std::fabs(product) >= 0x1p128)
      specials.see(std::copysign(from_bits(infinity_bits), static_cast<float>(product)));
  }
  return specials;
}

float step_of(Numbers a, Numbers b, float c, const MatrixCoreStep& step) {
  if (step.sum == MatrixCoreSum::rounded) return rounded_step(a, b, c, step);
  const detail::Exceptions specials = specials_of(a, b, c, step);
  if (specials.any()) return specials.result(fp32);
  return step.sum == MatrixCoreSum::exact ? exact_step(a, b, c) : cut_step(a, b, c, step);
}

}  // namespace

const MatrixCoreStep& matrix_core_step(MatrixCoreGeneration generation, const FloatFormat& input) {
  std::string formats;
  for (const MatrixCoreStep& step : matrix_core_table) {
    if (step.generation != generation) continue;
    if (step.input == input) return step;
    formats += (formats.empty() ? "" : ", ") + to_string(step.input);
  }
  throw InvalidArgument(fmt::format("the {} matrix core has no products of {}; give one of {}",
                                    name_of(generation), to_string(input), formats));
}

float dot(std::span<const float> a, std::span<const float> b, float c, const MatrixCoreStep& step) {
  detail::check_equal_sizes("dot", a.size(), b.size());
  const auto products = static_cast<std::size_t>(step.products);
  for (std::size_t k = 0; k < a.size(); k += products) {
    const std::size_t count = std::min(products, a.size() - k);
    c = step_of(a.subspan(k, count), b.subspan(k, count), c, step);
  }
  return std::isnan(c) ? from_bits(quiet_nan_bits) : c;
}

}  // namespace halfscope
