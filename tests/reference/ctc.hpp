// CTC by its definition: every path through the labels, one after the other.
#pragma once

#include <cmath>
#include <vector>

#include <halfscope/device/array.hpp>

namespace halfscope::reference {

/// Labels of a path: runs of one label once, without the blank 0.
inline std::vector<std::int32_t> labels_of_path(const std::vector<std::int32_t>& path) {
  std::vector<std::int32_t> labels;
  for (std::size_t t = 0; t < path.size(); ++t) {
    if (path[t] != 0 && (t == 0 || path[t] != path[t - 1])) labels.push_back(path[t]);
  }
  return labels;
}

/// Likelihood of utterance b of logits (time, batch, labels): the sum over all labels^frames paths that give
/// `target` of the products of their softmax probabilities.
inline double ctc_likelihood(const Array& logits, std::int64_t b, std::int64_t frames,
                             const std::vector<std::int32_t>& target) {
  const std::int64_t batch = logits.extent(1), labels = logits.extent(2);
  const auto power = [&](std::int64_t t, std::int64_t k) {
    return std::exp(static_cast<double>(logits[static_cast<std::size_t>((t * batch + b) * labels + k)]));
  };
  double likelihood = 0;
  std::vector<std::int32_t> path(static_cast<std::size_t>(frames), 0);
  for (bool more = true; more;) {
    if (labels_of_path(path) == target) {
      double product = 1;
      for (std::int64_t t = 0; t < frames; ++t) {
        double sum = 0;
        for (std::int64_t k = 0; k < labels; ++k) sum += power(t, k);
        product *= power(t, path[static_cast<std::size_t>(t)]) / sum;
      }
      likelihood += product;
    }
    more = false;
    for (std::int32_t& label : path) {
      more = ++label < labels;
      if (more) break;
      label = 0;
    }
  }
  return likelihood;
}

}  // namespace halfscope::reference
