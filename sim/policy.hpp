// A precision policy: which numbers of training live in which format, and how sums add up.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/core/array_view.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/stats/site.hpp>

namespace halfscope {

/// An accumulation model for the layers whose name matches a glob ("*" is all of them).
struct ScopedAccumulate {
  AccumulateModel model{.order = AccumulateOrder::chunked, .chunk = 256};
  std::string layers = "*";
};
/// "MODEL" or "MODEL@GLOB".
[[nodiscard]] std::string to_string(const ScopedAccumulate& scoped);
[[nodiscard]] ScopedAccumulate parse_scoped_accumulate(std::string_view text);

/// A value; `policy.with(role, quantizer)` is a copy with one change, so that an ablation reads as a
/// sentence.
struct PrecisionPolicy {
  std::array<Quantizer, enum_names<Role>.size()> quantizers{};
  AccumulateModel products{.order = AccumulateOrder::fused};  ///< matrix products and convolutions
  ScopedAccumulate reductions{};  ///< sums over many elements: batch norm statistics, softmax; FP32 elsewhere

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
/// units of a GPU.
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

struct NamedPolicy {
  std::string_view name;
  std::string_view summary;
  PrecisionPolicy (*make)();
};

[[nodiscard]] PrecisionPolicy fp32_policy();
[[nodiscard]] PrecisionPolicy fp16_mixed_policy();
[[nodiscard]] PrecisionPolicy fp16_no_master_policy();
[[nodiscard]] PrecisionPolicy fp16_pure_policy();

/// The policies that have a name: one line per policy.
inline constexpr std::array policy_table{
    NamedPolicy{"fp32", "everything in FP32", fp32_policy},
    NamedPolicy{"fp16_mixed", "FP16 tensors, FP32 master weights and optimizer", fp16_mixed_policy},
    NamedPolicy{"fp16_no_master", "as fp16_mixed, but the weights are stored in FP16 only",
                fp16_no_master_policy},
    NamedPolicy{"fp16_pure", "weights, optimizer state and update arithmetic all in FP16", fp16_pure_policy},
};

}  // namespace halfscope
