// The roundings of an optimizer's state: none, and to a format.
#pragma once

#include <halfscope/format/round.hpp>

namespace halfscope {

struct Identity {
  HALFSCOPE_HD float operator()(float x) const { return x; }
};
struct RoundTo {
  Quantizer quantizer;
  HALFSCOPE_HD float operator()(float x) const { return round(x, quantizer); }
};

}  // namespace halfscope
