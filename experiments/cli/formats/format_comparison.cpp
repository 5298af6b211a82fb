// Limits as people write them, and counts as a comparison.
#include "experiments/cli/formats/format_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "experiments/cli/tensors/tensor_options.hpp"

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

double largest_error(const ComparedTensor& tensor) {
  double largest = 0;
  for (const FormatCounts& format : tensor.formats)
    largest = std::max(largest, relative_error(format.counts));
  return largest;
}

}  // namespace

ErrorLimit parse_error_limit(std::string_view text) {
  const std::string words = fmt::format("--max-error {}", text);
  std::string_view number = text;
  if (!text.ends_with(decibel_unit)) return {words, parse_share("--max-error", text)};
  number.remove_suffix(decibel_unit.size());
  while (number.ends_with(' ')) number.remove_suffix(1);
  return {words, share_of_decibels(text, number)};
}

FormatComparison compare_formats(const FormatsFound& found) {
  std::vector<ComparedTensor> tensors;
  for (const TensorInFormats& tensor : found.tensors)
    tensors.push_back({tensor.label, tensor.matrix, tensor.formats, tensor.is_vector});
  return compare_formats(found.compared.formats, std::move(tensors), found.max_error);
}

std::vector<std::size_t> worst_tensors(const FormatComparison& comparison, std::size_t top) {
  std::vector<std::size_t> indices(comparison.tensors.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  if (indices.size() <= top) return indices;
  std::ranges::stable_sort(indices, [&](std::size_t a, std::size_t b) {
    return largest_error(comparison.tensors[a]) > largest_error(comparison.tensors[b]);
  });
  indices.resize(top);
  return indices;
}

}  // namespace halfscope
