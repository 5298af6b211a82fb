// The operations of a tape, under PyTorch's names, and the lists that automatic mixed precision has them on.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include <halfscope/core/names.hpp>

namespace halfscope {

/// Kinds of operations that counts of memory tell apart.
enum class OperationKind : std::uint8_t {
  input,
  convolution,
  linear,
  residual_sum,
  normalisation,
  activation,
  pooling,
  recurrent,
  embedding,
  loss,
  other,
};
template <>
inline constexpr std::array<std::string_view, 11> enum_names<OperationKind>{
    "input",   "convolution", "linear",    "residual_sum", "normalisation", "activation",
    "pooling", "recurrent",   "embedding", "loss",         "other"};

/// Precision of an operation: allow, in the formats of the policy's roles, to which its inputs are cast;
/// deny, in FP32; infer, in the widest of its inputs. An operation on refuse is an error.
enum class OperationList : std::uint8_t { allow, deny, infer, refuse };
template <>
inline constexpr std::array<std::string_view, 4> enum_names<OperationList>{"allow", "deny", "infer",
                                                                           "refuse"};

struct OperationEntry {
  std::string_view name;
  OperationKind kind;
  OperationList autocast_cuda, autocast_cpu;  ///< PyTorch's torch.autocast of a device
  OperationList apex_o1;                      ///< NVIDIA Apex, opt_level O1
  bool multiplies = false;                    ///< matrices, in the order of the policy's products
  bool has_parameters = false;
};

inline constexpr auto operation_table = [] {
  using enum OperationKind;
  using enum OperationList;
  // Operations that PyTorch composes of several (local_response_norm, kl_div of logits) have the list of the
  // one that decides their output.
  return std::array{
      OperationEntry{"input", input, deny, deny, deny},
      OperationEntry{"conv2d", convolution, allow, allow, allow, true, true},
      OperationEntry{"conv_transpose2d", convolution, allow, allow, allow, true, true},
      OperationEntry{"linear", linear, allow, allow, allow, true, true},
      OperationEntry{"matmul", linear, allow, allow, allow, true},
      OperationEntry{"sampled_logits", linear, allow, allow, allow, true},
      OperationEntry{"lstm", recurrent, allow, infer, allow, true, true},
      OperationEntry{"gru", recurrent, allow, infer, allow, true, true},
      OperationEntry{"add", residual_sum, infer, infer, infer},
      OperationEntry{"mul", other, infer, infer, infer},
      OperationEntry{"cat", other, infer, infer, infer},
      OperationEntry{"index_select", other, infer, infer, infer},
      OperationEntry{"dropout", other, infer, infer, infer},
      OperationEntry{"relu", activation, infer, infer, infer},
      OperationEntry{"leaky_relu", activation, infer, infer, infer},
      OperationEntry{"sigmoid", activation, infer, infer, infer},
      OperationEntry{"tanh", activation, infer, infer, infer},
      OperationEntry{"gelu", activation, infer, infer, deny},
      OperationEntry{"silu", activation, infer, infer, infer},
      OperationEntry{"max_pool2d", pooling, infer, infer, infer},
      OperationEntry{"avg_pool2d", pooling, infer, infer, infer},
      OperationEntry{"adaptive_avg_pool2d", pooling, infer, infer, infer},
      OperationEntry{"roi_pool", other, infer, infer, infer},
      OperationEntry{"upsample_nearest", other, deny, infer, deny},
      OperationEntry{"embedding", embedding, infer, infer, infer, false, true},
      OperationEntry{"batch_norm", normalisation, infer, infer, infer, false, true},
      OperationEntry{"layer_norm", normalisation, deny, infer, deny, false, true},
      OperationEntry{"rms_norm", normalisation, deny, infer, deny, false, true},
      OperationEntry{"local_response_norm", normalisation, deny, deny, deny},
      OperationEntry{"softmax", other, deny, infer, deny},
      OperationEntry{"cross_entropy", loss, deny, deny, deny},
      OperationEntry{"binary_cross_entropy", loss, refuse, deny, refuse},
      OperationEntry{"binary_cross_entropy_with_logits", loss, deny, deny, deny},
      OperationEntry{"smooth_l1_loss", loss, deny, deny, deny},
      OperationEntry{"ctc_loss", loss, deny, deny, deny},
      OperationEntry{"kl_div", loss, deny, deny, deny},
      OperationEntry{"cosine_embedding_loss", loss, deny, deny, deny},
      OperationEntry{"total_loss", other, infer, infer, infer},
  };
}();

/// An operation of the table by its name; a name that is not there does not compile.
struct OperationId {
  std::size_t index = 0;

  // NOLINTNEXTLINE(google-explicit-constructor): a layer gives its name.
  consteval OperationId(const char* name) : index(index_of(name)) {}
  /// Line `line` of the table.
  explicit constexpr OperationId(std::size_t line) : index(line) {}

  [[nodiscard]] constexpr const OperationEntry& entry() const { return operation_table[index]; }

 private:
  static consteval std::size_t index_of(std::string_view name) {
    for (std::size_t i = 0; i < operation_table.size(); ++i) {
      if (operation_table[i].name == name) return i;
    }
    throw std::logic_error("no operation of this name");
  }
};

}  // namespace halfscope
