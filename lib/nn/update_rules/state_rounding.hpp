// The roundings of an optimizer's state: none, any, and to the nearest number alone.
#pragma once

#include <halfscope/format/round.hpp>

namespace halfscope {

struct KeepState {
  HALFSCOPE_HD float operator()(float x) const { return x; }
};
struct RoundState {
  Quantizer quantizer;
  HALFSCOPE_HD float operator()(float x) const { return round(x, quantizer); }
};
/// `RoundState` for a quantizer that rounds to nearest even, without a choice between roundings.
struct RoundStateToNearest {
  RoundingGrid grid;
  HALFSCOPE_HD float operator()(float x) const { return round_on_grid<Rounding::nearest_even>(x, grid); }
};

}  // namespace halfscope
