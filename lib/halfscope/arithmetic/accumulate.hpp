// How a sum adds up: the precision of the partial sums and the order of the adds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <halfscope/arithmetic/matrix_core.hpp>
#include <halfscope/arithmetic/tensor_core.hpp>
#include <halfscope/core/names.hpp>
#include <halfscope/format/formats.hpp>

namespace halfscope {

enum class AccumulateOrder : std::uint8_t {
  sequential,  ///< one partial sum, terms in ascending order
  chunked,     ///< each run of `chunk` terms sequentially in `format`; the chunks' sums sequentially in FP32
  pairwise,  ///< a binary tree: equal halves are added, a ragged end joins from its smallest subtree upwards
  kahan,     ///< sequential with a compensation: y = x - e; t = s + y; e = (t - s) - y; s = t, each rounded
  tensor_core,  ///< for products only: blocks of ascending terms, each added to the sum by a tensor core
  matrix_core,  ///< for products only: as AMD's matrix cores add them up
  fused,        ///< for products only: as sequential, but product and add are one operation, rounded once
  cublas,       ///< for products in native execution only: FP32 sums in the library's own order
};
template <>
inline constexpr std::array<std::string_view, 8> enum_names<AccumulateOrder>{
    "sequential", "chunked", "pairwise", "kahan", "tensor_core", "matrix_core", "fused", "cublas"};

/// A value. Every term and every partial sum is rounded (nearest even) to `format`; FP32 products and sums
/// are rounded separately, fused only in the order of that name. Printed as "fp16_sequential",
/// "fp32_chunked(256)", "fp16_pairwise". For a tensor core, `format` is that of the operands, and the sums
/// are its FP32 output's: printed as "tensor_core(hopper)" for fp16, else as "bf16_tensor_core(hopper)"; with
/// a chunk its sums are promoted (`promoted_dot`): "fp8_e4m3_tensor_core(hopper, promote=128)". A core with
/// constants of its own is "tensor_core(products=16, bits=25, zero=-133, result=fp32/toward_zero)". A matrix
/// core is printed as "matrix_core(cdna3)" for fp16, else as "bf16_matrix_core(cdna3)".
struct AccumulateModel {
  FloatFormat format = fp32;
  AccumulateOrder order = AccumulateOrder::sequential;
  int chunk = 0;      ///< terms per chunk; of a tensor core, terms between promotions; 0: none
  TensorCore core{};  ///< the default unless tensor_core
  MatrixCoreGeneration matrix_core = MatrixCoreGeneration::cdna1;  ///< the default unless matrix_core

