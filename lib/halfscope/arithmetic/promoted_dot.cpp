// FP8 sums of tensor cores, promoted to FP32.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <halfscope/arithmetic/block_dot.hpp>
#include <halfscope/arithmetic/detail/fused_step.hpp>

namespace halfscope {
namespace {

/// The scale of a partial sum; no scales stand for ones.
float scale_of(const ScaledTerms& x, std::size_t index) {
  return x.scales.empty() ? 1 : x.scales[index];
}

void check_terms(const ScaledTerms& x, int terms) {
  const auto run = static_cast<std::size_t>(terms);
  const std::size_t sums = (x.values.size() + run - 1) / run;
  if (x.scales.empty() || x.scales.size() == sums) return;
  throw InvalidArgument(fmt::format("promoted_dot: {} terms, promoted every {}, have {} scales; {} given",
                                    x.values.size(), terms, sums, x.scales.size()));
}

}  // namespace

void check_promotion(const TensorCoreStep& step, int terms) {
  if (step.output != fp32) {
    throw InvalidArgument("promotion adds up FP32 sums; this tensor core's are " + to_string(step.output));
  }
  if (terms >= 1 && terms % step.products == 0) return;
  throw InvalidArgument(fmt::format("promotion after {} terms: give a multiple of the {} products of a step",
                                    terms, step.products));
}

float promoted_dot(const ScaledTerms& a, const ScaledTerms& b, float c, const TensorCoreStep& step,
                   const Promotion& promotion) {
  check_promotion(step, promotion.terms);
  if (a.values.size() != b.values.size()) {
    throw InvalidArgument(fmt::format("promoted_dot: {} terms times {}; give as many of both",
                                      a.values.size(), b.values.size()));
  }
  check_terms(a, promotion.terms);
  check_terms(b, promotion.terms);
  const auto terms = static_cast<std::size_t>(promotion.terms);
  for (std::size_t k = 0; k < a.values.size(); k += terms) {
    const std::size_t count = std::min(terms, a.values.size() - k);
    const float partial = dot(a.values.subspan(k, count), b.values.subspan(k, count), 0, step);
    const float scale = scale_of(a, k / terms) * scale_of(b, k / terms);
    if (promotion.add == ScaledAdd::fused) {
      c = std::fma(scale, partial, c);
    } else {
      const float scaled = scale * partial;
      c += scaled;
    }
  }
  return std::isnan(c) ? detail::canonical_nan(fp32) : c;
}

}  // namespace halfscope
