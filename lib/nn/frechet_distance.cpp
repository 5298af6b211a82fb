// Means, triangular factors of covariances, and the singular values of their product, with Eigen.
#include "lib/nn/frechet_distance.hpp"

#include <fmt/format.h>

#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <array>

#include <halfscope/core/error.hpp>
#include <halfscope/kernel/cast/convert.hpp>

namespace halfscope {
namespace {

/// The mean, and a factor whose product with itself, transposed first, is the covariance.
struct Moments {
  Eigen::RowVectorXd mean;
  Eigen::MatrixXd factor;  // (at most features, features)
};

Moments moments_of(const Array& features) {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Array here = to_host_floats(features);
  Eigen::MatrixXd rows =
      Eigen::Map<const RowMajor>(here.data(), here.extent(0), here.extent(1)).cast<double>();
  if (!rows.allFinite())
    throw InvalidArgument("frechet_distance: a feature is infinite or NaN; give finite ones");
  const Eigen::RowVectorXd mean = rows.colwise().mean();
  rows.rowwise() -= mean;
  rows /= std::sqrt(static_cast<double>(rows.rows() - 1));
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(rows);
  const Eigen::Index rank = std::min(rows.rows(), rows.cols());
  return {mean, qr.matrixQR().topRows(rank).triangularView<Eigen::Upper>()};
}

/// tr((C D)^(1/2)) of the covariances C and D: the sum of the singular values of their factors' product.
double trace_of_root(const Moments& first, const Moments& second) {
  return Eigen::JacobiSVD<Eigen::MatrixXd>(first.factor * second.factor.transpose()).singularValues().sum();
}

void check_feature_sets(const Array& first, const Array& second) {
  const auto is_set = [](const Array& array) {
    return array.shape().size() == 2 && array.extent(0) >= 2 && array.extent(1) >= 1;
  };
  if (is_set(first) && is_set(second) && first.extent(1) == second.extent(1)) return;
  throw InvalidArgument(fmt::format(
      "frechet_distance: sets of shapes {} and {}; give two or more rows each, of the same features",
      to_string(first.shape()), to_string(second.shape())));
}

}  // namespace

double frechet_distance(const Array& first, const Array& second) {
  check_feature_sets(first, second);
  const Moments a = moments_of(first), b = moments_of(second);
  const double spread = a.factor.squaredNorm() + b.factor.squaredNorm() - 2 * trace_of_root(a, b);
  return (a.mean - b.mean).squaredNorm() + std::max(spread, 0.0);
}

}  // namespace halfscope
