// CTC against all of its paths, and rows that are zeros.
#include "sim/layers/layers.hpp"
#include "tests/reference/ctc.hpp"
#include "tests/sim/layers/layer_case.hpp"

namespace halfscope::speech_layer_cases {
namespace {

using Labels = std::vector<std::int32_t>;

void no_parameters(ParameterStore& /*store*/) {}

LayerCase ctc_case(std::string name, Shape logits, Labels frames, const std::vector<Labels>& targets) {
  Labels counts, labels;
  for (const Labels& target : targets) {
    counts.push_back(static_cast<std::int32_t>(target.size()));
    labels.insert(labels.end(), target.begin(), target.end());
  }
  return {std::move(name), std::move(logits), no_parameters,
          [frames, counts, labels](Tape& t, TensorRef x, ParameterStore&) {
            return ctc_loss(t, "y", x, {frames, counts, labels});
          },
          [frames, targets](const ParameterStore& s) {
            double loss = 0;
            for (std::size_t b = 0; b < targets.size(); ++b) {
              loss -= std::log(reference::ctc_likelihood(master(s, 0), static_cast<std::int64_t>(b),
                                                         frames[b], targets[b]));
            }
            return std::vector<double>{loss / static_cast<double>(targets.size())};
          }};
}

LayerCase rows_case(std::string name, Labels rows, Shape shape) {
  return {std::move(name),
          {4, 3},
          no_parameters,
          [rows, shape](Tape& t, TensorRef x, ParameterStore&) {
            return take_rows(t, "y", x, {rows, 3, shape, AbsentRows::zeros});
          },
          [rows](const ParameterStore& s) {
            std::vector<double> y;
            for (const std::int32_t row : rows) {
              for (std::size_t c = 0; c < 3; ++c)
                y.push_back(
                    row < 0 ? 0.0 : static_cast<double>(master(s, 0)[static_cast<std::size_t>(row) * 3 + c]));
            }
            return y;
          }};
}

std::vector<LayerCase> cases() {
  return {ctc_case("ctc_loss", {4, 2, 3}, {4, 4}, {{1, 2}, {2}}),
          ctc_case("ctc_loss of utterances with padding", {5, 3, 3}, {5, 3, 1}, {{1, 2, 1}, {2, 2}, {1}}),
          ctc_case("ctc_loss of equal labels in as many frames as they need", {5, 1, 3}, {5}, {{1, 1, 1}}),
          ctc_case("ctc_loss of no labels", {3, 2, 4}, {3, 2}, {{}, {3}}),
          ctc_case("ctc_loss of a label per frame", {3, 1, 4}, {3}, {{1, 2, 3}}),
          rows_case("take_rows of which some are zeros", {2, no_row, 0, 2}, {}),
          rows_case("take_rows of a shape", {3, 1, no_row, 0}, {2, 2, 3})};
}
const LayerCases registered(cases);

}  // namespace
}  // namespace halfscope::speech_layer_cases
