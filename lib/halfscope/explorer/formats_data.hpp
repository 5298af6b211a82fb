// The explorer of formats: exact counts of tensors under each format and scale rule, and their page.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <halfscope/format/tensor_format.hpp>
#include <halfscope/kernel/block/quantise.hpp>
#include <halfscope/stats/block_counts.hpp>
#include <halfscope/stats/format_comparison.hpp>

namespace halfscope {

/// `formats` without repetitions, and after them each one in blocks under the other rules of its scale
/// format; but not under those that choose between two scales, which take twenty times as long.
[[nodiscard]] std::vector<TensorFormat> with_all_rules(std::span<const TensorFormat> formats);

/// A tensor's counts under each format.
struct FormatsOfTensor {
  std::string name;
  MatrixShape matrix{};  ///< rows run along the axis of the blocks
  std::vector<FormatCounts> counts;
};

/// All that the explorer of formats shows.
class FormatsData {
 public:
  /// `formats` are the choice, the first one is shown first. Throws InvalidArgument where there are none.
  explicit FormatsData(std::vector<TensorFormat> formats);

  /// Appends a tensor, counted with ScaledExponents. Throws InvalidArgument for another number of formats.
  void add(FormatsOfTensor tensor);
  void advise(FormatAdvice advice) { advice_ = std::move(advice); }
  /// The format that is shown first; throws InvalidArgument where it is none of them.
  void start_at(const TensorFormat& format);

  [[nodiscard]] const std::vector<TensorFormat>& formats() const { return formats_; }
  [[nodiscard]] const std::vector<FormatsOfTensor>& tensors() const { return tensors_; }
  /// Counts of all tensors together, by format.
  [[nodiscard]] const std::vector<BlockCounts>& sums() const { return sums_; }
  /// Bits of an element of all tensors under each format, scales included; 0 without elements.
  [[nodiscard]] double bits_per_element(std::size_t format) const;
  [[nodiscard]] const FormatAdvice& advice() const { return advice_; }
  [[nodiscard]] std::size_t start() const { return start_; }

 private:
  std::vector<TensorFormat> formats_;
  std::vector<FormatsOfTensor> tensors_{};
  std::vector<BlockCounts> sums_;
  std::vector<std::int64_t> bits_;
  FormatAdvice advice_{};
  std::size_t start_ = 0;
};

/// The data as formats.js reads them, on one line, safe inside a script element.
[[nodiscard]] std::string formats_explorer_json(const FormatsData& data);

/// The advice as HTML; empty without advice.
[[nodiscard]] std::string formats_answer(const FormatsData& data);

/// A self-contained HTML document of `data`: no other file, and no request. `title` is text, not HTML.
[[nodiscard]] std::string formats_page(std::string_view title, const FormatsData& data);

}  // namespace halfscope
