// Sums in double, in lanes that do not depend on the pieces in which the files are read.
#include <halfscope/passes/file_comparison.hpp>

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numeric>

#include <halfscope/core/error.hpp>
#include <halfscope/core/escape.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/io/detail/file_pair.hpp>

namespace halfscope {
namespace {

constexpr std::size_t lanes = 8;
using Lanes = std::array<double, lanes>;

double sum_of(const Lanes& sums) {
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

/// `tensor` and `reference` have as many elements.
ReferenceComparison compare_block(std::span<const float> tensor, std::span<const float> reference) {
  ReferenceComparison found{.elements = static_cast<std::int64_t>(tensor.size())};
  Lanes xx{}, xr{}, rr{}, dd{};
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const double x = tensor[i], r = reference[i];
    if (!std::isfinite(x) || !std::isfinite(r)) {
      ++found.nonfinite;
      continue;
    }
    const std::size_t lane = i % lanes;
    xx[lane] += x * x;
    xr[lane] += x * r;
    rr[lane] += r * r;
    dd[lane] += (x - r) * (x - r);
  }
  found.xx = sum_of(xx);
  found.xr = sum_of(xr);
  found.rr = sum_of(rr);
  found.dd = sum_of(dd);
  return found;
}

ReferenceComparison compare_part(const TensorPair& pair, const TensorPart& part) {
  ReferenceComparison found;
  pair.read(part, [&](std::span<const float> x, std::span<const float> r) { found += compare_block(x, r); });
  return found;
}

}  // namespace

std::optional<double> ReferenceComparison::relative_error() const {
  if (nonfinite > 0 || (rr == 0 && dd > 0)) return std::nullopt;
  return dd == 0 ? 0 : std::sqrt(dd / rr);
}

std::optional<double> ReferenceComparison::cosine() const {
  if (nonfinite > 0 || xx == 0 || rr == 0) return std::nullopt;
  return xr / (std::sqrt(xx) * std::sqrt(rr));
}

ReferenceComparison& ReferenceComparison::operator+=(const ReferenceComparison& part) {
  elements += part.elements;
  nonfinite += part.nonfinite;
  xx += part.xx;
  xr += part.xr;
  rr += part.rr;
  dd += part.dd;
  return *this;
}

ReferenceComparison compare_with_reference(const TensorInFile& tensor, const TensorInFile& reference) {
  if (tensor.tensor().shape != reference.tensor().shape) {
    throw InvalidArgument(
        fmt::format("tensor '{}' has shape {} in {} and {} in its reference {}; give the same",
                    escaped(tensor.tensor().name), to_string(tensor.tensor().shape), tensor.file_name,
                    to_string(reference.tensor().shape), reference.file_name));
  }
  const TensorPair pair(tensor, reference);
  const std::vector<TensorPart> parts = pair.parts();
  ReferenceComparison total;
  work_through(
      std::span<const TensorPart>(parts), [&](const TensorPart& part) { return compare_part(pair, part); },
      [&](const TensorPart&, const ReferenceComparison& part) { total += part; });
  return total;
}

}  // namespace halfscope
