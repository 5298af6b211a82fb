// Row after row: the integers, then the scales and zero points of the row's groups.
#include <halfscope/io/layouts/detail/grouped_integers.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace halfscope {
namespace {

/// Scales and zero points of one row of integers.
struct RowGroups {
  std::int64_t first = -1;  ///< index of its first scale
  std::vector<float> scales{};
  std::vector<int> zeros{};
};

/// The range of a group's integers.
struct GroupRange {
  int least = 1 << 16, largest = -(1 << 16);
  bool is_zero = true;  ///< every value is
};

class GroupedIntegers : public QuantizedTensor {
 public:
  explicit GroupedIntegers(GroupedParts parts)
      : QuantizedTensor(parts.name, parts.shape, parts.axes), parts_(std::move(parts)) {}

  void read(const TensorFile& file, std::int64_t first, std::span<float> values) const override {
    for_rows(file, first, std::ssize(values),
             [&](std::int64_t column, std::span<const int> integers, const RowGroups& groups) {
               for (const int integer : integers) {
                 const std::size_t at = group_in_row(column++);
                 const float product = static_cast<float>(integer - groups.zeros[at]) * groups.scales[at];
                 values.front() = product * parts_.last_factor;
                 values = values.subspan(1);
               }
             });
  }

  CodeKind kind() const override {
    const BlockLayout& layout = parts_.layout;
    CodeKind kind{.library = parts_.library, .bits = parts_.integers.bits, .are_integers = true};
    // Rows of the file are inputs, or columns are.
    const bool is_turned = parts_.integers.packing != BitPacking::along_columns;
    if ((is_turned ? layout.block_columns : layout.block_rows) != 1) return kind;
    kind.inputs = is_turned ? layout.rows : layout.columns;
    kind.groups = is_turned ? layout.scale_rows : layout.scale_columns;
    return kind;
  }

  bool fit_in(const TensorFile& file, unsigned bits) const override {
    const int levels = 1 << bits, least = parts_.integers.is_signed ? -levels / 2 : 0;
    bool fit = true;
    for_rows(file, 0, stored().elements, [&](std::int64_t, std::span<const int> integers, const RowGroups&) {
      for (const int integer : integers) fit = fit && integer >= least && integer < least + levels;
    });
    return fit;
  }

  BlockFindings findings(const TensorFile& file) const override {
    const std::int64_t blocks = parts_.scales.elements();
    std::vector<float> scales(static_cast<std::size_t>(blocks));
    parts_.scales.read(file, 0, scales);
    const std::vector<GroupRange> ranges = ranges_of(file, scales.size());
    BlockFindings found{.layout = layout_words(), .blocks = blocks};
    const int levels = parts_.integers.largest() - parts_.integers.least();
    for (std::size_t i = 0; i < scales.size(); ++i) {
      const auto block = static_cast<std::int64_t>(i);
      const GroupRange& range = ranges[i];
      if (range.is_zero) found.zero_blocks.add(block);
      if (!std::isfinite(scales[i])) found.nan_scales.add(block);
      if (scales[i] == 0 && !range.is_zero) found.zero_scales.add(block);
      if (scales[i] < 0) found.negative_scales.add(block);
      if (scales[i] == parts_.scales.largest) found.saturated_scales.add(block);
      if (range.largest == parts_.integers.largest() || range.least == parts_.integers.least())
        found.at_largest.add(block);
      if (!range.is_zero && range.largest - range.least < levels / 2) found.low.add(block);
    }
    return found;
  }

 private:
  [[nodiscard]] std::int64_t first_scale(std::int64_t row) const {
    if (parts_.row_groups.empty()) return parts_.layout.scale_of(row, 0);
    return parts_.row_groups[static_cast<std::size_t>(row)] * parts_.layout.scale_columns;
  }
  [[nodiscard]] std::size_t group_in_row(std::int64_t column) const {
    return parts_.column_groups.empty()
               ? static_cast<std::size_t>(column / parts_.layout.block_columns)
               : static_cast<std::size_t>(parts_.column_groups[static_cast<std::size_t>(column)]);
  }

  void load(const TensorFile& file, std::int64_t row, RowGroups& groups) const {
    const std::int64_t first = first_scale(row);
    if (groups.first == first) return;
    const BlockLayout& layout = parts_.layout;
    const std::int64_t count =
        parts_.column_groups.empty() ? (layout.columns - 1) / layout.block_columns + 1 : layout.scale_columns;
    groups.first = first;
    groups.scales.resize(static_cast<std::size_t>(count));
    groups.zeros.assign(groups.scales.size(), 0);
    parts_.scales.read(file, first, groups.scales);
    if (parts_.zeros)
      IntegerRows(file, *parts_.zeros)
          .read(first / layout.scale_columns, first % layout.scale_columns, groups.zeros);
    for (int& zero : groups.zeros) zero = (zero + parts_.zero_offset) & parts_.zero_mask;
  }

  /// take(column, integers, groups) for pieces of rows from element `first` on.
  template <typename Take>
  void for_rows(const TensorFile& file, std::int64_t first, std::int64_t count, Take&& take) const {
    IntegerRows rows(file, parts_.integers);
    RowGroups groups;
    std::vector<int> integers;
    const std::int64_t columns = parts_.integers.columns;
    for (const std::int64_t end = first + count; first < end;) {
      const std::int64_t row = first / columns, column = first % columns;
      integers.resize(static_cast<std::size_t>(std::min(columns - column, end - first)));
      load(file, row, groups);
      rows.read(row, column, integers);
      take(column, std::span<const int>(integers), groups);
      first += std::ssize(integers);
    }
  }

  [[nodiscard]] std::vector<GroupRange> ranges_of(const TensorFile& file, std::size_t blocks) const {
    std::vector<GroupRange> ranges(blocks);
    for_rows(file, 0, stored().elements,
             [&](std::int64_t column, std::span<const int> integers, const RowGroups& groups) {
               for (const int integer : integers) {
                 const std::size_t at = group_in_row(column++);
                 GroupRange& range = ranges[static_cast<std::size_t>(groups.first) + at];
                 range.least = std::min(range.least, integer);
                 range.largest = std::max(range.largest, integer);
                 range.is_zero = range.is_zero && integer == groups.zeros[at];
               }
             });
    return ranges;
  }

  [[nodiscard]] std::string layout_words() const {
    const BlockLayout& layout = parts_.layout;
    const bool is_turned = !parts_.axes.empty();  // rows of the file are columns of the tensor
    return fmt::format("{} in groups of {} x {}, scales {}{}", parts_.method,
                       is_turned ? layout.block_columns : layout.block_rows,
                       is_turned ? layout.block_rows : layout.block_columns, parts_.scales.type_name,
                       parts_.row_groups.empty() && parts_.column_groups.empty() ? "" : ", by g_idx");
  }

  GroupedParts parts_;
};

}  // namespace

std::unique_ptr<QuantizedTensor> grouped_integers(GroupedParts parts) {
  return std::make_unique<GroupedIntegers>(std::move(parts));
}

}  // namespace halfscope
