// The element-wise parts of layer normalisation, over rows of features.
#pragma once

#include <span>

#include <halfscope/device/device.hpp>

namespace halfscope {

/// x = (x - mean) * inverse_deviation, those of each element's row; x has a whole number of features a row.
/// Each of these throws InvalidArgument where the sizes do not fit.
void normalise_rows(std::span<const float> mean, std::span<const float> inverse_deviation,
                    std::span<float> x);

/// y = gamma * normalised + beta, those of each element's feature.
void scale_and_shift(std::span<const float> normalised, std::span<const float> gamma,
                     std::span<const float> beta, std::span<float> y);

/// y *= factor, that of each element's column.
void scale_columns(std::span<const float> factor, std::span<float> y);

/// Inputs of the gradient of normalised rows; the means are over each row of the gradient, and of it
/// times `normalised`.
struct RowStatistics {
  std::span<const float> normalised;                                // (rows, features)
  std::span<const float> inverse_deviation, mean, mean_normalised;  // (rows)
};
/// gradient = inverse_deviation * ((gradient - mean) - normalised * mean_normalised).
void normalise_rows_gradient(const RowStatistics& statistics, std::span<float> gradient);

/// The same operations on the device, which the functions above call where that is the active one.
namespace cuda {
void normalise_rows(std::span<const float> mean, std::span<const float> inverse_deviation,
                    std::span<float> x);
void scale_and_shift(std::span<const float> normalised, std::span<const float> gamma,
                     std::span<const float> beta, std::span<float> y);
void scale_columns(std::span<const float> factor, std::span<float> y);
void normalise_rows_gradient(const RowStatistics& statistics, std::span<float> gradient);
}  // namespace cuda

}  // namespace halfscope
