// The distance of feature sets: closed forms, an oracle by eigenvalues, and sets that have none.
#include "lib/nn/frechet_distance.hpp"

#include <Eigen/Eigenvalues>
#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::frechet_distance_test {
namespace {

/// Rows +-deviation from the mean, one feature at a time, so that the covariances are diagonal: of feature i
/// twice deviations[i]^2 over all rows but one.
Array cross(const std::vector<float>& mean, const std::vector<float>& deviations) {
  const std::size_t features = mean.size();
  Array rows({static_cast<std::int64_t>(2 * features), static_cast<std::int64_t>(features)});
  for (std::size_t r = 0; r < 2 * features; ++r) {
    for (std::size_t i = 0; i < features; ++i) {
      const float sign = r % 2 == 0 ? 1.0f : -1.0f;
      rows[r * features + i] = mean[i] + (r / 2 == i ? sign * deviations[i] : 0.0f);
    }
  }
  return rows;
}

Eigen::MatrixXd covariance(Eigen::MatrixXd rows) {
  rows = rows.rowwise() - rows.colwise().mean();
  return rows.transpose() * rows / static_cast<double>(rows.rows() - 1);
}

Eigen::MatrixXd as_matrix(const Array& array) {
  Eigen::MatrixXd matrix(array.extent(0), array.extent(1));
  for (Eigen::Index r = 0; r < matrix.rows(); ++r) {
    for (Eigen::Index c = 0; c < matrix.cols(); ++c)
      matrix(r, c) = static_cast<double>(array[static_cast<std::size_t>(r * matrix.cols() + c)]);
  }
  return matrix;
}

/// By the eigenvalues of sqrt(C) D sqrt(C), whose roots lose half their digits next to 0.
double distance_by_eigenvalues(const Array& first, const Array& second) {
  const Eigen::MatrixXd a = as_matrix(first), b = as_matrix(second), c = covariance(a), d = covariance(b);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> of_c(c);
  const Eigen::VectorXd roots = of_c.eigenvalues().cwiseMax(0).cwiseSqrt();
  const Eigen::MatrixXd root = of_c.eigenvectors() * roots.asDiagonal() * of_c.eigenvectors().transpose();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> product(root * d * root);
  return (a.colwise().mean() - b.colwise().mean()).squaredNorm() + c.trace() + d.trace() -
         2 * product.eigenvalues().cwiseMax(0).cwiseSqrt().sum();
}

/// Mixed features, so that covariances are not diagonal: of each row's numbers, running sums.
Array correlated(std::int64_t rows, std::int64_t features, float width, std::uint64_t seed) {
  Array array = uniform_array({rows, features}, -width, width + 0.25f, seed);
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (i % static_cast<std::size_t>(features) != 0) array[i] += array[i - 1];
  }
  return array;
}

TEST_CASE("the distance of sets with diagonal covariances has a closed form", "[frechet]") {
  const Array a = cross({1, 2, -3}, {1, 0.5f, 4}), b = cross({1, 0, 0}, {3, 0.5f, 0});
  // Standard deviations are the deviations times sqrt(2 / 5).
  CHECK(frechet_distance(a, b) == Approx(4 + 9 + 0.4 * (4 + 16)).epsilon(1e-14));
  CHECK(frechet_distance(a, b) == Approx(frechet_distance(b, a)).epsilon(1e-14));
  CHECK(frechet_distance(cross({5}, {2}), cross({1}, {2})) == Approx(16).epsilon(1e-14));
}

TEST_CASE("a set has no distance from itself, with singular covariances neither", "[frechet]") {
  for (const std::int64_t rows : {2, 5, 64, 200}) {
    const Array set = correlated(rows, 16, 3, 1);
    CHECK(frechet_distance(set, set) >= 0);
    CHECK(frechet_distance(set, set) < 1e-12 * covariance(as_matrix(set)).trace());
    // The same rows in another order.
    Array reversed({rows, 16});
    for (std::size_t i = 0; i < set.size(); ++i) {
      reversed[i] = set[(static_cast<std::size_t>(rows) - 1 - i / 16) * 16 + i % 16];
    }
    CHECK(frechet_distance(set, reversed) < 1e-12 * covariance(as_matrix(set)).trace());
  }
  CHECK(frechet_distance(Array::zeros({3, 4}), Array::zeros({2, 4})) == 0);
}

TEST_CASE("the distance is what eigenvalues give", "[frechet]") {
  for (const auto& [features, rows] : {std::pair{1, 2}, {3, 40}, {16, 17}, {64, 300}}) {
    INFO(features << " features");
    const Array a = correlated(rows, features, 1, 1), b = correlated(rows + 7, features, 1.5f, 2);
    CHECK(frechet_distance(a, b) == Approx(distance_by_eigenvalues(a, b)).epsilon(1e-9));
  }
  // Fewer rows than features: the oracle loses digits, not the distance.
  const Array few = correlated(5, 16, 1, 3), many = correlated(50, 16, 1, 4);
  CHECK(frechet_distance(few, many) == Approx(distance_by_eigenvalues(few, many)).epsilon(1e-6));
}

TEST_CASE("feature sets without a distance say why", "[frechet]") {
  const Array good = correlated(4, 3, 1, 1);
  const auto message = [&](const Array& other) {
    const std::string first = message_of<InvalidArgument>([&] { (void)frechet_distance(other, good); });
    check_says(message_of<InvalidArgument>([&] { (void)frechet_distance(good, other); }),
               {"frechet_distance"});
    return first;
  };
  check_says(message(Array::zeros({1, 3})), {"(1, 3)", "(4, 3)", "two or more rows"});
  check_says(message(Array::zeros({4, 2})), {"(4, 2)", "same features"});
  check_says(message(Array::zeros({4, 0})), {"(4, 0)"});
  check_says(message(Array::zeros({12})), {"(12)"});
  for (const float wrong : {NAN, INFINITY}) {
    Array bad = good.clone();
    bad[7] = wrong;
    check_says(message(bad), {"infinite or NaN", "finite"});
  }
}

}  // namespace
}  // namespace halfscope::frechet_distance_test
