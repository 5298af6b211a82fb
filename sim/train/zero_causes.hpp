// Why elements of a weight's gradient are 0.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <halfscope/io/json/json_lines.hpp>

#include "sim/tape/parameter.hpp"
#include "sim/train/fp32_reference.hpp"

namespace halfscope {

/// The quantizers of a step in the order in which its data meet them.
enum class ZeroCause : std::uint8_t {
  no_quantizer,          ///< every term is 0 without any: a true zero
  forward_operand,       ///< an operand of the forward products
  data_operand,          ///< an operand of the products that hand gradients back
  weight_gradient_left,  ///< the gradient operand of the weight's product
  weight_gradient_right  ///< its activation operand
};
template <>
inline constexpr std::array<std::string_view, 5> enum_names<ZeroCause>{
    "no_quantizer", "forward_operand", "data_operand", "weight_gradient_left", "weight_gradient_right"};

/// Elements of one weight's gradient that are 0, by cause. An element whose terms are not all 0 has
/// `cancelled`. The causes and the cancelled ones add up to `zeros`.
struct ZeroCauses {
  std::string tensor;
  std::int64_t elements = 0, zeros = 0, cancelled = 0;
  std::array<std::int64_t, enum_names<ZeroCause>.size()> by_cause{};
  std::int64_t only_unquantized = 0;  ///< have terms of 0 alone without quantizers, and others with all
};
[[nodiscard]] Json to_json(const ZeroCauses& causes);

/// A step once more, whose gradients it leaves in `store`.
struct RepeatedStep {
  RepeatStep repeat;
  const ParameterStore& store;
};

/// The causes of the zeros in the gradients of linear layers' weights. The step is computed with the
/// magnitudes of the gradients' terms, once without the policy's formats of operands and four times with more
/// of them, in the order of `ZeroCause`, and once as it is. The cause of a zero is the first of these from
/// which on every term stays 0: the first quantizer that alone would not undo it. Throws InvalidArgument for
/// operands with Hadamard's transform, which mixes the terms of 16 examples.
[[nodiscard]] std::vector<ZeroCauses> explain_zeros(const PrecisionPolicy& policy, std::uint64_t seed,
                                                    const StepContext& context, const RepeatedStep& step);

}  // namespace halfscope
