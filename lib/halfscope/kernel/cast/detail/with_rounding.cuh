// A rounding that is known when the program runs, as a constant of the kernels.
#pragma once

#include <halfscope/format/quantizer.hpp>

namespace halfscope::cuda {

/// body.operator()<rounding>().
template <typename Body>
void with_rounding(Rounding rounding, const Body& body) {
  switch (rounding) {
    case Rounding::nearest_even:
      return body.template operator()<Rounding::nearest_even>();
    case Rounding::nearest_away:
      return body.template operator()<Rounding::nearest_away>();
    case Rounding::toward_zero:
      return body.template operator()<Rounding::toward_zero>();
    case Rounding::up:
      return body.template operator()<Rounding::up>();
    case Rounding::down:
      return body.template operator()<Rounding::down>();
    case Rounding::to_odd:
      return body.template operator()<Rounding::to_odd>();
    case Rounding::stochastic:
      return body.template operator()<Rounding::stochastic>();
  }
}

}  // namespace halfscope::cuda
