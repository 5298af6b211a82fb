// Sums over tensors, the choice of the cheapest format, and the sentences that say so.
#include <halfscope/stats/format_comparison.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <tuple>
#include <utility>

#include <halfscope/core/error.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {
namespace {

/// Whether tensors of one axis are passed over: there are others.
bool leaves_out_vectors(std::span<const ComparedTensor> tensors) {
  return std::ranges::any_of(tensors, [](const ComparedTensor& tensor) { return !tensor.is_vector; });
}

/// Share of a tensor's nonzero values that become zero under its one scale, and would not under one for each
/// row.
double flushed_by_sharing(const FormatCounts& found) {
  if (!found.shared || found.counts.flushed == 0) return 0;
  const auto all = static_cast<double>(found.counts.flushed);
  return flushed_share(found.counts) * (all - static_cast<double>(found.shared->flushed_by_rows)) / all;
}

/// An error over its limit; 0 without error, whatever the limit.
double over(double error, double limit) {
  return error == 0 ? 0 : error / limit;
}

/// Errors of columns over their limits; 0 where no few columns have the norm.
double excess_of_columns(const FormatCounts& found, const ErrorLimit& limit) {
  if (!found.columns) return 0;
  return std::max(over(found.columns->median, limit.share),
                  over(found.columns->worst_tenth, limit.of_worst_columns()));
}

/// Adds tensor i, and whether the limit hides something of it.
void add_tensor(const FormatCounts& found, std::size_t i, const ErrorLimit& limit, FormatSum& sum) {
  const double error = std::max(relative_error(found.counts), found.rows.median);
  const double hidden =
      std::max({over(found.rows.worst, limit.of_worst_row()),
                over(flushed_by_sharing(found), limit.of_flushed()), excess_of_columns(found, limit)});
  if (hidden > 1 && error <= limit.share && !sum.hidden) sum.hidden = i;
  sum.fits = sum.fits && hidden <= 1 && error <= limit.share;
  sum.excess = std::max({sum.excess, hidden, over(error, limit.share)});
  sum.worst_row_error = std::max(sum.worst_row_error, found.rows.worst);
  sum.most_flushed = std::max(sum.most_flushed, flushed_share(found.counts));
  if (sum.worst && error <= sum.worst_error) return;
  sum.worst_error = error;
  sum.worst = i;
}

FormatSum sum_format(const TensorFormat& format, std::size_t index, std::span<const ComparedTensor> tensors,
                     const ErrorLimit& limit) {
  FormatSum sum{.name = to_string(format), .fits = true};
  const bool skips = leaves_out_vectors(tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (skips && tensors[i].is_vector) continue;
    const FormatCounts& found = tensors[i].formats[index];
    sum.counts.merge(found.counts);
    sum.bits += stored_bits(format, found.counts.elements, found.counts.blocks);
    if (is_padded(format, tensors[i].matrix)) sum.padded.push_back(i);
    add_tensor(found, i, limit, sum);
  }
  sum.fits = sum.fits && sum.worst.has_value();
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
  const std::string row = sum.worst_row_error > 2 * sum.worst_error
                              ? fmt::format(", and {} in the worst row", share_text(sum.worst_row_error))
                              : "";
  return fmt::format("error {} in {}, the worst tensor{}", size, comparison.tensors[*sum.worst].name, row);
}

/// The element that sets the scale of a whole tensor, and the cost of a scale for each row.
std::string shared_words(const FormatCounts& found, const MatrixShape& matrix) {
  if (!found.shared) return "";
  const SharedScale& shared = *found.shared;
  const double nonzero = static_cast<double>(found.counts.elements - found.counts.zeros);
  return fmt::format(
      "; one element, {:g} at row {}, column {}, sets the scale of all {}, and magnitudes up to {:g} vanish. "
      "A "
      "scale for each row costs {:.2f} bits and flushes {}",
      shared.largest, shared.row, shared.column, found.counts.elements, shared.flushed_up_to,
      32 / static_cast<double>(std::max<std::int64_t>(matrix.columns, 1)),
      share_text(static_cast<double>(shared.flushed_by_rows) / std::max(nonzero, 1.0)));
}

/// Columns that the norms of rows hide, beyond the limit.
std::string column_words(const ColumnErrors& columns, const std::string& name, const ErrorLimit& limit) {
  const bool is_half = columns.median > limit.share;
  return fmt::format("{} of the columns of {} err by {} or more", is_half ? "half" : "a tenth", name,
                     share_text(is_half ? columns.median : columns.worst_tenth));
}

/// A format whose errors are within the limit, and which is out all the same.
std::string hidden_words(const FormatComparison& comparison, std::size_t index) {
  const FormatSum& sum = comparison.formats[index];
  const ErrorLimit& limit = comparison.limit;
  const ComparedTensor& tensor = comparison.tensors[*sum.hidden];
  const FormatCounts& found = tensor.formats[index];
  const std::string error = share_text(relative_error(found.counts));
  if (excess_of_columns(found, limit) > 1)
    return fmt::format(
        " {} is out: {}, although its error is {}: column {} has {:.0f} times the norm of the median one.",
        sum.name, column_words(*found.columns, tensor.name, limit), error, found.columns->largest,
        found.columns->norm_ratio);
  const std::string what = flushed_by_sharing(found) > limit.of_flushed()
                               ? fmt::format("{} of the values of {} become 0",
                                             share_text(flushed_share(found.counts)), tensor.name)
                               : fmt::format("row {} of {} errs by {}", found.rows.worst_row, tensor.name,
                                             share_text(found.rows.worst));
  return fmt::format(" {} is out: {}, although its error is {}{}.", sum.name, what, error,
                     shared_words(found, tensor.matrix));
}

/// Sentences about what the norms of whole tensors hide, and about what is left out; each begins with a
/// space.
std::string further_words(const FormatComparison& comparison) {
  std::string text;
  for (std::size_t i = 0; i < comparison.formats.size(); ++i)
    if (comparison.formats[i].hidden) text += hidden_words(comparison, i);
  if (comparison.left_out == 0) return text;
  const bool is_one = comparison.left_out == 1;
  return text + fmt::format(" {} tensor{} of one axis {} left out, as no policy quantizes {}.",
                            comparison.left_out, is_one ? "" : "s", is_one ? "is" : "are",
                            is_one ? "it" : "them");
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
  const auto closest = std::ranges::min_element(
      formats, {}, [](const FormatSum& sum) { return std::pair(sum.excess, sum.worst_error); });
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
  if (leaves_out_vectors(comparison.tensors))
    comparison.left_out =
        static_cast<std::size_t>(std::ranges::count_if(comparison.tensors, &ComparedTensor::is_vector));
  for (std::size_t i = 0; i < formats.size(); ++i)
    comparison.formats.push_back(sum_format(formats[i], i, comparison.tensors, comparison.limit));
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
            fmt::format("{} comes closest: {}, {}.{}", sum.name, bits_words(sum), error,
                        further_words(comparison))};
  }
  return {fmt::format("Use {}: {}.", sum.name, bits_words(sum)),
          capitalised(fmt::format("{}; {}.{}", error, choice_words(comparison), further_words(comparison)))};
}

std::string cheapest_line(const FormatComparison& comparison) {
  const FormatSum& sum = comparison.formats[comparison.best()];
  const std::string facts = fmt::format("{}, {}", bits_words(sum), error_words(comparison, sum));
  if (!comparison.cheapest) {
    return fmt::format("No format stays under {}; {} comes closest: {}.{}", comparison.limit.words, sum.name,
                       facts, further_words(comparison));
  }
  return fmt::format("{}: {}; {}.{}", sum.name, facts, choice_words(comparison), further_words(comparison));
}

std::string decibel_text(double relative_error) {
  if (relative_error == 0) return "exact";
  return std::isfinite(relative_error) ? fmt::format("{:.1f}", decibels(relative_error)) : "lost";
}

}  // namespace halfscope
