// A precision policy: which numbers of training live in which format, and how sums add up.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/core/array_view.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/policy/operands.hpp>
#include <halfscope/policy/operations.hpp>
#include <halfscope/stats/site.hpp>

namespace halfscope {

/// An order of sums for the layers whose name matches a glob ("*" is all of them).
struct ScopedAccumulate {
  AccumulateModel model{.order = AccumulateOrder::chunked, .chunk = 256};
  std::string layers = "*";
};
/// "ORDER" or "ORDER@GLOB".
[[nodiscard]] std::string to_string(const ScopedAccumulate& scoped);
[[nodiscard]] ScopedAccumulate parse_scoped_accumulate(std::string_view text);

/// Formats that an operation computes in: those of the policy's roles, or FP32 throughout.
enum class Precision : std::uint8_t { reduced, fp32 };

/// The precision that the network's parameters are stored in: automatic mixed precision keeps FP32 and casts
/// for each operation that is to be reduced.
enum class StoredParameters : std::uint8_t { reduced, fp32 };

/// Whether the cast of an FP32 parameter is kept from its first use in a forward pass to its last. The
/// gradients of all uses are then summed at the one copy, in the gradients' format; else each is cast to FP32
/// first, and the sum is FP32.
enum class CastCache : std::uint8_t { on, off };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<CastCache>{"on", "off"};

/// How an update is added to weights that are stored in a narrow format: rounded as that format is; by
/// Kahan's sum; or to weights of two components. The latter two keep a number of the format beside each
/// weight.
enum class WeightSum : std::uint8_t { plain, kahan, two_components };
template <>
inline constexpr std::array<std::string_view, 3> enum_names<WeightSum>{"plain", "kahan", "two_components"};

/// Puts operations on a list: those of one name, or "*", in the layers whose name matches a glob.
struct OperationRule {
  OperationList list = OperationList::allow;
  std::string operation = "*";
  std::string layers = "*";

  [[nodiscard]] bool applies_to(const OperationEntry& entry, std::string_view layer) const;
};
/// "OPERATION" or "OPERATION@GLOB".
[[nodiscard]] std::string to_string(const OperationRule& rule);
/// Rules for one list, separated by commas. Throws InvalidArgument for an operation that is not in the table.
[[nodiscard]] std::vector<OperationRule> parse_operation_rules(OperationList list, std::string_view text);
/// Throws InvalidArgument where two lists have the same rule.
void check_operation_rules(std::span<const OperationRule> rules);

/// A value; `policy.with(role, quantizer)` is a copy with one change, so that an ablation reads as a
/// sentence.
struct PrecisionPolicy {
  std::array<Quantizer, enum_names<Role>.size()> quantizers{};
  AccumulateModel products{.order = AccumulateOrder::fused};  ///< matrix products and convolutions
  ScopedAccumulate reductions{};  ///< sums over many elements: batch norm statistics, softmax; FP32 elsewhere
  std::array<OperationList, operation_table.size()> lists{};  ///< lists of the table's operations; allow
  std::vector<OperationRule> rules{};  ///< rules that override the lists; of two that apply the later holds
  StoredParameters parameters = StoredParameters::reduced;
  bool keep_batch_norm_fp32 = false;  ///< parameters of batch norm are FP32 whatever the others are
  CastCache cast_cache = CastCache::on;
  WeightSum weight_sum = WeightSum::plain;
  std::vector<OperandRule> operands{};  ///< formats of products' operands; none: those of the roles

