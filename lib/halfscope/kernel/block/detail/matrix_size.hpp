// The check that an array has as many elements as the matrix that it is given for.
#pragma once

#include <cstddef>

#include <halfscope/kernel/block/quantise.hpp>

namespace halfscope::detail {

/// Throws InvalidArgument, whose message begins with the name of the function, for another size than that of
/// `shape`. Public functions of an array and a shape call it before their loops, which stay total.
void check_matrix_size(const char* function, std::size_t size, const MatrixShape& shape);

}  // namespace halfscope::detail
