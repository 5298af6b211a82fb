// Memory of a kernel's own until its scope ends; only for *_simd.cpp, which are compiled once per instruction
// set.
#pragma once

#include <cstddef>

// Unnamed, and not std::vector: what std instantiates in one of these files would be merged with that of
// another instruction set.
namespace halfscope {
namespace {

/// `count` elements, not initialised.
template <typename Element>
class Scratch {
 public:
  explicit Scratch(std::size_t count) : data_(new Element[count]) {}
  ~Scratch() { delete[] data_; }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  [[nodiscard]] Element* data() const { return data_; }

 private:
  Element* data_;
};

}  // namespace
}  // namespace halfscope