  /// The list of an operation in the layer called `layer`.
  [[nodiscard]] OperationList list_of(OperationId operation, std::string_view layer) const;
  /// The precision in which an operation on `list` sees its parameters.
  [[nodiscard]] Precision parameter_precision(OperationId operation, OperationList list) const;
  /// Whether every operation is on the list allow.
  [[nodiscard]] bool allows_all() const;
  [[nodiscard]] const Quantizer& quantizer(Role role) const {
    return quantizers[static_cast<std::size_t>(role)];
  }
  [[nodiscard]] PrecisionPolicy with(Role role, const Quantizer& quantizer) const {
    PrecisionPolicy changed = *this;
    changed.quantizers[static_cast<std::size_t>(role)] = quantizer;
    return changed;
  }
  /// The model for the reductions of the layer called `layer`.
  [[nodiscard]] AccumulateModel reductions_in(std::string_view layer) const;
};

/// The default sums of matrix products: `tensor_core(hopper)` of FP16 or BF16, as an H100 or H200 computes
/// them, if weights, activations and activation gradients all have that format; else `fp32_fused`, the FP32
/// units of a GPU. For a policy whose operands have formats of their own: its own FP32 sums, or `fp32_fused`.
[[nodiscard]] AccumulateModel default_products(const PrecisionPolicy& policy);

/// Where the formats of a policy are: in what operations do to FP32 numbers, or in the memory itself.
enum class Execution : std::uint8_t { emulated, native };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<Execution>{"emulated", "native"};

/// The 16-bit memory that holds every number of the quantizer's format and no other; FP32 where there is
/// none.
[[nodiscard]] DType native_storage(const Quantizer& quantizer);

/// Throws InvalidArgument where a tensor that the network computes with has a format that no memory is of.
void check_native(const PrecisionPolicy& policy);

/// Throws InvalidArgument where operands have formats of their own and `policy.products` rounds them to
/// another.
void check_operand_sums(const PrecisionPolicy& policy);

/// A policy by name, and a recipe too: a policy whose products have the operands that `operands` says, but
/// for the heads of language models, and the sums that `products` names.
struct NamedPolicy {
  std::string_view name;
  std::string_view summary;
  PrecisionPolicy (*base)();
  std::string_view operands{};
  std::string_view products = "fp32_fused";

