// Cases of `halfscope bench`: one line per case.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <halfscope/format/block_format.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/kernel/block/quantise.hpp>
#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/kernel/histogram/code_counts.hpp>
#include <halfscope/kernel/histogram/histogram.hpp>
#include <halfscope/stats/block_counts.hpp>
#include <halfscope/stats/tensor_summary.hpp>

#include "experiments/cli/bench/bench.hpp"
#include "experiments/cli/bench/bench_all_reduce.hpp"
#include "experiments/cli/bench/bench_batch.hpp"
#include "experiments/cli/bench/bench_checkpoint.hpp"
#include "experiments/cli/bench/bench_cuda.hpp"
#include "experiments/cli/bench/bench_formats.hpp"
#include "experiments/cli/bench/bench_products.hpp"
#include "experiments/cli/bench/bench_training.hpp"
#include "lib/nn/elementary.hpp"

namespace halfscope {
namespace {

/// 4 MiB of floats: in the cache, not in the innermost ones.
constexpr std::size_t array_size = std::size_t{1} << 20;

enum class Sign { either, positive };

/// Log-uniform magnitudes from 2^-27 to 2^17, as gradients are.
std::vector<float> wide_floats(Sign sign) {
  const RandomStream stream{.seed = 1};
  std::vector<float> values(array_size);
  for (std::size_t i = 0; i < array_size; ++i)
    values[i] = 0.6931472f * (44.0f * stream.uniform(2 * i) - 27.0f);
  apply(Elementary::exp, values, values);
  for (std::size_t i = 0; i < array_size && sign == Sign::either; ++i) {
    if (stream.uniform(2 * i + 1) < 0.5f) values[i] = -values[i];
  }
  return values;
}

using ArrayPass = std::function<void(std::span<const float>, std::span<float>)>;

BenchResult against_memcpy(const ArrayPass& operation, Sign sign = Sign::either) {
  const std::vector<float> in = wide_floats(sign);
  std::vector<float> out(in.size());
  const Times times = time_in_turn(
      [&] {
        operation(in, out);
        use_memory();
      },
      [&] {
        std::memcpy(out.data(), in.data(), in.size() * sizeof(float));
        use_memory();
      });
  return {static_cast<double>(array_size) / times.ours * 1e-9, "Gelem/s", times.ratio, "memcpy"};
}

BenchResult rounding(std::string_view quantizer) {
  const Quantizer q = parse_quantizer(quantizer);
  return against_memcpy(
      [q](std::span<const float> in, std::span<float> out) { round(in, out, q, RandomStream{.seed = 1}); });
}

/// As a square matrix, whose rows blocks run along.
constexpr MatrixShape square{1 << 10, 1 << 10};

BenchResult rounding_in_blocks(std::string_view name) {
  const BlockFormat format = parse_block_format(name);
  return against_memcpy(
      [format](std::span<const float> in, std::span<float> out) { round_blocks(in, out, square, format); });
}

BenchResult counting_in_blocks(std::string_view name) {
  const BlockFormat format = parse_block_format(name);
  return against_memcpy([format](std::span<const float> in, std::span<float> out) {
    (void)count_blocks(in, square, format, {}, out);
  });
}

BenchResult counting() {
  HistogramCounts counts;
  return against_memcpy([&](std::span<const float> in, std::span<float>) { histogram(in, counts); });
}

/// 16-bit elements as files store them, of numbers as gradients are.
std::vector<std::uint16_t> wide_codes(const Quantizer& q) {
  std::vector<float> floats = wide_floats(Sign::either);
  round(floats, floats, q);
  std::vector<std::uint16_t> codes(floats.size());
  std::ranges::transform(floats, codes.begin(),
                         [&](float x) { return static_cast<std::uint16_t>(encode(x, q.format)); });
  return codes;
}

BenchResult widening() {
  const std::vector<std::uint16_t> codes = wide_codes({fp16});
  return against_memcpy([&](std::span<const float>, std::span<float> out) {
    widen(DType::f16, std::as_bytes(std::span(codes)).data(), out);
  });
}

/// Counts per magnitude of 16-bit elements, from which their histogram follows at the end.
BenchResult counting_codes(const Quantizer& q) {
  const std::vector<std::uint16_t> codes = wide_codes(q);
  std::vector<std::uint16_t> copy(codes.size());
  CodeCounts counts(sizeof codes[0]);
  const Times times = time_in_turn([&] { counts.add(std::as_bytes(std::span(codes))); },
                                   [&] {
                                     std::memcpy(copy.data(), codes.data(), codes.size() * sizeof codes[0]);
                                     use_memory();
                                   });
  return {static_cast<double>(array_size) / times.ours * 1e-9, "Gelem/s", times.ratio, "memcpy"};
}

BenchResult summarising() {
  SummaryPass pass(fp16);
  return against_memcpy([&](std::span<const float> in, std::span<float>) { pass.add(in); });
}

BenchResult function_of_array(Elementary function) {
  return against_memcpy(
      [function](std::span<const float> in, std::span<float> out) { apply(function, in, out); },
      Sign::positive);
}

constexpr std::array cases{
    BenchCase{"round_fp16", "rounding to the nearest", [] { return rounding("fp16"); }},
    BenchCase{"round_bf16", "rounding to the nearest", [] { return rounding("bf16"); }},
    BenchCase{"round_tf32", "rounding to the nearest", [] { return rounding("tf32"); }},
    BenchCase{"round_fp8_e4m3", "rounding to the nearest", [] { return rounding("fp8_e4m3"); }},
    BenchCase{"round_fp8_e5m2", "rounding to the nearest", [] { return rounding("fp8_e5m2"); }},
    BenchCase{"round_fp16_nearest_away", "ties away from zero", [] { return rounding("fp16/nearest_away"); }},
    BenchCase{"round_fp16_toward_zero", "rounding toward zero", [] { return rounding("fp16/toward_zero"); }},
    BenchCase{"round_fp16_up", "rounding up", [] { return rounding("fp16/up"); }},
    BenchCase{"round_fp16_down", "rounding down", [] { return rounding("fp16/down"); }},
    BenchCase{"round_fp16_to_odd", "rounding to odd", [] { return rounding("fp16/to_odd"); }},
    BenchCase{"round_fp16_stochastic", "with random bits drawn", [] { return rounding("fp16/stochastic"); }},
    BenchCase{"round_fp16_saturate", "overflow to the largest number",
              [] { return rounding("fp16/saturate"); }},
    BenchCase{"round_mxfp8", "in blocks of 32, which share a power of two",
              [] { return rounding_in_blocks("mxfp8_e4m3"); }},
    BenchCase{"round_mxfp4", "in blocks of 32", [] { return rounding_in_blocks("mxfp4"); }},
    BenchCase{"round_nvfp4", "in blocks of 16, whose scales are of E4M3",
              [] { return rounding_in_blocks("nvfp4"); }},
    BenchCase{"round_nvfp4_16x16", "in tiles of 16 x 16", [] { return rounding_in_blocks("nvfp4_16x16"); }},
    BenchCase{"round_fp8_1x128", "in blocks of 128, whose scales are floats",
              [] { return rounding_in_blocks("fp8_1x128"); }},
    BenchCase{"round_fp8_128x128", "in tiles of 128 x 128", [] { return rounding_in_blocks("fp8_128x128"); }},
    BenchCase{"count_mxfp8",
              "the same as round_mxfp8, with what becomes of elements, blocks and scales counted",
              [] { return counting_in_blocks("mxfp8_e4m3"); }},
    BenchCase{"count_mxfp4", "the same as round_mxfp4, counted", [] { return counting_in_blocks("mxfp4"); }},
    BenchCase{"count_nvfp4", "the same as round_nvfp4, counted", [] { return counting_in_blocks("nvfp4"); }},
    BenchCase{"widen_fp16", "from 16-bit elements to FP32", widening},
    BenchCase{"histogram", "counting by binade", counting},
    BenchCase{"histogram_fp16", "counting 16-bit elements by magnitude",
              [] { return counting_codes({fp16}); }},
    BenchCase{"histogram_bf16", "counting 16-bit elements by magnitude",
              [] { return counting_codes({bf16}); }},
    BenchCase{"analyze", "counting, lost energy and cosine to FP16, as of each tensor", summarising},
    BenchCase{"read_checkpoint", "64 MiB in 8 tensors from the archive that torch.save writes",
              bench_checkpoint},
    BenchCase{"formats_axis_0", "counting three block formats along the first axis of a matrix in a file",
              bench_formats_along_first_axis},
    BenchCase{"exp", "of an array", [] { return function_of_array(Elementary::exp); }},
    BenchCase{"log", "of an array", [] { return function_of_array(Elementary::log); }},
    BenchCase{"tanh", "of an array", [] { return function_of_array(Elementary::tanh); }},
    BenchCase{"erf", "of an array", [] { return function_of_array(Elementary::erf); }},
    BenchCase{"rsqrt", "of an array", [] { return function_of_array(Elementary::rsqrt); }},
    BenchCase{"sigmoid", "of an array", [] { return function_of_array(Elementary::sigmoid); }},
    BenchCase{"gemm", "256 x 256 x 256, fused, summed in order",
              [] { return bench_product("fp32_fused", 256); }},
    BenchCase{"gemm_fp32_sequential", "256 x 256 x 256, each product and sum rounded",
              [] { return bench_product("fp32_sequential", 256); }},
    BenchCase{"gemm_fp32_chunked", "256 x 256 x 256, summed in chunks of 256 terms",
              [] { return bench_product("fp32_chunked(256)", 256); }},
    BenchCase{"gemm_fp16_sequential", "256 x 256 x 256, each product and sum rounded",
              [] { return bench_product("fp16_sequential", 256); }},
    BenchCase{"gemm_fp16_fused", "256 x 256 x 256, fused, each sum rounded",
              [] { return bench_product("fp16_fused", 256); }},
    BenchCase{"gemm_fp16_chunked", "256 x 256 x 256, each sum rounded, in chunks of 64 terms",
              [] { return bench_product("fp16_chunked(64)", 256); }},
    BenchCase{"gemm_bf16_sequential", "256 x 256 x 256, each product and sum rounded to bf16",
              [] { return bench_product("bf16_sequential", 256); }},
    BenchCase{"gemm_volta", "256 x 256 x 256, as a V100's tensor core",
              [] { return bench_product("tensor_core(volta)", 256); }},
    BenchCase{"gemm_ampere", "256 x 256 x 256, as an A100's tensor core",
              [] { return bench_product("tensor_core(ampere)", 256); }},
    BenchCase{"gemm_hopper", "256 x 256 x 256, as an H100's tensor core",
              [] { return bench_product("tensor_core(hopper)", 256); }},
    BenchCase{"gemm_hopper_bf16", "256 x 256 x 256, as an H100's tensor core of BF16",
              [] { return bench_product("bf16_tensor_core(hopper)", 256); }},
    BenchCase{"gemm_ada_fp8", "256 x 256 x 256, as an L40S's tensor core of FP8",
              [] { return bench_product("fp8_e4m3_tensor_core(ada)", 256); }},
    BenchCase{"gemm_hopper_fp8", "256 x 256 x 256, as an H100's tensor core of FP8",
              [] { return bench_product("fp8_e4m3_tensor_core(hopper)", 256); }},
    BenchCase{"gemm_hopper_fp8_promoted", "the same, promoted to FP32 every 128 terms",
              [] { return bench_product("fp8_e4m3_tensor_core(hopper, promote=128)", 256); }},
    BenchCase{"gemm_blackwell_fp8", "256 x 256 x 256, as a B200's tensor core of FP8",
              [] { return bench_product("fp8_e4m3_tensor_core(blackwell)", 256); }},
    BenchCase{"gemm_blackwell_mxfp8", "the same in blocks of 32 along k, as its block-scaled tensor core",
              [] { return bench_block_product("mxfp8_e4m3", BlockScaledKind::mxf8f6f4, 256); }},
    BenchCase{"gemm_blackwell_mxfp4", "the same, FP4 in blocks of 32",
              [] { return bench_block_product("mxfp4", BlockScaledKind::mxf4, 256); }},
    BenchCase{"gemm_blackwell_nvfp4", "the same, FP4 in blocks of 16 with scales of E4M3",
              [] { return bench_block_product("nvfp4", BlockScaledKind::mxf4nvf4, 256); }},
    BenchCase{"gemm_two_threads", "256 x 256 x 256, fused, summed in order",
              [] { return bench_product_on_two_threads(256); }},
    BenchCase{"gemm_batch", "128 products of 64 x 64 x 64, fused, the right factors transposed",
              [] { return bench_batch("fp32_fused"); }},
    BenchCase{"gemm_batch_fp16_sequential", "the same, each product and sum rounded",
              [] { return bench_batch("fp16_sequential"); }},
    BenchCase{"gemm_batch_hopper", "the same, as an H100's tensor core",
              [] { return bench_batch("tensor_core(hopper)"); }},
    BenchCase{"gemm_batch_two_threads", "the same, fused", bench_batch_on_two_threads},
    BenchCase{"gemm_1024", "1024 x 1024 x 1024, fused, summed in order",
              [] { return bench_product("fp32_fused", 1024); }},
    BenchCase{"gemm_fp32_sequential_1024", "1024 x 1024 x 1024, each product and sum rounded",
              [] { return bench_product("fp32_sequential", 1024); }},
    BenchCase{"gemm_fp16_sequential_1024", "1024 x 1024 x 1024, each product and sum rounded",
              [] { return bench_product("fp16_sequential", 1024); }},
    BenchCase{"gemm_fp16_fused_1024", "1024 x 1024 x 1024, fused, each sum rounded",
              [] { return bench_product("fp16_fused", 1024); }},
    BenchCase{"gemm_volta_1024", "1024 x 1024 x 1024, as a V100's tensor core",
              [] { return bench_product("tensor_core(volta)", 1024); }},
    BenchCase{"gemm_ampere_1024", "1024 x 1024 x 1024, as an A100's tensor core",
              [] { return bench_product("tensor_core(ampere)", 1024); }},
    BenchCase{"gemm_hopper_1024", "1024 x 1024 x 1024, as an H100's tensor core",
              [] { return bench_product("tensor_core(hopper)", 1024); }},
    BenchCase{"gemm_two_threads_1024", "1024 x 1024 x 1024, fused, summed in order",
              [] { return bench_product_on_two_threads(1024); }},
    BenchCase{"all_reduce_ring", "64 ranks of 2^18 gradients in FP16, adds counted, NCCL's ring",
              [] { return bench_all_reduce("nccl_ring", 64, 1 << 18); }},
    BenchCase{"all_reduce_tree", "the same in NCCL's tree",
              [] { return bench_all_reduce("nccl_tree", 64, 1 << 18); }},
    BenchCase{"all_reduce_bf16", "the same ring in BF16",
              [] { return bench_all_reduce("nccl_ring/bf16", 64, 1 << 18); }},
    BenchCase{"all_reduce_fp32", "FP16 addends, FP32 partial sums",
              [] { return bench_all_reduce("fp32", 64, 1 << 18); }},
    BenchCase{"all_reduce_ring_4096", "4096 ranks of 100,000 gradients in FP16, NCCL's ring",
              [] { return bench_all_reduce("nccl_ring", 4096, 100000); }},
    BenchCase{"training_step", "cnn_bn, batch 64, policy fp16_mixed", bench_training_step},
    BenchCase{"training_step_gru", "gru_lm, batch 64, policy fp16_mixed", bench_training_step_of_words},
    BenchCase{"training_step_gru_mxfp8", "gru_lm, batch 64, policy mxfp8",
              [] { return bench_recipe_of_words("mxfp8"); }},
    BenchCase{"training_step_gru_nvfp4", "gru_lm, batch 64, policy nvfp4",
              [] { return bench_recipe_of_words("nvfp4"); }},
    BenchCase{"training_step_transformer_mxfp8", "transformer, batch 64, policy mxfp8",
              [] { return bench_recipe_of_translation("mxfp8"); }},
    BenchCase{"training_step_transformer_nvfp4", "transformer, batch 64, policy nvfp4",
              [] { return bench_recipe_of_translation("nvfp4"); }},
    BenchCase{"track_weight_gradients", "the same step, every weight gradient counted",
              bench_tracked_weight_gradients},
    BenchCase{"track_all_tensors", "the same step, every tensor counted", bench_tracked_tensors},
    BenchCase{"track_weight_gradients_gru", "gru_lm, batch 64, every weight gradient counted",
              bench_tracked_weight_gradients_of_words},
    BenchCase{"track_all_tensors_gru", "the same step, every tensor counted", bench_tracked_tensors_of_words},
    BenchCase{"cuda_round_fp16", "64 Mi floats, 8 bytes each, as a copy of as many bytes",
              [] { return bench_cuda_pass(DevicePass::round); }, Device::cuda},
    BenchCase{"cuda_cast", "rounded to fp16 in place and counted, 8 bytes each",
              [] { return bench_cuda_pass(DevicePass::cast); }, Device::cuda},
    BenchCase{"cuda_cast_histogram", "rounded to fp16 in place with the histogram, 8 bytes each",
              [] { return bench_cuda_pass(DevicePass::cast_histogram); }, Device::cuda},
    BenchCase{"cuda_histogram", "counting by binade, 4 bytes each",
              [] { return bench_cuda_pass(DevicePass::histogram); }, Device::cuda},
    BenchCase{"cuda_adam", "unscaling, Adam and finiteness in one pass, 28 bytes each",
              [] { return bench_cuda_pass(DevicePass::adam); }, Device::cuda},
    BenchCase{"cuda_adam_watched", "the same with lost updates and their ratios, 28 bytes each",
              [] { return bench_cuda_pass(DevicePass::adam_watched); }, Device::cuda},
    BenchCase{"cuda_gemm_ordered", "4096 x 4096 x 4096, fp16, summed in order in fp32",
              [] { return bench_cuda_ordered(DType::f16, DType::f32); }, Device::cuda},
    BenchCase{"cuda_gemm_ordered_bf16", "the same in bf16",
              [] { return bench_cuda_ordered(DType::bf16, DType::f32); }, Device::cuda},
    BenchCase{"cuda_gemm_ordered_in_fp16", "fp16 summed in fp16",
              [] { return bench_cuda_ordered(DType::f16, DType::f16); }, Device::cuda},
    BenchCase{"cuda_gemm_fp16", "4096 x 4096 x 4096 by cuBLAS, beside its fp32", bench_cuda_cublas,
              Device::cuda},
    BenchCase{"cuda_track_all", "cnn_bn, batch 512, all trackers at every step", bench_cuda_tracked_images,
              Device::cuda},
    BenchCase{"cuda_track_all_gru", "gru_lm, 512 wide, batch 512, all trackers at every step",
              bench_cuda_tracked_words, Device::cuda},
};

}  // namespace

std::span<const BenchCase> bench_cases() {
  return cases;
}

}  // namespace halfscope