  friend constexpr bool operator==(const AccumulateModel&, const AccumulateModel&) = default;
};

struct NamedAccumulateModel {
  std::string_view name;
  std::string_view summary;
};

/// Models that `halfscope list orders` shows; any format's name may stand for fp16 and fp32.
inline constexpr std::array accumulate_models{
    NamedAccumulateModel{"fp32_sequential", "FP32 partial sum, ascending order"},
    NamedAccumulateModel{"fp32_chunked(256)", "FP32, chunks of 256 terms, then their sums"},
    NamedAccumulateModel{"fp32_pairwise", "FP32, binary tree"},
    NamedAccumulateModel{"fp16_sequential",
                         "FP16 partial sum, ascending order: stagnates and overflows first"},
    NamedAccumulateModel{
        "fp16_fused", "FP16 partial sum, ascending order, product and add rounded once; only for products"},
    NamedAccumulateModel{"fp32_fused",
                         "FP32, ascending order, product and add rounded once; only for products"},
    NamedAccumulateModel{"fp16_chunked(64)", "FP16 inside chunks of 64 terms, FP32 across them"},
    NamedAccumulateModel{"fp16_pairwise", "FP16, binary tree"},
    NamedAccumulateModel{"fp32_kahan", "FP32, ascending order with Kahan's compensation; not for products"},
    NamedAccumulateModel{"fp16_kahan", "FP16, ascending order with Kahan's compensation; not for products"},
    NamedAccumulateModel{"tensor_core(volta)", "V100: FP16 products, blocks of 4 cut off at 23 bits"},
    NamedAccumulateModel{"tensor_core(turing)", "T4: FP16 products, blocks of 8 cut off at 24 bits"},
    NamedAccumulateModel{"tensor_core(ampere)", "A100: FP16 products, blocks of 8 cut off at 24 bits"},
    NamedAccumulateModel{"tensor_core(ada)", "L40S: FP16 products, blocks of 8 cut off at 24 bits"},
    NamedAccumulateModel{"tensor_core(hopper)", "H100, H200: FP16 products, blocks of 16 cut off at 25 bits"},
    NamedAccumulateModel{"tensor_core(blackwell)", "B200: FP16 products, blocks of 16 cut off at 25 bits"},
};

/// Beside them, for products that the CPU computes and no device.
inline constexpr std::array cpu_product_models{
    NamedAccumulateModel{"fp8_e4m3_tensor_core(hopper, promote=128)",
                         "H100, H200: FP8 products, sums of 128 added up in FP32, as DeepGEMM does"},
    NamedAccumulateModel{
        "tensor_core(products=16, bits=26)",
        "a tensor core of one's own; zero= and result= too, see docs/reference/formats-and-sums.md"},
    NamedAccumulateModel{"matrix_core(cdna1)", "MI100: FP16 products, exact sums of 4, rounded once"},
    NamedAccumulateModel{"matrix_core(cdna2)", "MI200: FP16 products, FP32 in pairs, subnormals are zeros"},
    NamedAccumulateModel{"bf16_matrix_core(cdna2_1k)", "MI200: BF16 products of the _1k instructions"},
    NamedAccumulateModel{"matrix_core(cdna3)", "MI300: FP16 products, blocks of 8 cut off at 24 bits"},
    NamedAccumulateModel{"fp8_e4m3fnuz_matrix_core(cdna3)",
                         "MI300: FP8 products, blocks of 16 cut off at 24 bits"},
};

/// For matrix products in native execution only: no model, and outside the determinism contract.
inline constexpr NamedAccumulateModel library_products{
    "cublas", "FP32, in the order of cuBLAS; only for products in native execution, no fixed bits"};

[[nodiscard]] std::string to_string(const AccumulateModel& model);
/// Throws InvalidArgument with the nearest known name, or naming a chunk outside 1..2^20, or a
/// tensor core or its operands' format that there is not.
[[nodiscard]] AccumulateModel parse_accumulate_model(std::string_view text);

/// The sum of `terms` as `model` adds them up: the scalar definition that every kernel equals bit for bit.
/// Throws InvalidArgument for fused, cublas, tensor_core and matrix_core, which add up products only.
[[nodiscard]] float accumulate(std::span<const float> terms, const AccumulateModel& model);

/// The sum of the products a[k] b[k] as `model` adds them up: products rounded to FP32, then `accumulate`;
/// for fused, sum = `fma`(a[k], b[k], sum) from zero; for tensor_core and matrix_core, the operands rounded
/// (nearest even) to `model.format`, then `dot` of its step from zero. Throws
/// InvalidArgument where `a` and `b` differ in size.
[[nodiscard]] float accumulate_products(std::span<const float> a, std::span<const float> b,
                                        const AccumulateModel& model);

/// The same sum, from `start` on: the running sum begins with `start` rounded to `model.format` (of chunks,
/// the FP32 sum across them, with `start` as it is; of a tensor core, rounded to its output); a pairwise sum
/// adds it last. Throws InvalidArgument where `a` and `b` differ in size.
[[nodiscard]] float accumulate_products_from(float start, std::span<const float> a, std::span<const float> b,
                                             const AccumulateModel& model);

/// The step of a tensor_core model, with its sums in the core's output or in another one. Throws
/// InvalidArgument where the tensor core has none, or cannot be promoted as the model says.
[[nodiscard]] TensorCoreStep product_step(const AccumulateModel& model);
[[nodiscard]] TensorCoreStep product_step(const AccumulateModel& model, const FloatFormat& output);

/// Throws InvalidArgument where `model` is not one that sums of single terms can have: fused, tensor_core,
/// matrix_core.
void check_reduction_model(const AccumulateModel& model);

/// Throws InvalidArgument for a format without -0, in which no sum is kept.
void check_sum_format(const FloatFormat& format);

/// Throws InvalidArgument unless `format` has -0 and is FP32 or has at most 21 mantissa bits, as fused sums
/// need.
void check_fused_format(const FloatFormat& format);

}  // namespace halfscope
