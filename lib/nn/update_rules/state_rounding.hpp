// The roundings of an optimizer's state: none, and to a format.
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

}  // namespace halfscope
