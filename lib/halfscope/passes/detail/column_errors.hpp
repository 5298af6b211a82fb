// Errors of the columns of a matrix whose norm lies in few of them: those few hide the others' errors from
// the norm of every row.
#pragma once

#include <vector>

#include <halfscope/passes/detail/tensor_matrix.hpp>
#include <halfscope/stats/block_counts.hpp>
#include <halfscope/stats/detail/format_counter.hpp>

namespace halfscope {

/// Fills in FormatCounts::columns of a matrix with a column of four times the norm of the median one, from a
/// sample of rows in whole `unit`s.
void find_column_errors(const TensorMatrix& matrix, const MatrixShape& unit, const FormatCounter& counter,
                        std::vector<FormatCounts>& counts);

}  // namespace halfscope
