// Sums over tensors, the choice of the cheapest format, and the sentences that say so.
#include <halfscope/stats/format_comparison.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <tuple>

#include <halfscope/core/error.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {
namespace {

FormatSum sum_format(const TensorFormat& format, std::size_t index, std::span<const ComparedTensor> tensors,
                     double limit) {
  FormatSum sum{.name = to_string(format)};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const BlockCounts& counts = tensors[i].formats[index].counts;
    sum.counts.merge(counts);
    sum.bits += stored_bits(format, counts.elements, counts.blocks);
    if (is_padded(format, tensors[i].matrix)) sum.padded.push_back(i);
    const double error = relative_error(counts);
    if (sum.worst && error <= sum.worst_error) continue;
    sum.worst_error = error;
    sum.worst = i;
  }
  sum.fits = sum.worst && sum.worst_error <= limit;
  return sum;
}

std::string bits_words(const FormatSum& sum) {
  return fmt::format("{:.2f} bits per element", sum.bits_per_element());
}

/// "error 3.40 % (29.4 dB) in q_proj.weight, the worst tensor".
std::string error_words(const FormatComparison& comparison, const FormatSum& sum) {
  if (!sum.worst || sum.worst_error == 0) return "no error in any tensor";
  const std::string size =
      std::isfinite(sum.worst_error)
          ? fmt::format("{} ({} dB)", share_text(sum.worst_error), decibel_text(sum.worst_error))
          : "without bound, as finite values become NaN,";
  return fmt::format("error {} in {}, the worst tensor", size, comparison.tensors[*sum.worst].name);
}

/// "the cheapest of 3 formats under --max-error 5%".
std::string choice_words(const FormatComparison& comparison) {
  const std::size_t count = comparison.formats.size();
  return fmt::format("the cheapest of {} format{} under {}", count, count == 1 ? "" : "s",
                     comparison.limit.words);
}

std::string capitalised(std::string sentence) {
  sentence.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
  return sentence;
}

}  // namespace

std::size_t FormatComparison::best() const {
  if (cheapest) return *cheapest;
  const auto closest = std::ranges::min_element(formats, {}, &FormatSum::worst_error);
  return static_cast<std::size_t>(closest - formats.begin());
}

FormatComparison compare_formats(std::span<const TensorFormat> formats, std::vector<ComparedTensor> tensors,
                                 ErrorLimit limit) {
  if (formats.empty()) throw InvalidArgument("a comparison of formats needs a format");
  for (const ComparedTensor& tensor : tensors) {
    if (tensor.formats.size() == formats.size()) continue;
    throw InvalidArgument(fmt::format("'{}' was counted for {} formats, not for {}", tensor.name,
                                      tensor.formats.size(), formats.size()));
  }
  FormatComparison comparison{std::move(tensors), std::move(limit)};
  for (std::size_t i = 0; i < formats.size(); ++i)
    comparison.formats.push_back(sum_format(formats[i], i, comparison.tensors, comparison.limit.share));
  const auto cost = [&](std::size_t i) {
    return std::tuple(comparison.formats[i].bits, comparison.formats[i].worst_error);
  };
  for (std::size_t i = 0; i < formats.size(); ++i) {
    if (!comparison.formats[i].fits) continue;
    if (!comparison.cheapest || cost(i) < cost(*comparison.cheapest)) comparison.cheapest = i;
  }
  return comparison;
}

bool is_padded(const TensorFormat& format, const MatrixShape& matrix) {
  const auto* block = std::get_if<BlockFormat>(&format);
  if (block == nullptr || matrix.rows * matrix.columns == 0) return false;
  return matrix.rows % block->block.rows != 0 || matrix.columns % block->block.columns != 0;
}

FormatAdvice format_advice(const FormatComparison& comparison) {
  const FormatSum& sum = comparison.formats[comparison.best()];
  const std::string error = error_words(comparison, sum);
  if (!comparison.cheapest) {
    return {fmt::format("Add formats: none of these stays under {}.", comparison.limit.words),
            fmt::format("{} comes closest: {}, {}.", sum.name, bits_words(sum), error)};
  }
  return {fmt::format("Use {}: {}.", sum.name, bits_words(sum)),
          capitalised(fmt::format("{}; {}.", error, choice_words(comparison)))};
}

std::string cheapest_line(const FormatComparison& comparison) {
  const FormatSum& sum = comparison.formats[comparison.best()];
  const std::string facts = fmt::format("{}, {}", bits_words(sum), error_words(comparison, sum));
  if (!comparison.cheapest) {
    return fmt::format("No format stays under {}; {} comes closest: {}.", comparison.limit.words, sum.name,
                       facts);
  }
  return fmt::format("{}: {}; {}.", sum.name, facts, choice_words(comparison));
}

std::string decibel_text(double relative_error) {
  if (relative_error == 0) return "exact";
  return std::isfinite(relative_error) ? fmt::format("{:.1f}", decibels(relative_error)) : "lost";
}

}  // namespace halfscope
