// A tensor held against a reference of it, as FP16 gradients against those of FP32.
#pragma once

#include <cstdint>
#include <optional>

#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// Sums over the elements x of a tensor and r of its reference, both as FP32.
struct ReferenceComparison {
  std::int64_t elements = 0;
  std::int64_t nonfinite = 0;  ///< in which x or r is infinite or NaN; they are in no sum
  double xx = 0, xr = 0, rr = 0;
  double dd = 0;  ///< sum of (x - r)^2

  /// Norm of x - r over the norm of r; nothing where an element is not finite, or r is zero and x is not.
  [[nodiscard]] std::optional<double> relative_error() const;
  /// Nothing where an element is not finite or one of the two is zero.
  [[nodiscard]] std::optional<double> cosine() const;
  ReferenceComparison& operator+=(const ReferenceComparison& part);
};

/// Element by element, on all threads; the sums are the same for any number of them. Throws InvalidArgument
/// where the shapes differ or a file turns out to be damaged.
[[nodiscard]] ReferenceComparison compare_with_reference(const TensorInFile& tensor,
                                                         const TensorInFile& reference);

}  // namespace halfscope
