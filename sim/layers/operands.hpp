// Operands of a layer's products: images of its tensors in the formats that the policy gives them.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "sim/tape/tape.hpp"

namespace halfscope {

/// Matrices of a tensor, each (rows, columns), row by row.
struct OperandSource {
  const Array& tensor;
  std::int64_t rows = 0, columns = 0;
};

/// The axis of a source over which a product sums.
enum class SummedAxis : std::uint8_t { rows, columns };

// The operands of y = x w and of its gradients, and of y = a b, where b counts as w.
inline constexpr OperandPlace x_of_forward{ProductKind::forward, OperandSide::left};
inline constexpr OperandPlace weight_of_forward{ProductKind::forward, OperandSide::right};
inline constexpr OperandPlace gradient_of_data{ProductKind::data_gradient, OperandSide::left};
inline constexpr OperandPlace weight_of_data{ProductKind::data_gradient, OperandSide::right};
inline constexpr OperandPlace gradient_of_weight{ProductKind::weight_gradient, OperandSide::left};
inline constexpr OperandPlace x_of_weight{ProductKind::weight_gradient, OperandSide::right};

struct OperandUse {
  OperandPlace place;
  SummedAxis axis = SummedAxis::columns;
  bool wanted = true;  ///< whether the product is computed
};

/// The tensor as products see it, of its shape; empty where they see the tensor itself.
struct OperandImages {
  Array first, second;
};
/// Images of x and of the weight, of each first that of the forward product, then that of a gradient.
struct ProductImages {
  OperandImages x, weight;

  /// Drops the images of the forward product, which backward does not read.
  void drop_first() {
    x.first = {};
    weight.first = {};
  }
};
/// The image, or the tensor.
[[nodiscard]] inline const Array& seen(const Array& image, const Array& tensor) {
  return image.empty() ? tensor : image;
}

/// A layer's operands in its formats, forward and backward.
class Operands {
 public:
  Operands(const Operation& operation, std::string layer)
      : formats_(operation.operands()), layer_(std::move(layer)) {}

  [[nodiscard]] bool has_format(const OperandPlace& place) const { return formats_[place].has_value(); }
  /// The image for one product; `part` is that of a site.
  [[nodiscard]] Array image(const CastScope& casts, const OperandSource& source, const OperandUse& use,
                            std::int32_t part = whole_tensor) const;
  /// The images for two products, both made of the source. A format in square tiles has the tiles of the
  /// first one's orientation in both.
  [[nodiscard]] OperandImages images(const CastScope& casts, const OperandSource& source,
                                     const OperandUse& first, OperandUse second) const;

 private:
  LayerOperands formats_;
  std::string layer_;
};

}  // namespace halfscope
