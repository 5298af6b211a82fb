// One step of a linear layer whose six operands have formats of their own, against the formats' rules applied
// by hand.
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include <halfscope/format/round.hpp>
#include <halfscope/kernel/cast/round.hpp>

#include "sim/layers/attention.hpp"
#include "sim/layers/layers.hpp"
#include "tests/sim/tape/leaf.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::layer_operands_test {
namespace {

constexpr std::uint64_t seed = 5;
constexpr std::int64_t step = 3;
constexpr Quantizer e2m1{.format = fp4_e2m1, .overflow = Overflow::saturate},
    e4m3{.format = fp8_e4m3, .overflow = Overflow::saturate};

/// Row by row.
struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<float> values{};

  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), values(r * c) {}
  float& operator()(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  float operator()(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
  [[nodiscard]] Matrix transposed() const {
    Matrix turned(columns, rows);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) turned(j, i) = (*this)(i, j);
    return turned;
  }
  [[nodiscard]] Array array() const {
    Array copy({static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)});
    std::copy(values.begin(), values.end(), copy.data());
    return copy;
  }
};

/// Multiples of 1/4 up to 8, times a power of two for each row, so that sums of 16 are exact.
Matrix numbers(std::size_t rows, std::size_t columns, std::uint32_t site) {
  Matrix matrix(rows, columns);
  const RandomStream stream{7, 0, site};
  for (std::size_t i = 0; i < matrix.values.size(); ++i) {
    const int steps = static_cast<int>(stream.bits(i) % 65) - 32;
    matrix.values[i] = std::ldexp(static_cast<float>(steps), -2 - static_cast<int>(i / columns % 5));
  }
  return matrix;
}

/// a times the transpose of b: each number one chain of fused multiply-adds.
Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.rows);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < b.rows; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < a.columns; ++k) sum = std::fma(a(i, k), b(j, k), sum);
      c(i, j) = sum;
    }
  }
  return c;
}

/// The largest magnitude of a block of a matrix.
float amax_of(const Matrix& m, std::size_t row, std::size_t rows, std::size_t column, std::size_t columns) {
  float amax = 0;
  for (std::size_t i = row; i < std::min(row + rows, m.rows); ++i)
    for (std::size_t j = column; j < std::min(column + columns, m.columns); ++j)
      amax = std::max(amax, std::abs(m(i, j)));
  return amax;
}

/// OCP MX with the scale of cuBLAS, the least power of two under which amax is at most 448.
Matrix mxfp8(const Matrix& x) {
  Matrix y = x;
  for (std::size_t i = 0; i < x.rows; ++i) {
    for (std::size_t j = 0; j < x.columns; ++j) {
      const float amax = amax_of(x, i, 1, j / 32 * 32, 32);
      int exponent = std::ilogb(amax) - 8;
      if (std::ldexp(amax, -exponent) > 448) ++exponent;
      y(i, j) = std::ldexp(round(std::ldexp(x(i, j), -exponent), e4m3), exponent);
    }
  }
  return y;
}

/// Elements of NVFP4 are rounded so: `draws` is the name of the operand, of stochastic ones.
struct Draws {
  const char* name = nullptr;

  [[nodiscard]] float operator()(float x, std::size_t index) const {
    Quantizer quantizer = e2m1;
    if (name == nullptr) return round(x, quantizer);
    quantizer.rounding = Rounding::stochastic;
    const std::uint32_t site = stream_site({.tensor = name, .role = Role::activation_gradient});
    return round(x, quantizer, rounding_bits({seed, static_cast<std::uint32_t>(step), site}, index));
  }
};

