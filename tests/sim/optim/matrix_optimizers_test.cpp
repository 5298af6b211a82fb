// Muon and StableAdamW against their definitions in double precision.
#include <algorithm>
#include <cmath>

#include <halfscope/arithmetic/normal.hpp>

#include "sim/optim/newton_schulz.hpp"
#include "sim/optim/optimizers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::matrix_optimizers_test {
namespace {

/// A matrix in double precision, row by row.
struct Matrix {
  std::size_t rows, columns;
  std::vector<double> values;

  [[nodiscard]] double norm() const {
    double squares = 0;
    for (const double x : values) squares += x * x;
    return std::sqrt(squares);
  }
  [[nodiscard]] Matrix transposed() const {
    Matrix turned{columns, rows, {}};
    for (std::size_t c = 0; c < columns; ++c)
      for (std::size_t r = 0; r < rows; ++r) turned.values.push_back(values[r * columns + c]);
    return turned;
  }
};

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix product{a.rows, b.columns, std::vector<double>(a.rows * b.columns)};
  for (std::size_t r = 0; r < a.rows; ++r)
    for (std::size_t i = 0; i < a.columns; ++i)
      for (std::size_t c = 0; c < b.columns; ++c)
        product.values[r * b.columns + c] += a.values[r * a.columns + i] * b.values[i * b.columns + c];
  return product;
}

/// s x + t y.
Matrix sum_of(double s, const Matrix& x, double t, const Matrix& y) {
  Matrix sum = x;
  for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] = s * x.values[i] + t * y.values[i];
  return sum;
}

Matrix matrix_of(const Array& array) {
  return {static_cast<std::size_t>(array.extent(0)),
          static_cast<std::size_t>(array.extent(1)),
          {array.data(), array.data() + array.size()}};
}

/// Five steps of the iteration in double precision.
Matrix orthogonalised_exactly(const Matrix& matrix) {
  const bool tall = matrix.rows > matrix.columns;
  Matrix x = tall ? matrix.transposed() : matrix;
  const double norm = std::max(x.norm(), 1e-7);
  for (double& value : x.values) value /= norm;
  for (int step = 0; step < 5; ++step) {
    const Matrix gram = x * x.transposed();
    x = sum_of(3.4445, x, 1, sum_of(-4.775, gram, 2.0315, gram * gram) * x);
  }
  return tall ? x.transposed() : x;
}

/// The largest singular value, by the power method.
double largest_singular_value(const Matrix& x) {
  Matrix direction{x.columns, 1, std::vector<double>(x.columns, 1)};
  for (int step = 0; step < 500; ++step) {
    direction = x.transposed() * (x * direction);
    const double norm = direction.norm();
    for (double& value : direction.values) value /= norm;
  }
  return (x * direction).norm();
}

Array normal_array(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  Array array({rows, columns});
  for (std::size_t i = 0; i < array.size(); ++i) array[i] = normal_pair({.seed = seed}, i)[0];
  return array;
}

/// Frobenius norm of the difference, relative.
double error_of(const Array& found, const Matrix& exact) {
  return sum_of(1, matrix_of(found), -1, exact).norm() / exact.norm();
}

double mean_error(std::int64_t rows, std::int64_t columns, const Quantizer& format) {
  constexpr int matrices = 5;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < matrices; ++seed) {
    const Array x = normal_array(rows, columns, seed + 1);
    sum += error_of(orthogonalised(x, {.format = format}), orthogonalised_exactly(matrix_of(x)));
  }
  return sum / matrices;
}

TEST_CASE("Newton-Schulz steps err as far as the format's numbers lie apart", "[muon]") {
  for (const auto& [rows, columns] : {std::pair{64, 64}, {64, 176}, {176, 64}}) {
    INFO(rows << " x " << columns);
    CHECK(mean_error(rows, columns, {}) < 1e-5);
    const double bf16_error = mean_error(rows, columns, {.format = bf16});
    const double fp16_error = mean_error(rows, columns, {.format = fp16});
    CHECK(bf16_error > 3e-3);
    CHECK(bf16_error < 4e-2);
    // Three bits more.
    CHECK(bf16_error / fp16_error > 5);
    CHECK(bf16_error / fp16_error < 12);
  }
}

