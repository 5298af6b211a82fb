// Formats of the operands of a layer's products: for each product and side, by layer.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/core/names.hpp>
#include <halfscope/format/tensor_format.hpp>
#include <halfscope/policy/operations.hpp>
#include <halfscope/stats/site.hpp>

namespace halfscope {

/// Scale of a whole operand whose format has no blocks: none; of its own largest magnitude; or of those of
/// the steps before, as TransformerEngine's recipes DelayedScaling and Float8CurrentScaling have them.
enum class TensorScaling : std::uint8_t { none, current, delayed };
template <>
inline constexpr std::array<std::string_view, 3> enum_names<TensorScaling>{"none", "current", "delayed"};

/// The magnitude of a history that a delayed scale is made of.
enum class AmaxChoice : std::uint8_t { max, most_recent };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<AmaxChoice>{"max", "most_recent"};

/// TransformerEngine's defaults.
struct DelayedScaling {
  int history = 1024;  ///< steps whose magnitudes count, the latest one included
  int margin = 0;      ///< powers of two that are left free above the largest magnitude
  AmaxChoice amax = AmaxChoice::max;

  friend bool operator==(const DelayedScaling&, const DelayedScaling&) = default;
};

/// Step before an operand is rounded: Hadamard's transform of each 16 along the summed axis (hadamard_16),
/// not of a rest of fewer, rounded to BF16. The operands of a product have it both or neither.
enum class OperandTransform : std::uint8_t { none, hadamard };

struct OperandFormat {
  TensorFormat format{};
  OperandTransform transform = OperandTransform::none;
  TensorScaling scaling = TensorScaling::none;
  DelayedScaling delayed{};  ///< the default unless `scaling` is delayed

  friend bool operator==(const OperandFormat&, const OperandFormat&) = default;
};
/// "FORMAT[+hadamard][+current|+delayed[(history=N, margin=N, max|most_recent)]]".
[[nodiscard]] std::string to_string(const OperandFormat& format);
/// Throws InvalidArgument as parse_tensor_format does, for an option that is not there, and for a tensor-wide
/// scale of a block format or of one of more than 8 bits.
[[nodiscard]] OperandFormat parse_operand_format(std::string_view text);

/// The formats of a layer's operands; empty ones are their roles'.
class LayerOperands {
 public:
  using Format = std::optional<OperandFormat>;

  [[nodiscard]] const Format& operator[](const OperandPlace& place) const {
    return formats_[static_cast<std::size_t>(place.product)][static_cast<std::size_t>(place.side)];
  }
  [[nodiscard]] Format& operator[](const OperandPlace& place) {
    return formats_[static_cast<std::size_t>(place.product)][static_cast<std::size_t>(place.side)];
  }
  /// Whether all are their roles'.
  [[nodiscard]] bool empty() const { return formats_ == decltype(formats_){}; }

 private:
  std::array<std::array<Format, enum_names<OperandSide>.size()>, enum_names<ProductKind>.size()> formats_{};
};

/// Operations whose operands may have formats of their own. The product of a recurrent layer's state
/// is not among them.
inline constexpr std::array<std::string_view, 4> operand_operations{"linear", "conv2d", "conv_transpose2d",
                                                                    "matmul"};

/// Gives a format to operands; of two rules that apply the later holds.
struct OperandRule {
  std::string operation{};                ///< empty: those of operand_operations with a weight
  std::optional<ProductKind> product{};   ///< empty: all three
  std::optional<OperandSide> side{};      ///< empty: both
  std::optional<OperandFormat> format{};  ///< empty: the role's
  std::string layers = "*";               ///< glob of their names

  friend bool operator==(const OperandRule&, const OperandRule&) = default;
  [[nodiscard]] bool applies_to(const OperationEntry& entry, std::string_view layer) const;
  [[nodiscard]] bool applies_to(const OperandPlace& place) const {
    return product.value_or(place.product) == place.product && side.value_or(place.side) == place.side;
  }
};

/// "[OPERATION.][PRODUCT[.SIDE]]=FORMAT[@GLOB]"; "*" stands for all products, "role" for the role's format:
/// "forward.right=nvfp4_16x16", "*=role@output", "matmul.forward=mxfp8_e4m3".
[[nodiscard]] std::string to_string(const OperandRule& rule);
[[nodiscard]] OperandRule parse_operand_rule(std::string_view text);
/// Rules separated by commas.
[[nodiscard]] std::string to_string(std::span<const OperandRule> rules);
/// None in an empty text. Throws InvalidArgument that quotes the rule.
[[nodiscard]] std::vector<OperandRule> parse_operand_rules(std::string_view text);

/// The formats that `rules` give to an operation in the layer called `layer`. Throws InvalidArgument where
/// one operand of a product has Hadamard's transform and the other has not.
[[nodiscard]] LayerOperands operands_of(std::span<const OperandRule> rules, OperationId operation,
                                        std::string_view layer);

}  // namespace halfscope
