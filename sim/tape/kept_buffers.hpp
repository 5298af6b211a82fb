// Running statistics that a forward pass is to leave alone.
#pragma once

#include <utility>
#include <vector>

#include "sim/tape/parameter.hpp"

namespace halfscope {

/// Keeps the buffers of stores, which outlive it, and puts them back at its end.
class KeptBuffers {
 public:
  explicit KeptBuffers(std::vector<ParameterStore*> stores) : stores_(std::move(stores)) {
    for (const ParameterStore* store : stores_)
      for (const Buffer& buffer : store->buffers) copies_.push_back(buffer.value.clone());
  }
  ~KeptBuffers() {
    std::size_t next = 0;
    for (ParameterStore* store : stores_)
      for (Buffer& buffer : store->buffers) buffer.value = std::move(copies_[next++]);
  }
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;

 private:
  std::vector<ParameterStore*> stores_;
  std::vector<Array> copies_{};
};

}  // namespace halfscope
