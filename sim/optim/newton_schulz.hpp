// Newton-Schulz iteration towards the nearest orthogonal matrix.
#pragma once

#include <halfscope/device/array.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope {

struct NewtonSchulz {
  int steps = 5;
  Quantizer format{};
};

/// U S' V^T with singular values near 1 of a matrix U S V^T (rows, columns) on the active device: the matrix
/// over its Frobenius norm (1e-7 at least), then steps X' = a X + (b A + c A A) X, A = X X^T, of the
/// smaller side, with a, b, c = 3.4445, -4.775, 2.0315 (Jordan et al., "Muon", 2024; torch.optim.Muon). The
/// matrix, its quotient, each A, each b A + c A A and each X are rounded to the format; products add up in
/// FP32.
[[nodiscard]] Array orthogonalised(const Array& matrix, const NewtonSchulz& iteration);

}  // namespace halfscope
