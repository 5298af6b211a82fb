// The loss-scale explorer: exact counts of tensors, step by step, the advice about them, and their page.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/scaling/advisor.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {

/// Counts of a tensor by binade, at exponents that float32 need not have: those of a gradient without its
/// loss scale. Integers, which add up in any order.
struct BinadeTotals {
  std::map<int, BinadeCounts> binades;  ///< by exponent, those that hold anything
  std::int64_t zeros = 0;
  std::int64_t nonfinite = 0;

  /// Adds the elements of `histogram` times 2^shift_log2.
  void add(const ExponentHistogram& histogram, int shift_log2 = 0);
  void add(const BinadeTotals& other);
};

struct ExploredTensor {
  std::string name;
  std::string role;                            ///< as records have it; may be empty
  std::map<std::int64_t, BinadeTotals> steps;  ///< several recordings of a step are added up
};

/// A loss scale to point at, such as the one at which a scaler ended.
struct ScaleMark {
  std::string label;
  double scale_log2 = 0;
};

/// All that the explorer shows of one set of tensors.
class ExplorerData {
 public:
  /// For counts that were made at the edges of `format`.
  explicit ExplorerData(const FloatFormat& format) : format_(format) {}

  /// Adds the elements of `histogram` times 2^shift_log2 to the tensor called `name` at `step`. Tensors stay
  /// in the order in which they were added first. Throws InvalidArgument for counts made for another format.
  void add(const std::string& name, const std::string& role, std::int64_t step,
           const ExponentHistogram& histogram, int shift_log2 = 0);
  /// Adds `totals`, counted for the format of the data.
  void add(const std::string& name, const std::string& role, std::int64_t step, const BinadeTotals& totals);
  void mark(std::string label, double scale_log2) { marks_.push_back({std::move(label), scale_log2}); }
  /// Fits of the tensors, by name, and what is advised for all of them.
  void advise(std::span<const TensorFit> fits, Advice advice);
  /// The scale that is shown first; 2^0 unless it is set.
  void start_at(int scale_log2) { start_log2_ = scale_log2; }

  [[nodiscard]] const FloatFormat& format() const { return format_; }
  [[nodiscard]] const std::vector<ExploredTensor>& tensors() const { return tensors_; }
  [[nodiscard]] const std::map<std::string, TensorFit>& fits() const { return fits_; }
  [[nodiscard]] const std::vector<ScaleMark>& marks() const { return marks_; }
  [[nodiscard]] const Advice& advice() const { return advice_; }
  [[nodiscard]] int start_log2() const { return start_log2_; }

 private:
  FloatFormat format_;
  std::vector<ExploredTensor> tensors_;
  std::map<std::string, std::size_t> places_;  ///< in tensors_, by name
  std::map<std::string, TensorFit> fits_;
  std::vector<ScaleMark> marks_;
  Advice advice_;
  int start_log2_ = 0;
};

/// FP16 for fp16, FP8 E4M3 for fp8_e4m3: the format's name as sentences have it.
[[nodiscard]] std::string format_label(const FloatFormat& format);

/// The data as explorer.js reads them, on one line, safe inside a script element: no less-than sign, bytes
/// that are not UTF-8 replaced.
[[nodiscard]] std::string explorer_json(const ExplorerData& data);

/// The ES module that draws an explorer, the style sheet that it needs, and its words, explained in HTML.
[[nodiscard]] std::string_view explorer_script();
[[nodiscard]] std::string_view explorer_style();
[[nodiscard]] std::string_view explorer_legend();

/// The advice in words, as HTML: the scale to use, enough from, overflow beyond, with the tensors that
/// decide. Empty without advice.
[[nodiscard]] std::string explorer_answer(const ExplorerData& data);

/// A self-contained HTML document of `data`: no other file, and no request. `title` is text, not HTML.
[[nodiscard]] std::string explorer_page(std::string_view title, const ExplorerData& data);

}  // namespace halfscope
