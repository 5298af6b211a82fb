// Gathers rows forward, scatters sums of rows backward.
#include "sim/layers/layers.hpp"

#include <fmt/format.h>

#include <memory>

#include "lib/nn/embedding.hpp"

namespace halfscope {
namespace {

void check_tokens(const std::string& name, const Tokens& tokens, std::int64_t vocabulary) {
  if (element_count(tokens.leading) != tokens.values.size()) {
    throw InvalidArgument(fmt::format("layer {}: {} tokens do not fill axes {}", name, tokens.values.size(),
                                      to_string(tokens.leading)));
  }
  for (std::size_t i = 0; i < tokens.values.size(); ++i) {
    if (tokens.values[i] >= 0 && tokens.values[i] < vocabulary) continue;
    throw InvalidArgument(fmt::format("layer {}: token {} of position {} is not in [0, {})", name,
                                      tokens.values[i], i, vocabulary));
  }
}

}  // namespace

TensorRef embedding(Tape& tape, const std::string& name, const Tokens& tokens, Parameter& table) {
  const Operation operation = tape.operation("embedding", name);
  const TensorRef rows = operation.parameter(table);
  const Array& weight = tape.value(rows);
  const std::int64_t features = weight.extent(1);
  check_tokens(name, tokens, weight.extent(0));
  Shape shape = tokens.leading;
  shape.push_back(features);
  Array y(std::move(shape), weight.dtype());
  const auto index = std::make_shared<const RowIndex>(tokens.values, weight.extent(0));
  gather_rows(weight.view(), *index, y.view());

  const auto backward = [rows, index](BackwardScope& scope, Array gradient) {
    Array sums(scope.value(rows).shape());
    sum_rows(gradient.view(), *index, sums.values());
    scope.add_gradient(rows, std::move(sums));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
