// Logs that name their fields: JSON lines, the state of Hugging Face's Trainer, dictionaries, CSV.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/scaling/detail/skip_log_lines.hpp>

namespace halfscope {

/// The member of trainer_state.json that holds its entries.
inline constexpr std::string_view history_key = "\"log_history\"";

/// Reads line by line. A CSV file is known by its first line: a column "step" and one of a loss scale or of
/// the gradients' norm, as W&B, Lightning and DeepSpeed's monitor write them.
class LogFields {
 public:
  using Take = std::function<void(const IterationLine&)>;

  /// Hands over the steps that the line completes. `done` is the last count of a progress bar, which numbers
  /// the dictionaries that the Trainer prints.
  void line(std::string_view text, std::int64_t done, const Take& take);

 private:
  [[nodiscard]] bool take_header(std::string_view text);
  [[nodiscard]] std::optional<IterationLine> csv_row(std::string_view text) const;
  [[nodiscard]] std::optional<IterationLine> json_line(std::string_view text) const;
  void trainer_entries(std::string_view text, const Take& take);
  void trainer_members(std::string_view text);
  [[nodiscard]] std::optional<IterationLine> end_trainer_entry();
  [[nodiscard]] std::optional<IterationLine> printed_dictionary(std::string_view text, std::int64_t done);

  bool first_ = true;
  std::optional<std::size_t> step_column_, scale_column_, norm_column_;
  bool in_history_ = false;  ///< within the history of trainer_state.json
  std::optional<std::int64_t> step_;
  std::optional<double> scale_, norm_;
  std::int64_t dictionaries_ = 0;
};

}  // namespace halfscope