TEST_CASE("singular values come near 1, in the wider direction of any matrix", "[muon]") {
  for (const auto& [rows, columns] : {std::pair{48, 48}, {32, 80}, {80, 32}}) {
    const Matrix y = matrix_of(orthogonalised(normal_array(rows, columns, 3), {.format = {.format = bf16}}));
    CHECK(largest_singular_value(y) < 1.25);
    // The mean square of the singular values, of which a square matrix has some near 0.
    const double mean_square = y.norm() * y.norm() / std::min(rows, columns);
    CHECK(mean_square > 0.5);
    CHECK(mean_square < 1.3);
  }
}

TEST_CASE("a matrix of zeros stays one, and a scale of any other does not show", "[muon]") {
  const Array none = orthogonalised(Array::zeros({3, 4}), {});
  CHECK(std::ranges::all_of(none.values(), [](float x) { return x == 0; }));
  Array x = normal_array(8, 12, 5), larger = x.clone();
  for (float& value : larger.values()) value *= 1024;
  CHECK(std::ranges::equal(orthogonalised(x, {}).values(), orthogonalised(larger, {}).values()));
}

/// A store with one parameter of each name, uniform on +-1.
ParameterStore store_of(std::initializer_list<std::pair<const char*, Shape>> parameters) {
  ParameterStore store;
  std::uint64_t seed = 10;
  for (const auto& [name, shape] : parameters) store.add(name, uniform_array(shape, -1, 1, seed++));
  return store;
}

std::unique_ptr<Optimizer> made(const OptimizerKind& kind, const ParameterStore& store,
                                const OptionValues& options) {
  return kind.make(store, {.values = resolve_entry_options({"optimizer", "test"}, kind.options, options)});
}

/// One update of parameter `index` by `gradient`, whose unscale and clip are given.
void update(Optimizer& optimizer, ParameterStore& store, std::size_t index, const Array& gradient,
            float unscale = 1, float clip = 1) {
  std::vector<std::uint32_t> largest(1);
  optimizer.update(index, {.gradient = gradient.values(),
                           .unscale = unscale,
                           .clip = clip,
                           .weights = store.parameters[index].master.values(),
                           .largest = largest});
}

TEST_CASE("Muon moves matrices along their momentum made orthogonal", "[muon]") {
  ParameterStore store = store_of({{"w", {6, 10}}});
  const OptionValues options{{"newton_schulz_exponent_bits", 8},
                             {"newton_schulz_mantissa_bits", 23},
                             {"weight_decay", 0.1},
                             {"momentum", 0.9}};
  const auto optimizer = made(muon_kind, store, options);
  Matrix weight = matrix_of(store.parameters[0].master), momentum{6, 10, std::vector<double>(60)};
  for (std::uint64_t step = 0; step < 3; ++step) {
    const Array gradient = normal_array(6, 10, 30 + step);
    optimizer->begin_step(0.02);
    update(*optimizer, store, 0, gradient, 0.5f, 0.25f);
    const Matrix g = sum_of(0.125, matrix_of(gradient), 0, momentum);
    momentum = sum_of(0.9, momentum, 0.1, g);
    const Matrix direction = orthogonalised_exactly(sum_of(0.9, momentum, 0.1, g));
    weight = sum_of(1 - 0.02 * 0.1, weight, -0.02 * 0.2 * std::sqrt(10.0), direction);
    CHECK(error_of(store.parameters[0].master, weight) < 1e-5);
  }
}

