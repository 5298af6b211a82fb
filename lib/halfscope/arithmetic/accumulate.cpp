// The scalar definition of sums and dot products.
#include <halfscope/arithmetic/accumulate.hpp>

#include <vector>

#include <halfscope/arithmetic/block_dot.hpp>
#include <halfscope/arithmetic/detail/ordered_sum.hpp>
#include <halfscope/arithmetic/operations.hpp>
#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/format/round.hpp>

namespace halfscope {
namespace {

/// `start` and the terms of a sum of single terms; `term(k)` is term k of `count`.
template <typename Terms>
float sum_from(float start, const Terms& term, std::int64_t count, const AccumulateModel& model) {
  RoundedAdds adds{rounding_grid({.format = model.format})};
  const TermRange all{0, count};
  switch (model.order) {
    case AccumulateOrder::sequential:
      return sum_sequential(adds.rounded(start), term, all, adds);
    case AccumulateOrder::chunked:
      return sum_chunked(round(start, Quantizer{}), term, all, model.chunk, adds);
    case AccumulateOrder::pairwise:
      return adds.add(adds.rounded(start), sum_pairwise(term, all, adds));
    case AccumulateOrder::kahan:
      return sum_kahan(adds.rounded(start), term, all, adds);
    case AccumulateOrder::tensor_core:
    case AccumulateOrder::matrix_core:
    case AccumulateOrder::fused:
    case AccumulateOrder::cublas:
      break;
  }
  check_reduction_model(model);
  return 0;
}

/// From nothing: of a pairwise sum, which adds a start last, without that add.
template <typename Terms>
float sum_of_all(const Terms& term, std::int64_t count, const AccumulateModel& model) {
  if (model.order != AccumulateOrder::pairwise) return sum_from(0, term, count, model);
  RoundedAdds adds{rounding_grid({.format = model.format})};
  return sum_pairwise(term, {0, count}, adds);
}

auto terms_of(std::span<const float> terms) {
  return [terms](std::int64_t k) { return terms[static_cast<std::size_t>(k)]; };
}
auto products_of(std::span<const float> a, std::span<const float> b) {
  return [a, b](std::int64_t k) { return a[static_cast<std::size_t>(k)] * b[static_cast<std::size_t>(k)]; };
}

float fused_sum_from(float start, std::span<const float> a, std::span<const float> b,
                     const Quantizer& quantizer) {
  float sum = round(start, quantizer);
  for (std::size_t k = 0; k < a.size(); ++k) sum = fma(a[k], b[k], sum, quantizer).value;
  return sum;
}

std::vector<float> rounded_to(std::span<const float> values, const FloatFormat& format) {
  std::vector<float> rounded(values.size());
  for (std::size_t k = 0; k < values.size(); ++k) rounded[k] = round(values[k], {.format = format});
  return rounded;
}

}  // namespace

TensorCoreStep product_step(const AccumulateModel& model) {
  return product_step(model, model.core.output());
}

TensorCoreStep product_step(const AccumulateModel& model, const FloatFormat& output) {
  const TensorCoreStep& step = tensor_core_step(model.core, model.format, output);
  if (model.chunk > 0) check_promotion(step, model.chunk);
  return step;
}

float accumulate(std::span<const float> terms, const AccumulateModel& model) {
  return sum_of_all(terms_of(terms), std::ssize(terms), model);
}

float accumulate_products(std::span<const float> a, std::span<const float> b, const AccumulateModel& model) {
  detail::check_equal_sizes("accumulate_products", a.size(), b.size());
  if (model.order == AccumulateOrder::pairwise) return sum_of_all(products_of(a, b), std::ssize(a), model);
  return accumulate_products_from(0, a, b, model);
}

float accumulate_products_from(float start, std::span<const float> a, std::span<const float> b,
                               const AccumulateModel& model) {
  detail::check_equal_sizes("accumulate_products_from", a.size(), b.size());
  if (model.order == AccumulateOrder::fused) return fused_sum_from(start, a, b, {.format = model.format});
  const bool is_unit =
      model.order == AccumulateOrder::tensor_core || model.order == AccumulateOrder::matrix_core;
  if (!is_unit) return sum_from(start, products_of(a, b), std::ssize(a), model);
  const std::vector<float> x = rounded_to(a, model.format), y = rounded_to(b, model.format);
  if (model.order == AccumulateOrder::matrix_core)
    return dot(x, y, start, matrix_core_step(model.matrix_core, model.format));
  const TensorCoreStep& step = product_step(model);
  if (model.chunk > 0) return promoted_dot({x}, {y}, start, step, {.terms = model.chunk});
  return dot(x, y, round(start, {.format = step.output}), step);
}

void check_reduction_model(const AccumulateModel& model) {
  if (model.order == AccumulateOrder::cublas) {
    throw InvalidArgument(to_string(model) +
                          " is what a GPU's library makes of matrix products; nothing but that "
                          "library gives its sums, so choose an order that has a name");
  }
  const bool adds_products = model.order == AccumulateOrder::tensor_core ||
                             model.order == AccumulateOrder::matrix_core ||
                             model.order == AccumulateOrder::fused;
  if (!adds_products) return;
  throw InvalidArgument(to_string(model) +
                        " adds up matrix products; a sum of single terms takes one of the others");
}

void check_sum_format(const FloatFormat& format) {
  if (format.has_signed_zero()) return;
  throw InvalidArgument("a sum takes formats that have -0, not " + to_string(format));
}

void check_fused_format(const FloatFormat& format) {
  check_sum_format(format);
  if (format == fp32 || format.mantissa_bits <= 21) return;
  throw InvalidArgument("fused sums take fp32 and formats of at most 21 mantissa bits, not " +
                        to_string(format));
}

}  // namespace halfscope
