// Transposition of four by four floats, in vectors that every processor has.
#pragma once

#include <halfscope/core/host_device.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

using Quad [[gnu::vector_size(16)]] = float;

struct Quads {
  Quad row[4];
};

HALFSCOPE_HD Quads transposed(const Quads& x) {
  const Quad low01 = __builtin_shufflevector(x.row[0], x.row[1], 0, 4, 1, 5);
  const Quad high01 = __builtin_shufflevector(x.row[0], x.row[1], 2, 6, 3, 7);
  const Quad low23 = __builtin_shufflevector(x.row[2], x.row[3], 0, 4, 1, 5);
  const Quad high23 = __builtin_shufflevector(x.row[2], x.row[3], 2, 6, 3, 7);
  return {{__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
           __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
           __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
           __builtin_shufflevector(high01, high23, 2, 3, 6, 7)}};
}

}  // namespace
}  // namespace halfscope
