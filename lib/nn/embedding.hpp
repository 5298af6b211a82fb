// Rows of a table by number, and the sums of what comes back for each.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/core/array_view.hpp>
#include <halfscope/device/memory.hpp>

namespace halfscope {

/// A position that takes no row: zeros.
inline constexpr std::int32_t no_row = -1;

/// Whether positions may take `no_row`.
enum class AbsentRows : std::uint8_t { refused, zeros };

/// Which row of a table of `rows` each position takes, and which positions take each row, on the active
/// device.
class RowIndex {
 public:
  /// Throws InvalidArgument for a number that is not in [0, rows), but for a `no_row` that is allowed.
  RowIndex(std::span<const std::int32_t> taken, std::int64_t rows, AbsentRows absent = AbsentRows::refused);

  [[nodiscard]] std::int64_t positions() const { return static_cast<std::int64_t>(row_.size()); }
  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(first_.size()) - 1; }
  /// The row of each position.
  [[nodiscard]] std::span<const std::int32_t> row() const { return row_.values(); }
  /// The positions of row r are position()[first()[r]] to position()[first()[r + 1] - 1], in ascending order.
  [[nodiscard]] std::span<const std::int32_t> first() const { return first_.values(); }
  [[nodiscard]] std::span<const std::int32_t> position() const { return position_.values(); }

 private:
  Memory<std::int32_t> row_, first_, position_;
};

/// y (positions, features) = the rows of table (rows, features) that the positions take, or zeros.
void gather_rows(const ConstArrayView& table, const RowIndex& index, const ArrayView& y);

/// sums (rows, features) = for each row the sum of what its positions have in x (positions, features), added
/// to zero in ascending order.
void sum_rows(const ConstArrayView& x, const RowIndex& index, std::span<float> sums);

/// The same operations on the device, which the functions above call where that is the active one.
namespace cuda {
void gather_rows(const ConstArrayView& table, const RowIndex& index, const ArrayView& y);
void sum_rows(const ConstArrayView& x, const RowIndex& index, std::span<float> sums);
}  // namespace cuda

}  // namespace halfscope