TEST_CASE("Muon leaves vectors, tables of words and the last layer to AdamW", "[muon]") {
  const auto shapes = {
      std::pair{"embedding", Shape{4, 3}}, {"output.weight", Shape{3, 4}}, {"norm.gamma", Shape{3}}};
  ParameterStore by_muon = store_of(shapes), by_adamw = store_of(shapes);
  const auto muon = made(muon_kind, by_muon, {{"weight_decay", 0.1}}),
             adamw = made(adamw_kind, by_adamw, {{"weight_decay", 0.1}});
  for (int step = 0; step < 2; ++step) {
    muon->begin_step(0.01);
    adamw->begin_step(0.01);
    for (std::size_t i = 0; i < 3; ++i) {
      const Array gradient = uniform_array(by_muon.parameters[i].master.shape(), -1, 1, 50 + i);
      update(*muon, by_muon, i, gradient);
      update(*adamw, by_adamw, i, gradient);
      CHECK(
          std::ranges::equal(by_muon.parameters[i].master.values(), by_adamw.parameters[i].master.values()));
    }
  }
}

TEST_CASE("a filter of Muon's is a matrix of all that an output sees, with one array of state", "[muon]") {
  ParameterStore filters = store_of({{"conv", {3, 3, 2, 5}}}), matrix = store_of({{"conv", {18, 5}}});
  const auto of_filters = made(muon_kind, filters, {}), of_matrix = made(muon_kind, matrix, {});
  of_filters->begin_step(0.01);
  of_matrix->begin_step(0.01);
  update(*of_filters, filters, 0, uniform_array({3, 3, 2, 5}, -1, 1, 60));
  update(*of_matrix, matrix, 0, uniform_array({18, 5}, -1, 1, 60));
  CHECK(std::ranges::equal(filters.parameters[0].master.values(), matrix.parameters[0].master.values()));
  REQUIRE(of_filters->state().size() == 1);
  CHECK(of_filters->state()[0].name == "first_moment.conv");
}

/// A weight of StableAdamW in double precision.
struct StableWeight {
  double weight, first = 0, second = 0;
};

TEST_CASE("StableAdamW slows a tensor down whose gradients outgrow their mean squares", "[stable_adamw]") {
  constexpr double rate = 0.01, decay = 0.1, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8;
  ParameterStore store = store_of({{"w", {50}}});
  const auto optimizer = made(stable_adamw_kind, store, {{"beta2", beta2}, {"weight_decay", decay}});
  std::vector<StableWeight> weights;
  for (const float w : store.parameters[0].master.values()) weights.push_back({.weight = double{w}});
  for (int step = 1; step <= 4; ++step) {
    // The third step's gradients are a hundred times the others'.
    Array gradient = uniform_array({50}, -1, 1, static_cast<std::uint64_t>(70 + step));
    if (step == 3)
      for (float& g : gradient.values()) g *= 100;
    optimizer->begin_step(rate);
    update(*optimizer, store, 0, gradient, 0.25f);
    double squares = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double g = double{gradient[i]} / 4;
      weights[i].first = beta1 * weights[i].first + (1 - beta1) * g;
      weights[i].second = beta2 * weights[i].second + (1 - beta2) * g * g;
      squares += g * g / std::max(weights[i].second / (1 - std::pow(beta2, step)), epsilon * epsilon);
    }
    const double rms = std::sqrt(squares / 50), own = rate / std::max(1.0, rms);
    if (step == 3) CHECK(rms > 1.5);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      StableWeight& w = weights[i];
      const double mean = w.first / (1 - std::pow(beta1, step)),
                   root = std::sqrt(w.second / (1 - std::pow(beta2, step)));
      w.weight -= own * (mean / (root + epsilon) + decay * w.weight);
      INFO("step " << step << ", weight " << i);
      CHECK(store.parameters[0].master[i] == Approx(w.weight).epsilon(1e-4).margin(1e-7));
    }
  }
}

TEST_CASE("a tensor without gradients stays where it is under StableAdamW", "[stable_adamw]") {
  ParameterStore store = store_of({{"w", {5}}});
  const Array before = store.parameters[0].master.clone();
  const auto optimizer = made(stable_adamw_kind, store, {{"epsilon", 1e-30}});
  optimizer->begin_step(0.01);
  update(*optimizer, store, 0, Array::zeros({5}));
  CHECK(std::ranges::equal(store.parameters[0].master.values(), before.values()));
}

}  // namespace
}  // namespace halfscope::matrix_optimizers_test
