// Operations on finite numbers worked out by MPFR with enough bits to be exact, or with a rest that is known.
#pragma once

#include <mpfr.h>

#include <cmath>

#include "tests/reference/operations.hpp"

namespace halfscope::reference {

class Mpfr {
 public:
  Mpfr() {
    for (auto& x : operands_) mpfr_init2(x, 24);
    mpfr_init2(result_, 700);  // exact sums of products of floats take 605 bits
  }
  Mpfr(const Mpfr&) = delete;
  Mpfr& operator=(const Mpfr&) = delete;
  ~Mpfr() {
    for (auto& x : operands_) mpfr_clear(x);
    mpfr_clear(result_);
  }

  [[nodiscard]] Answer fma(const float* x, const Quantizer& q) {
    set(x, 3);
    const int rest = mpfr_fma(result_, operands_[0], operands_[1], operands_[2], direction(q));
    return finish(rest, q);
  }
  [[nodiscard]] Answer add(const float* x, const Quantizer& q) {
    set(x, 2);
    return finish(mpfr_add(result_, operands_[0], operands_[1], direction(q)), q);
  }
  [[nodiscard]] Answer mul(const float* x, const Quantizer& q) {
    set(x, 2);
    return finish(mpfr_mul(result_, operands_[0], operands_[1], direction(q)), q);
  }
  [[nodiscard]] Answer div(const float* x, const Quantizer& q) {
    set(x, 2);
    return finish(mpfr_div(result_, operands_[0], operands_[1], MPFR_RNDZ), q);
  }
  [[nodiscard]] Answer sqrt(const float* x, const Quantizer& q) {
    set(x, 1);
    return finish(mpfr_sqrt(result_, operands_[0], MPFR_RNDZ), q);
  }
  [[nodiscard]] Answer rem(const float* x, const Quantizer& q) {
    set(x, 2);
    return finish(mpfr_remainder(result_, operands_[0], operands_[1], MPFR_RNDZ), q);
  }

 private:
  /// Exact results have no direction, but an exact zero has its sign from it.
  static mpfr_rnd_t direction(const Quantizer& q) {
    return q.rounding == Rounding::down ? MPFR_RNDD : MPFR_RNDZ;
  }

  void set(const float* x, int count) {
    for (int i = 0; i < count; ++i) mpfr_set_flt(operands_[i], x[i], MPFR_RNDN);
  }

  /// `rest` is MPFR's: not 0 where the result is not exact.
  Answer finish(int rest, const Quantizer& q) {
    if (mpfr_nan_p(result_)) return nan_answer(0, 0, 0);
    double x = mpfr_get_d(result_, MPFR_RNDZ);
    const bool exact = rest == 0 && mpfr_cmp_d(result_, x) == 0;
    if (!exact && std::isfinite(x)) x = to_odd(x, std::signbit(x) ? -1 : 1);
    return answer(x, q);
  }

  mpfr_t operands_[3];
  mpfr_t result_;
};

}  // namespace halfscope::reference