  [[nodiscard]] PrecisionPolicy make() const;
};

/// The tensors of a network in one format, beside FP32 master weights and optimizer state.
[[nodiscard]] PrecisionPolicy tensors_in(const Quantizer& quantizer);
[[nodiscard]] PrecisionPolicy fp32_policy();
[[nodiscard]] PrecisionPolicy fp16_mixed_policy();
[[nodiscard]] PrecisionPolicy fp16_no_master_policy();
[[nodiscard]] PrecisionPolicy fp16_pure_policy();
[[nodiscard]] PrecisionPolicy autocast_cuda_policy();
[[nodiscard]] PrecisionPolicy autocast_cpu_policy();
[[nodiscard]] PrecisionPolicy apex_o1_policy();
[[nodiscard]] PrecisionPolicy apex_o2_policy();
[[nodiscard]] PrecisionPolicy bf16_mixed_policy();
[[nodiscard]] PrecisionPolicy bf16_no_master_policy();
[[nodiscard]] PrecisionPolicy bf16_stochastic_policy();
[[nodiscard]] PrecisionPolicy bf16_kahan_policy();
[[nodiscard]] PrecisionPolicy bf16_two_components_policy();

/// `policy` with its tensors, products and reductions in FP32: that of an operation on the list deny.
[[nodiscard]] PrecisionPolicy in_fp32(PrecisionPolicy policy);

/// The policies that have a name: one line per policy.
inline constexpr std::array policy_table{
    NamedPolicy{"fp32", "everything in FP32", fp32_policy},
    NamedPolicy{"fp16_mixed", "FP16 tensors, FP32 master weights and optimizer", fp16_mixed_policy},
    NamedPolicy{"fp16_no_master", "as fp16_mixed, but the weights are stored in FP16 only",
                fp16_no_master_policy},
    NamedPolicy{"fp16_pure", "weights, optimizer state and update arithmetic all in FP16", fp16_pure_policy},
    NamedPolicy{"autocast_cuda", "PyTorch's torch.autocast(\"cuda\"): FP32 weights, FP16 by operation",
                autocast_cuda_policy},
    NamedPolicy{"autocast_cpu", "PyTorch's torch.autocast(\"cpu\"): FP32 weights, BF16 by operation",
                autocast_cpu_policy},
    NamedPolicy{"apex_o0", "NVIDIA Apex, opt_level O0: FP32", fp32_policy},
    NamedPolicy{"apex_o1", "O1: FP32 weights, FP16 by operation", apex_o1_policy},
    NamedPolicy{"apex_o2", "O2: FP16 tensors but for batch norm's parameters, FP32 master weights",
                apex_o2_policy},
    NamedPolicy{"apex_o3", "O3: FP16 throughout", fp16_pure_policy},
    NamedPolicy{"bf16_mixed", "BF16 tensors, FP32 master weights and optimizer", bf16_mixed_policy},
    NamedPolicy{"bf16_no_master", "as bf16_mixed, but the weights are stored in BF16 only",
                bf16_no_master_policy},
    NamedPolicy{"bf16_stochastic", "as bf16_no_master, updated weights rounded stochastically",
                bf16_stochastic_policy},
    NamedPolicy{"bf16_kahan", "as bf16_no_master, updates added by Kahan's sum (optimi, torchao)",
                bf16_kahan_policy},
    NamedPolicy{"bf16_two_components", "as bf16_no_master, each weight a sum of two BF16 numbers (Collage)",
                bf16_two_components_policy},
    // Recipes, with where each is from.
    NamedPolicy{"fp8_current", "E4M3, gradients E5M2, scaled by their own maxima (TE Float8CurrentScaling)",
                bf16_mixed_policy,
                "*=fp8_e4m3+current, data_gradient.left=fp8_e5m2+current, "
                "weight_gradient.left=fp8_e5m2+current"},
    NamedPolicy{"fp8_delayed", "the same, scaled by the maxima of 1024 steps (TE DelayedScaling)",
                bf16_mixed_policy,
                "*=fp8_e4m3+delayed, data_gradient.left=fp8_e5m2+delayed, "
                "weight_gradient.left=fp8_e5m2+delayed"},
    NamedPolicy{"fp8_deepseek", "E4M3 in blocks of 128, weights in tiles, sums promoted (DeepSeek-V3)",
                bf16_mixed_policy, "*=fp8_1x128, forward.right=fp8_128x128, data_gradient.right=fp8_128x128",
                "fp32_chunked(128)"},
    NamedPolicy{"mxfp8", "MXFP8 E4M3, scales rounded up (TE MXFP8BlockScaling, cuBLAS)", bf16_mixed_policy,
                "*=mxfp8_e4m3"},
    NamedPolicy{"mxfp8_floor", "MXFP8 E4M3, scales of OCP MX 1.0 (torchao's default)", bf16_mixed_policy,
                "*=mxfp8_e4m3/floor"},
    NamedPolicy{"mxfp6", "MXFP6 E2M3, scales rounded up (OCP MX 1.0, cuBLAS)", bf16_mixed_policy,
                "*=mxfp6_e2m3"},
    NamedPolicy{"mxfp4", "MXFP4, scales rounded up (OCP MX 1.0, cuBLAS)", bf16_mixed_policy, "*=mxfp4"},
    NamedPolicy{"nvfp4", "NVFP4: 16x16 weights, Hadamard, stochastic gradients (TE NVFP4BlockScaling)",
                bf16_mixed_policy,
                "*=nvfp4, forward.right=nvfp4_16x16, data_gradient.right=nvfp4_16x16, "
                "data_gradient.left=nvfp4/stochastic, weight_gradient.left=nvfp4/stochastic+hadamard, "
                "weight_gradient.right=nvfp4+hadamard"},
    NamedPolicy{"nvfp4_4over6", "the same, activations and weights scaled to 4 or 6 (TE, Four Over Six)",
                bf16_mixed_policy,
                "forward.left=nvfp4/four_over_six_mae_256, "
                "forward.right=nvfp4_16x16/four_over_six_mae_256, "
                "data_gradient.left=nvfp4/stochastic, "
                "data_gradient.right=nvfp4_16x16/four_over_six_mae_256, "
                "weight_gradient.left=nvfp4/stochastic+hadamard, "
                "weight_gradient.right=nvfp4/four_over_six_mae_256+hadamard"},
};

}  // namespace halfscope
