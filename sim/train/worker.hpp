// Training runs in the processes of an mpirun beside the first, which tells them what to do.
#pragma once

#include <functional>
#include <string>

#include "sim/train/trainer.hpp"

namespace halfscope {

/// Orders of the first process to the others, for the life of a run in training. With one process it does
/// nothing.
class Workers {
 public:
  /// They begin the run where `trainer` is.
  Workers(const RunSettings& settings, Trainer& trainer);
  /// They make a step, as the caller does next.
  void step() const;
  /// The run is over; other runs may follow.
  static void end_program();
};

/// Trains what the first process trains, until it ends the program. Throws where a run cannot begin, and
/// where a step fails: the other processes may be in the middle of it and wait for this one, so that the
/// caller has to end all of them.
void work_for_first_process();

}  // namespace halfscope
