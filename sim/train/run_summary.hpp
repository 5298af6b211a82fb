// The part of a run's summary that its records tell.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/kernel/reduce/all_reduce.hpp>

namespace halfscope {

/// Gathered record by record, so that a resumed run, which reads its earlier records again, says the same as
/// an unbroken one.
class RunSummary {
 public:
  /// A step's line of metrics.jsonl, as it was written or as it reads back, where an infinity has become
  /// null.
  void add(const Json& record);
  void write_to(Json& summary) const;
  /// The loss of the model as training found it; empty where it was not finite.
  [[nodiscard]] std::optional<double> initial_loss() const { return first_.initial_loss(); }

 private:
  /// History of one of a run's losses.
  class LossHistory {
   public:
    void add(std::int64_t step, const Json& record);
    /// The loss of the first step, before its update; empty before it, and where it was not finite.
    [[nodiscard]] std::optional<double> initial_loss() const { return initial_; }
    /// The mean over the last steps; null before the first.
    [[nodiscard]] Json train_loss() const;
    void write_scales(Json& summary) const;

   private:
    std::optional<double> initial_{};
    std::deque<double> losses_{};  ///< losses of the last steps
    std::map<double, std::int64_t> first_at_scale_{};
    std::int64_t skipped_ = 0, last_skipped_ = 0;
    double scale_ = 1;
  };

  /// Over all gradients of all observed steps.
  struct Gradients {
    std::int64_t nonzero = 0, flushed = 0, subnormal = 0, overflow = 0;
    void add(const Json& tensor);
  };

  /// Over all updates of all observed steps.
  struct Updates {
    std::int64_t nonzero = 0, lost = 0, decays = 0, lost_decays = 0;
    double along_intended = 0, intended_square = 0;
    void add(const Json& update);
    void write_to(Json& summary) const;
  };

  /// Zeros of weight gradients by cause, over all tensors of all steps that were explained.
  struct ZeroSums {
    std::map<std::string, std::int64_t> counts{};
    void add(const Json& tensor);
  };

  /// Over all steps and losses of several ranks.
  struct AllReduces {
    AllReduceCounters counters{};
    std::int64_t steps = 0;
    std::int64_t stagnated_steps = 0;  ///< with an add that stagnated, and gradients that all are finite
    void add(const Json& record);
    [[nodiscard]] Json summary() const;
  };

  /// Over all operands with a format of their own, of all observed steps.
  struct Operands {
    std::int64_t operands = 0;  ///< records of one in a step
    std::int64_t nonzero = 0, flushed = 0, clipped = 0, blocks = 0, clipped_blocks = 0;
    std::int64_t zero_scales = 0;  ///< scales of 0 over blocks that are not all zeros
    std::int64_t spread = 0;       ///< largest spread of an operand's scales in a step, in binades
    void add(const Json& operand);
    [[nodiscard]] Json summary() const;
  };

  /// Over all observed steps, by format and power of two of the learning rate.
  struct WhatIfSums {
    struct Sums {
      std::int64_t nonzero = 0, lost = 0;
      double along = 0, square = 0;
    };
    std::map<std::pair<std::string, int>, Sums> rows{};
    void add(const Json& row);
    [[nodiscard]] Json summary() const;
  };

  LossHistory first_{};
  std::map<std::string, LossHistory> further_{};  ///< by the losses' names
  Gradients gradients_{};
  std::vector<std::string> overflows_{};  ///< in words, a line per step
  Updates updates_{};
  AllReduces all_reduces_{};
  Operands operands_{};
  ZeroSums zero_causes_{};
  WhatIfSums what_if_{};
};

}  // namespace halfscope
