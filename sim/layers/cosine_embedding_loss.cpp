// Forward and backward of the cosine between rows and their targets.
#include <fmt/format.h>

#include <memory>

#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/elementary.hpp"
#include "lib/nn/elementwise.hpp"
#include "lib/nn/strided_elementwise.hpp"
#include "sim/layers/losses.hpp"
#include "sim/layers/rows.hpp"
#include "sim/tape/filled.hpp"

namespace halfscope {
namespace {

constexpr float epsilon = 1e-12f;

/// (rows): 1 / sqrt(the sum of squares of each row + epsilon).
Array inverse_norms(const Array& x) {
  Array norms = row_products(x, x);
  add(filled(norms.shape(), epsilon).view(), norms.values());
  apply(Elementary::rsqrt, norms.values(), norms.values());
  return norms;
}

Array product(const Array& a, const Array& b) {
  Array result(a.shape());
  combine(Combination::product, a.view(), b.view(), result.values());
  return result;
}

}  // namespace

TensorRef cosine_embedding_loss(Tape& tape, const std::string& name, TensorRef x, Array targets) {
  const Operation operation = tape.operation("cosine_embedding_loss", name, {&x});
  const Shape& shape = tape.value(x).shape();
  if (shape.size() != 2 || tape.value(x).empty() || targets.shape() != shape) {
    throw InvalidArgument(
        fmt::format("layer {}: rows {} and targets {}; give matrices of one shape, with rows", name,
                    to_string(shape), to_string(targets.shape())));
  }
  struct Saved {
    Array x, targets, x_inverse_norm, target_inverse_norm, cosine;
  };
  const auto saved = std::make_shared<Saved>();
  saved->x = to_dtype(tape.value(x).clone(), DType::f32);
  saved->targets = std::move(targets);
  saved->x_inverse_norm = inverse_norms(saved->x);
  saved->target_inverse_norm = inverse_norms(saved->targets);
  saved->cosine = product(product(row_products(saved->x, saved->targets), saved->x_inverse_norm),
                          saved->target_inverse_norm);
  Array distance = filled({shape[0]}, 1);
  combine(Combination::difference, distance.view(), saved->cosine.view(), distance.values());
  Array loss(Shape{});
  const float rows = static_cast<float>(shape[0]);
  divided_sum(distance.values(), rows, ScopedAccumulate{}.model, loss.values());

  // (cosine x / |x| - target / |target|) / |x|, over the rows.
  const auto backward = [x, saved, rows](BackwardScope& scope, Array gradient) {
    Array slopes = std::move(saved->x), direction = std::move(saved->targets);
    scale_rows(product(saved->cosine, saved->x_inverse_norm), slopes);
    scale_rows(saved->target_inverse_norm, direction);
    combine(Combination::difference, slopes.view(), direction.view(), slopes.values());
    scale_rows(saved->x_inverse_norm, slopes);
    scale(slopes.view(), 1 / rows, slopes.values());
    scale_rows(gradient, slopes);
    scope.add_gradient(x, std::move(slopes));
  };
  return operation.record({.value = std::move(loss), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
