// Events on the device whose counts have not been read back; the trackers learn of them afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include <halfscope/kernel/reduce/reduce.hpp>
#include <halfscope/stats/cast_counts.hpp>
#include <halfscope/stats/site.hpp>

#include "lib/nn/optimizer_step.hpp"

namespace halfscope {

/// Who hears of a cast.
struct CastSubscribers {
  bool trackers = false;
  bool weight_gradients = false;  ///< the step's histogram of all of them

  friend bool operator==(const CastSubscribers&, const CastSubscribers&) = default;
};

struct PendingCast {
  QueuedCast cast;
  CastSubscribers subscribers;
};

struct PendingReduction {
  ReadbackSlot<ColumnCounters> column_counters;
  std::int64_t terms = 0;  ///< of each sum
};

struct PendingUpdate {
  ReadbackSlot<std::int64_t> counters;
  ReadbackSlot<UpdateSums> sums;
  std::int64_t elements = 0;
};

struct PendingEvent {
  std::string tensor;
  Site site;  ///< but for its tensor
  Quantizer quantizer;
  std::variant<PendingCast, PendingReduction, PendingUpdate> what;
};

}  // namespace halfscope
