// Rounds an array and counts, on the way, what the rounding does to it.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include <halfscope/core/names.hpp>
#include <halfscope/core/random.hpp>
#include <halfscope/device/readback.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/kernel/cast/cast_counters.hpp>
#include <halfscope/stats/exponent_histogram.hpp>

namespace halfscope {

/// How closely a cast is looked at: a histogram takes several times as long as the counters alone.
enum class CastDetail : std::uint8_t { none, counters, histogram };
template <>
inline constexpr std::array<std::string_view, 3> enum_names<CastDetail>{"none", "counters", "histogram"};

/// Counters of a cast. A cast to FP32 is counted as if it were to FP16, so that a run in FP32 tells what
/// FP16 would have done.
struct CastCounts {
  std::int64_t elements = 0;
  CastCounters counters;
  std::optional<ExponentHistogram> before;  ///< histogram of the exact values, if it was asked for
};

/// Rounds `values`, of the active device, in place as `round` does and counts, on the CPU split over the
/// threads. Integers and a maximum: the
/// counts are the same however the array is split.
[[nodiscard]] CastCounts round_and_count(std::span<float> values, const Quantizer& quantizer,
                                         CastDetail detail, const RandomStream& stream = {});

/// The same on the device without waiting: what was counted of one tensor, in one cast or in several of its
/// parts, is known once a Readback has been read.
class QueuedCast {
 public:
  /// `detail` is not none.
  QueuedCast(const Quantizer& quantizer, CastDetail detail, Readback& readback);
  /// Queues the rounding and counting of `values`, which are added to those counted before.
  void round_and_count(std::span<float> values, const RandomStream& stream, Readback& readback);
  /// After `readback` has been read.
  [[nodiscard]] CastCounts counts(const Readback& readback) const;

 private:
  Quantizer quantizer_;
  std::int64_t elements_ = 0;
  std::optional<ReadbackSlot<std::int64_t>> histogram_, counters_;
};

}  // namespace halfscope