/// NVFP4 as TransformerEngine computes it, in tiles of `rows` x 16.
Matrix nvfp4(const Matrix& x, std::size_t rows, const Draws& element = {}) {
  Matrix y = x;
  const float amax = amax_of(x, 0, x.rows, 0, x.columns);
  const float tensor = 2688 / amax, sixth = tensor * (1.0f / 6);
  for (std::size_t i = 0; i < x.rows; ++i) {
    for (std::size_t j = 0; j < x.columns; ++j) {
      const float block = amax_of(x, i / rows * rows, rows, j / 16 * 16, 16);
      const float scale = round(std::min(block * sixth, 448.0f), e4m3);
      const float factor = std::min(1 / (scale * (1 / tensor)), std::numeric_limits<float>::max());
      y(i, j) = element(x(i, j) * factor, i * x.columns + j) * scale * (amax / 2688);
    }
  }
  return y;
}

/// Groups of 16 times diag(v) H / 4, rounded to BF16.
Matrix hadamard(const Matrix& x) {
  constexpr std::array v{1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};
  Matrix y = x;
  for (std::size_t i = 0; i < x.rows; ++i) {
    for (std::size_t j = 0; j < x.columns; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < 16; ++k) {
        const int sign = std::popcount(k & (j % 16)) % 2 == 0 ? 1 : -1;
        sum += sign * v[k] * double{x(i, j / 16 * 16 + k)};
      }
      y(i, j) = round(static_cast<float>(sum / 4), {.format = bf16});
    }
  }
  return y;
}

/// A scale of the whole, of its own magnitude.
Matrix current(const Matrix& x, const FloatFormat& format) {
  Matrix y = x;
  const float largest = static_cast<float>(format == fp8_e4m3 ? 448 : 57344);
  const float scale = largest / amax_of(x, 0, x.rows, 0, x.columns);
  for (float& value : y.values)
    value = round(value * scale, {.format = format, .overflow = Overflow::saturate}) * (1 / scale);
  return y;
}

/// A recipe's image of an operand whose columns are summed over.
using Recipe = std::function<Matrix(const Matrix&, const OperandPlace&)>;

Matrix by_mxfp8(const Matrix& x, const OperandPlace& /*place*/) {
  return mxfp8(x);
}

Matrix by_nvfp4(const Matrix& x, const OperandPlace& place) {
  const std::string name = "fc." + to_string(place);
  const bool left = place.side == OperandSide::left;
  if (place.product == ProductKind::weight_gradient)
    return nvfp4(hadamard(x), 1, {left ? name.c_str() : nullptr});
  if (!left) return nvfp4(x, 16);
  return nvfp4(x, 1, {place.product == ProductKind::forward ? nullptr : name.c_str()});
}

Matrix by_fp8_current(const Matrix& x, const OperandPlace& place) {
  const bool gradient = place.product != ProductKind::forward && place.side == OperandSide::left;
  return current(x, gradient ? fp8_e5m2 : fp8_e4m3);
}

constexpr std::size_t tokens = 32, in = 48, out = 64;

/// Results of a layer's step.
struct Step {
  std::vector<float> y, x_gradient, weight_gradient;

  friend bool operator==(const Step&, const Step&) = default;
};

struct Tensors {
  Matrix x = numbers(tokens, in, 1), weight = numbers(in, out, 2), gradient = numbers(tokens, out, 3);
};

/// The policy's operands, all else FP32.
PrecisionPolicy fp32_with(const char* operands) {
  PrecisionPolicy policy = fp32_policy();
  policy.operands = parse_operand_rules(operands);
  return policy;
}

PrecisionPolicy operands_of_recipe(const char* name) {
  PrecisionPolicy policy = fp32_policy();
  policy.operands = find_in_table("policy", name, policy_table).make().operands;
  return policy;
}

std::vector<float> copy(const Array& array) {
  return {array.values().begin(), array.values().end()};
}

