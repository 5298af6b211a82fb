// Updates that an optimizer intends, beside those that stored weights take.
#pragma once

#include <map>
#include <string>

#include <halfscope/stats/tracker.hpp>

#include "sim/tape/cast.hpp"
#include "sim/tape/parameter.hpp"

namespace halfscope {

/// Compares the updates of a step, parameter by parameter, with what is left of them in the format that the
/// weights are stored in: by how far the weights go along the intended update, and how many of them a decay
/// alone would not move. Sums are in double, in the order of the elements.
class AppliedUpdates {
 public:
  /// `decay` is the share of a weight that an update takes off it. Nothing is compared where `observations`
  /// is null; it and `caster` outlive this.
  AppliedUpdates(Caster& caster, double decay, StepObservations* observations);

  /// A parameter before its update, after the optimizer's in FP32, and as stored; one parameter at a time.
  void before(const Parameter& parameter);
  void intended(const Parameter& parameter);
  void applied(const Parameter& parameter);
  /// Into the counters of updates that a tracker has written into the observations.
  void write();

 private:
  struct Seen {
    UpdateProjection projection{};
    UpdateEffect decay{};
  };
  void count_decay(const Parameter& parameter);

  Caster* caster_;
  float decay_;
  StepObservations* observations_;
  bool stores_narrow_;
  Array before_{}, intended_{};  ///< in host memory
  std::map<std::string, Seen> seen_{};
};

}  // namespace halfscope
