// Reads a report off a summary.
#include <halfscope/scaling/tensor_report.hpp>

namespace halfscope {

TensorReport report_tensor(std::string name, const TensorSummary& summary, const AdvisorOptions& options) {
  const ExponentHistogram& histogram = summary.histogram();
  TensorFit fit = fit_tensor(name, histogram, options);
  return {.name = std::move(name),
          .counts = what_if(histogram, 0),
          .zeros = histogram.zeros(),
          .nonfinite = histogram.infinities() + histogram.nans(),
          .max_abs = histogram.max_abs(),
          .lost_energy = summary.lost_energy(0),
          .cosine = summary.cosine(),
          .lies_around_1 = lie_around_1(histogram),
          .fit = std::move(fit)};
}

}  // namespace halfscope