Step step_of(const PrecisionPolicy& policy, const Tensors& tensors) {
  TrackerList none;
  Caster caster(policy, seed, none);
  caster.begin_step({.step = step});
  ParameterStore store;
  Parameter& x = store.add("x", tensors.x.array());
  Parameter& weight = store.add("weight", tensors.weight.array());
  Parameter& bias = store.add("bias", Array::zeros({static_cast<std::int64_t>(out)}));
  Tape tape(caster, Phase::training);
  const TensorRef y = linear(tape, "fc", leaf(tape, x), {weight, bias});
  const TensorRef loss = loss_with(
      tape, [&](BackwardScope& scope, const Array&) { scope.add_gradient(y, tensors.gradient.array()); });
  tape.backward(loss, 1);
  return {copy(tape.value(y)), copy(x.gradient), copy(weight.gradient)};
}

Step by_hand(const Recipe& recipe, const Tensors& t) {
  const auto of = [&](const Matrix& x, ProductKind product, OperandSide side) {
    return recipe(x, {product, side});
  };
  using enum ProductKind;
  using enum OperandSide;
  const Matrix turned_x = t.x.transposed(), turned_gradient = t.gradient.transposed();
  return {product(of(t.x, forward, left), of(t.weight.transposed(), forward, right)).values,
          product(of(t.gradient, data_gradient, left), of(t.weight, data_gradient, right)).values,
          product(of(turned_gradient, weight_gradient, left), of(turned_x, weight_gradient, right))
              .transposed()
              .values};
}

TEST_CASE("a linear layer's six operands are what their format's rules say", "[operands]") {
  const Tensors tensors;
  CHECK(step_of(operands_of_recipe("mxfp8"), tensors) == by_hand(by_mxfp8, tensors));
  CHECK(step_of(operands_of_recipe("nvfp4"), tensors) == by_hand(by_nvfp4, tensors));
  CHECK(step_of(operands_of_recipe("fp8_current"), tensors) == by_hand(by_fp8_current, tensors));
  const Step exact = by_hand([](const Matrix& x, const OperandPlace&) { return x; }, tensors);
  CHECK(step_of(fp32_policy(), tensors) == exact);
  CHECK(step_of(fp32_with("*=mxfp8@other"), tensors) == exact);
  CHECK(step_of(operands_of_recipe("mxfp8"), tensors) != exact);
}

TEST_CASE("a rule of one product changes that product alone", "[operands]") {
  const Tensors tensors;
  const Step exact = step_of(fp32_policy(), tensors), all = step_of(fp32_with("*=mxfp4"), tensors);
  const Step forward = step_of(fp32_with("forward=mxfp4"), tensors);
  CHECK(forward == Step{all.y, exact.x_gradient, exact.weight_gradient});
  const Step data = step_of(fp32_with("data_gradient=mxfp4"), tensors);
  CHECK(data == Step{exact.y, all.x_gradient, exact.weight_gradient});
  const Step weight = step_of(fp32_with("weight_gradient=mxfp4"), tensors);
  CHECK(weight == Step{exact.y, exact.x_gradient, all.weight_gradient});
}

/// The largest difference of two weight gradients, over the largest of them.
double difference(const Step& a, const Step& b) {
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < a.weight_gradient.size(); ++i) {
    largest = std::max(largest, std::abs(double{a.weight_gradient[i]}));
    difference = std::max(difference, std::abs(double{a.weight_gradient[i]} - b.weight_gradient[i]));
  }
  return difference / largest;
}

TEST_CASE("Hadamard's transform of both operands leaves a product what it is", "[operands]") {
  for (const std::size_t rows : {tokens, tokens - 1, std::size_t{8}}) {
    INFO(rows);
    const Tensors tensors{.x = numbers(rows, in, 1), .gradient = numbers(rows, out, 3)};
    const Step exact = step_of(fp32_policy(), tensors);
    const Step transformed = step_of(fp32_with("weight_gradient=fp32+hadamard"), tensors);
    CHECK(difference(exact, transformed) < 0x1p-7);  // BF16's roundings
    CHECK((exact == transformed) == (rows < 16));
  }
}

}  // namespace
}  // namespace halfscope::layer_operands_test
