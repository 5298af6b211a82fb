// Where a number was seen: the step, the tensor and the role that it plays in training.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <halfscope/core/names.hpp>
#include <halfscope/core/random.hpp>

namespace halfscope {

/// Purpose of a tensor; precision is chosen per role.
enum class Role : std::uint8_t {
  weight,               ///< the copy that forward and backward use
  activation,           ///< output of an operation
  activation_gradient,  ///< gradient of an operation's output, scaled by the loss scale
  weight_gradient,      ///< gradient of a parameter, scaled by the loss scale
  master_weight,        ///< the copy that the optimizer updates
  optimizer_state,      ///< momentum and variance; the update's arithmetic is done in this precision too
};
template <>
inline constexpr std::array<std::string_view, 6> enum_names<Role>{
    "weight", "activation", "activation_gradient", "weight_gradient", "master_weight", "optimizer_state"};

/// Pass of a step.
enum class TrainingPass : std::uint8_t { forward, backward, update };
template <>
inline constexpr std::array<std::string_view, 3> enum_names<TrainingPass>{"forward", "backward", "update"};

/// The products of a layer with a weight: Y = X W, dX = dY W^T, dW = X^T dY. In a product of two tensors the
/// right one counts as the weight.
enum class ProductKind : std::uint8_t { forward, data_gradient, weight_gradient };
template <>
inline constexpr std::array<std::string_view, 3> enum_names<ProductKind>{"forward", "data_gradient",
                                                                         "weight_gradient"};

/// The sides of a product: left are X, dY and dY, right are W, W and X.
enum class OperandSide : std::uint8_t { left, right };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<OperandSide>{"left", "right"};

/// An operand of one of a layer's products.
struct OperandPlace {
  ProductKind product = ProductKind::forward;
  OperandSide side = OperandSide::left;

  friend constexpr bool operator==(const OperandPlace&, const OperandPlace&) = default;
};
/// All of them, product by product.
inline constexpr std::array<OperandPlace, 6> operand_places{{
    {ProductKind::forward, OperandSide::left},
    {ProductKind::forward, OperandSide::right},
    {ProductKind::data_gradient, OperandSide::left},
    {ProductKind::data_gradient, OperandSide::right},
    {ProductKind::weight_gradient, OperandSide::left},
    {ProductKind::weight_gradient, OperandSide::right},
}};
/// "forward.left".
[[nodiscard]] inline std::string to_string(const OperandPlace& place) {
  return std::string(name_of(place.product)) + "." + std::string(name_of(place.side));
}

/// Some of the roles.
class RoleSet {
 public:
  constexpr RoleSet(std::initializer_list<Role> roles) {
    for (const Role role : roles) add(role);
  }
  constexpr void add(Role role) { bits_ |= 1u << static_cast<unsigned>(role); }
  [[nodiscard]] constexpr bool contains(Role role) const {
    return (bits_ >> static_cast<unsigned>(role) & 1u) != 0;
  }

 private:
  std::uint32_t bits_ = 0;
};

inline constexpr RoleSet gradient_roles{Role::activation_gradient, Role::weight_gradient};

/// The tensor is seen whole.
inline constexpr std::int32_t whole_tensor = -1;
/// The tensor is seen once in the step, or the step has one micro-batch.
inline constexpr std::int32_t whole_step = -1;

/// `scale` is the loss scale that the tensor carries: 1 where it carries none. A recurrent layer casts a
/// tensor time step by time step, and a step with micro-batches casts it once in each, counted from 0: each
/// is a part of it, and a step's records hold the tensor once.
struct Site {
  std::int64_t step = 0;
  std::string_view tensor;
  Role role = Role::activation;
  double scale = 1;
  std::int32_t part = whole_tensor;
  std::int32_t micro_batch = whole_step;
  TrainingPass pass = TrainingPass::forward;

  /// Whether other casts of the step are of the same tensor.
  [[nodiscard]] constexpr bool in_parts() const { return part != whole_tensor || micro_batch != whole_step; }
};

/// The random stream's `site` of a cast: the tensor's name and role, and for a part one of its own. A tensor
/// has fewer than 2^14 parts in a micro-batch.
[[nodiscard]] constexpr std::uint32_t stream_site(const Site& site) {
  std::uint32_t hash = site_hash(site.tensor.data(), site.tensor.size());
  if (site.micro_batch != whole_step) {
    const std::int32_t part = site.part == whole_tensor ? 0 : site.part;
    hash = site_hash_on(hash, (site.micro_batch << 14) + part);
  } else if (site.part != whole_tensor) {
    hash = site_hash_on(hash, site.part);
  }
  return hash + static_cast<std::uint32_t>(site.role);
}

}  // namespace halfscope
