// Forward and backward of the divergence between a teacher's and a student's distributions.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <vector>

#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/elementwise.hpp"
#include "lib/nn/softmax.hpp"
#include "lib/nn/strided_elementwise.hpp"
#include "sim/layers/losses.hpp"
#include "sim/layers/rows.hpp"

namespace halfscope {
namespace {

/// softmax(logits / temperature), row by row.
struct SoftenedRows {
  Array scores;       // (rows, classes): logits / temperature
  Array probability;  // (rows, classes)
  Array first_loss;   // (rows): -log of the first class's probability
};

SoftenedRows soften(const Array& logits, float temperature, const AccumulateModel& sums) {
  const std::int64_t rows = logits.extent(0);
  SoftenedRows softened{Array(logits.shape()), Array(logits.shape()), Array({rows})};
  scale(logits.view(), 1 / temperature, softened.scores.values());
  softmax_cross_entropy(softened.scores.values(), std::vector<std::int32_t>(static_cast<std::size_t>(rows)),
                        sums, softened.probability.values(), softened.first_loss.values());
  return softened;
}

Array difference(const Array& a, const Array& b) {
  Array result(a.shape());
  combine(Combination::difference, a.view(), b.view(), result.values());
  return result;
}

/// (rows): the sum of p log(p / q) over each row, p the teacher's and q the student's distribution.
Array divergences(const SoftenedRows& teacher, const SoftenedRows& student) {
  Array log_ratio = difference(teacher.scores, student.scores);
  const std::int64_t rows = log_ratio.extent(0), classes = log_ratio.extent(1);
  // The log of a class's ratio is that difference less a term that all classes of the row share.
  Array shared = difference(teacher.first_loss, student.first_loss);
  combine(Combination::sum, {rows, 1}, {shared.view(), 0, 1}, {log_ratio.view(), 0, classes},
          {shared.view(), 0, 1});
  subtract_from_rows(shared, log_ratio);
  return row_products(teacher.probability, log_ratio);
}

void check(const std::string& name, const Array& student, const Array& teacher, float temperature) {
  if (student.shape().size() != 2 || student.empty() || student.shape() != teacher.shape()) {
    throw InvalidArgument(
        fmt::format("layer {}: logits {} and a teacher's {}; give matrices of one shape, with rows", name,
                    to_string(student.shape()), to_string(teacher.shape())));
  }
  if (temperature > 0 && std::isfinite(temperature)) return;
  throw InvalidArgument(
      fmt::format("layer {}: temperature {}: give a number above 0", name, static_cast<double>(temperature)));
}

}  // namespace

TensorRef distillation_loss(Tape& tape, const std::string& name, TensorRef logits,
                            const Array& teacher_logits, float temperature) {
  const Operation operation = tape.operation("kl_div", name, {&logits});
  const Array& x = tape.value(logits);
  check(name, x, teacher_logits, temperature);
  const AccumulateModel fp32_sums = ScopedAccumulate{}.model;
  const bool trains = tape.phase() == Phase::training;
  SoftenedRows student = soften(x, temperature, trains ? operation.policy().reductions_in(name) : fp32_sums);
  const SoftenedRows teacher = soften(teacher_logits, temperature, fp32_sums);
  const float rows = static_cast<float>(x.extent(0));
  Array loss(Shape{});
  divided_sum(divergences(teacher, student).values(), rows / (temperature * temperature), fp32_sums,
              loss.values());

  const auto slopes = std::make_shared<Array>(difference(student.probability, teacher.probability));
  const auto backward = [logits, slopes, factor = temperature / rows](BackwardScope& scope, Array gradient) {
    scale(slopes->view(), factor, slopes->values());
    scale_rows(gradient, *slopes);
    scope.add_gradient(logits, std::move(*slopes));
  };
  return operation.record({.value = std::move(loss), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
