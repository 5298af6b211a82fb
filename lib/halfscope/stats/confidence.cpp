// Student's interval.
#include <halfscope/stats/confidence.hpp>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace halfscope {

double confidence_95(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double freedom = count - 1;
  const double quantile = boost::math::quantile(boost::math::students_t(freedom), 0.975);
  return quantile * std::sqrt(squares / freedom / count);
}

}  // namespace halfscope
