// Sums over tensors, and the choice of the cheapest format.
#include "experiments/cli/analyze/format_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "experiments/cli/analyze/analyze_findings.hpp"

namespace halfscope {
namespace {

constexpr std::string_view decibel_unit = "dB";

double share_of_decibels(std::string_view text, std::string_view number) {
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc{} || end != number.data() + number.size() || !(value >= 0 && value <= 1000)) {
    throw InvalidArgument(
        fmt::format("--max-error: '{}' is no ratio of signal to noise; give one such as 26dB", text));
  }
  return std::pow(10, -value / 20);
}

double largest_error(const AnalyzedTensor& tensor) {
  double largest = 0;
  for (const FormatCounts& format : tensor.formats)
    largest = std::max(largest, relative_error(format.counts));
  return largest;
}

FormatSum sum_format(const Analysis& analysis, std::size_t index) {
  const TensorFormat& format = analysis.compared.formats[index];
  FormatSum sum{.name = to_string(format)};
  for (const AnalyzedTensor& tensor : analysis.tensors) {
    const BlockCounts& counts = tensor.formats[index].counts;
    sum.counts.merge(counts);
    sum.bits += stored_bits(format, counts.elements, counts.blocks);
    if (is_padded(format, tensor.matrix)) sum.padded.push_back(&tensor);
    const double error = relative_error(counts);
    if (sum.worst != nullptr && error <= sum.worst_error) continue;
    sum.worst_error = error;
    sum.worst = &tensor;
  }
  sum.fits = sum.worst != nullptr && sum.worst_error <= analysis.max_error.share;
  return sum;
}

}  // namespace

ErrorLimit parse_error_limit(std::string_view text) {
  std::string_view number = text;
  if (!text.ends_with(decibel_unit)) return {std::string(text), parse_share("--max-error", text), true};
  number.remove_suffix(decibel_unit.size());
  while (number.ends_with(' ')) number.remove_suffix(1);
  return {std::string(text), share_of_decibels(text, number), true};
}

bool is_padded(const TensorFormat& format, const MatrixShape& matrix) {
  const auto* block = std::get_if<BlockFormat>(&format);
  if (block == nullptr || matrix.rows * matrix.columns == 0) return false;
  return matrix.rows % block->block.rows != 0 || matrix.columns % block->block.columns != 0;
}

FormatComparison compare_formats(const Analysis& analysis) {
  FormatComparison comparison;
  for (std::size_t i = 0; i < analysis.compared.formats.size(); ++i)
    comparison.formats.push_back(sum_format(analysis, i));
  const auto cost = [&](std::size_t i) {
    return std::tuple(comparison.formats[i].bits, comparison.formats[i].worst_error);
  };
  for (std::size_t i = 0; i < comparison.formats.size(); ++i) {
    if (!comparison.formats[i].fits) continue;
    if (!comparison.cheapest || cost(i) < cost(*comparison.cheapest)) comparison.cheapest = i;
  }
  return comparison;
}

std::size_t best_format(const FormatComparison& comparison) {
  if (comparison.cheapest) return *comparison.cheapest;
  const auto closest = std::ranges::min_element(comparison.formats, {}, &FormatSum::worst_error);
  return static_cast<std::size_t>(closest - comparison.formats.begin());
}

std::vector<const AnalyzedTensor*> worst_tensors(const Analysis& analysis, std::size_t top) {
  std::vector<const AnalyzedTensor*> tensors;
  for (const AnalyzedTensor& tensor : analysis.tensors) tensors.push_back(&tensor);
  if (tensors.size() <= top) return tensors;
  std::ranges::stable_sort(tensors, [](const AnalyzedTensor* a, const AnalyzedTensor* b) {
    return largest_error(*a) > largest_error(*b);
  });
  tensors.resize(top);
  return tensors;
}

}  // namespace halfscope
