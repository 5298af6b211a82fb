// Counts what several formats do to tensors of files, in one pass in which memory does not grow with the
// files, and to matrices in memory.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <halfscope/format/tensor_format.hpp>
#include <halfscope/passes/file_summary.hpp>
#include <halfscope/stats/block_counts.hpp>

namespace halfscope {

/// The formats, and the axis of a tensor along which blocks run, from the end where it is negative.
struct FormatRequest {
  std::vector<TensorFormat> formats;
  std::int64_t axis = -1;
  ScaledExponents exponents = ScaledExponents::left_out;
};

/// A tensor that has been gone over, as a matrix whose rows run along the axis.
struct CountedTensor {
  std::size_t file = 0, index = 0;  ///< place of the file among the files, and of the tensor in it
  MatrixShape shape;
  std::span<const FormatCounts> formats;
};

/// Hears of the files one after the other, in order.
struct FormatsSink {
  std::function<void(const CountedTensor&)> tensor;
  /// `file` turned out to be damaged: no tensor of it follows.
  std::function<void(std::size_t file, const std::exception_ptr& error)> failed;
  std::function<void(std::size_t file, std::int64_t elements)> progress;  ///< may be empty
};

/// The rows and columns of a tensor with blocks along `axis`: columns are its elements, rows all others.
/// Throws InvalidArgument with `name` where a tensor of this shape has no such axis.
[[nodiscard]] MatrixShape matrix_along(const std::vector<std::int64_t>& shape, std::int64_t axis,
                                       const std::string& name);

/// Counts what the formats do to the chosen tensors, with one scale for a tensor where FormatCounts has one;
/// the counts are the same for any number of threads. A tensor that is stored in another order, or
/// compressed, is held in memory. Throws InvalidArgument before anything is read where a tensor has no such
/// axis, or would be held and is larger than the machine's memory.
void count_formats(std::span<const ChosenTensors> files, const FormatRequest& request,
                   const FormatsSink& sink);

/// The same counts of a matrix in memory, row by row. Throws InvalidArgument where the number of values is
/// not that of `shape`.
[[nodiscard]] std::vector<FormatCounts> count_formats(std::span<const float> values, const MatrixShape& shape,
                                                      std::span<const TensorFormat> formats,
                                                      ScaledExponents exponents = ScaledExponents::left_out);

}  // namespace halfscope
