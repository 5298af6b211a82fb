// Student's and Welch's intervals.
#include <halfscope/stats/confidence.hpp>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace halfscope {
namespace {

double quantile_975(double freedom) {
  return boost::math::quantile(boost::math::students_t(freedom), 0.975);
}

/// The variance of the mean over `values`.
double variance_of_mean(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares / (count - 1) / count;
}

}  // namespace

double confidence_95(const std::vector<double>& values) {
  return quantile_975(static_cast<double>(values.size()) - 1) * std::sqrt(variance_of_mean(values));
}

double welch_95(const std::vector<double>& a, const std::vector<double>& b) {
  const double from_a = variance_of_mean(a), from_b = variance_of_mean(b);
  const double variance = from_a + from_b;
  if (variance == 0) return 0;
  const double spread = from_a * from_a / static_cast<double>(a.size() - 1) +
                        from_b * from_b / static_cast<double>(b.size() - 1);
  return quantile_975(variance * variance / spread) * std::sqrt(variance);
}

}  // namespace halfscope
