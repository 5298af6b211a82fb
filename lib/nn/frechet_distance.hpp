// Distance of two sets of feature vectors, as two sets of images are compared by.
#pragma once

#include <halfscope/device/array.hpp>

namespace halfscope {

/// |m - n|^2 + tr(C + D - 2 (C D)^(1/2)), with the means m, n and the unbiased covariances C, D of the rows
/// of two matrices (rows, features), wherever they are: the squared distance of the normal distributions that
/// have them (Dowson & Landau, 1982), of networks' features that of Heusel et al. (NIPS 2017). Computed in
/// double precision from triangular factors of the covariances, so that singular ones, of features that never
/// change or of fewer rows than features, cost no digits. Throws InvalidArgument for fewer than two rows, for
/// sets of different features and for numbers that are not finite.
[[nodiscard]] double frechet_distance(const Array& first, const Array& second);

}  // namespace halfscope
