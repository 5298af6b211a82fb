// The parameters of a network: the master copy that the optimizer updates, and the copy that the network
// computes with.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include <halfscope/device/array.hpp>

namespace halfscope {

/// `gradient` is empty until a backward pass has filled it; it carries the loss scale.
struct Parameter {
  std::string name;
  Array master;
  Array working{};  ///< the master copy cast to the weight's format; empty where that is FP32
  Array gradient{};
  std::int64_t version = 0;  ///< updates of the master copy so far
  bool frozen = false;       ///< a constant: tapes compute no gradient of it

  [[nodiscard]] const Array& weight() const { return working.empty() ? master : working; }
};

/// State that is learnt without a gradient: the running statistics of batch norm. Always FP32.
struct Buffer {
  std::string name;
  Array value;
};

/// Owns what a network learns. References stay valid while it grows.
struct ParameterStore {
  std::deque<Parameter> parameters;
  std::deque<Buffer> buffers;

  Parameter& add(std::string name, Array initial) {
    return parameters.emplace_back(Parameter{std::move(name), std::move(initial)});
  }
  Buffer& add_buffer(std::string name, Array initial) {
    return buffers.emplace_back(Buffer{std::move(name), std::move(initial)});
  }
};

}  // namespace halfscope
