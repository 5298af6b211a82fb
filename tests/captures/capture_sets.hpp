// Sets that are captured on a GPU: matrix instructions with made-up operands, and functions of FP16.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <halfscope/core/dtype.hpp>
#include <halfscope/core/names.hpp>
#include <halfscope/format/float_format.hpp>

namespace halfscope {

enum class CaptureInstruction : std::uint8_t {
  mma_m16n8k16,
  mma_m16n8k8,
  mma_m16n8k32,
  wgmma_m64n8k16,
  wgmma_m64n8k32,
  cublas,
  function
};
template <>
inline constexpr std::array<std::string_view, 7> enum_names<CaptureInstruction>{
    "mma_m16n8k16", "mma_m16n8k8", "mma_m16n8k32", "wgmma_m64n8k16", "wgmma_m64n8k32", "cublas", "function"};

/// Formats of a and b. A code of tf32 is a register's 32 bits, of which the lowest 13 are anything.
enum class CaptureInput : std::uint8_t { f16, bf16, tf32, f8_e4m3, f8_e5m2 };
template <>
inline constexpr std::array<std::string_view, 5> enum_names<CaptureInput>{"f16", "bf16", "tf32", "f8_e4m3",
                                                                          "f8_e5m2"};
[[nodiscard]] FloatFormat format_of(CaptureInput input);

/// How operands are made up; all from the counter-based generator, so that a capture holds results alone.
enum class CaptureNumbers : std::uint8_t {
  random_bits,  ///< every code: NaNs and infinities too
  wide,         ///< every finite exponent
  uniform,      ///< uniform in [-1, 1); c is zero
  zeros,        ///< zeros of either sign: rows of all +0, of all -0, and mixed
  tiny,         ///< products around the smallest number of the sum's format; c is a zero
  probes,       ///< 2^-25 and 2^-45 to 2^-48 of either sign, and zeros
  cancelling,   ///< two large products that cancel, and small ones that the alignment cuts
  specials      ///< one in eight infinite, NaN, largest or smallest; the others small integers
};
template <>
inline constexpr std::array<std::string_view, 8> enum_names<CaptureNumbers>{
    "random_bits", "wide", "uniform", "zeros", "tiny", "probes", "cancelling", "specials"};

/// Products of `rows` by `columns` outputs each, `depth` terms added up by instructions in ascending order.
struct CaptureSet {
  std::string_view name;
  CaptureInstruction instruction;
  CaptureInput input;
  DType sum;
  CaptureNumbers numbers;
  int depth;
  int tiles;
};

struct TileExtents {
  int rows;
  int columns;
  int terms;  ///< per instruction; of cuBLAS as mma.m16n8k16 would
};

[[nodiscard]] constexpr TileExtents extents_of(CaptureInstruction instruction) {
  switch (instruction) {
    case CaptureInstruction::mma_m16n8k8:
      return {16, 8, 8};
    case CaptureInstruction::mma_m16n8k32:
      return {16, 8, 32};
    case CaptureInstruction::wgmma_m64n8k16:
      return {64, 8, 16};
    case CaptureInstruction::wgmma_m64n8k32:
      return {64, 8, 32};
    case CaptureInstruction::cublas:
      return {128, 128, 16};
    default:
      return {16, 8, 16};
  }
}
[[nodiscard]] constexpr int outputs_of(const CaptureSet& set) {
  const TileExtents tile = extents_of(set.instruction);
  return tile.rows * tile.columns * set.tiles;
}

namespace detail {
using enum CaptureInstruction;
using enum CaptureNumbers;
inline constexpr auto in_f16 = CaptureInput::f16, in_bf16 = CaptureInput::bf16, in_tf32 = CaptureInput::tf32,
                      in_e4m3 = CaptureInput::f8_e4m3, in_e5m2 = CaptureInput::f8_e5m2;
inline constexpr auto to_f16 = DType::f16, to_f32 = DType::f32;
}  // namespace detail

/// One line per set. 8192 tiles of mma, or 2048 of wgmma, are 2^20 outputs.
inline constexpr std::array capture_sets{
    CaptureSet{"mma16_f16_f32_random", detail::mma_m16n8k16, detail::in_f16, detail::to_f32,
               detail::random_bits, 16, 8192},
    CaptureSet{"mma16_f16_f32_wide", detail::mma_m16n8k16, detail::in_f16, detail::to_f32, detail::wide, 16,
               8192},
    CaptureSet{"mma16_f16_f16_random", detail::mma_m16n8k16, detail::in_f16, detail::to_f16,
               detail::random_bits, 16, 8192},
    CaptureSet{"mma16_f16_f16_wide", detail::mma_m16n8k16, detail::in_f16, detail::to_f16, detail::wide, 16,
               8192},
    CaptureSet{"mma16_bf16_f32_random", detail::mma_m16n8k16, detail::in_bf16, detail::to_f32,
               detail::random_bits, 16, 8192},
    CaptureSet{"mma16_bf16_f32_wide", detail::mma_m16n8k16, detail::in_bf16, detail::to_f32, detail::wide, 16,
               8192},
    CaptureSet{"mma8_f16_f32_random", detail::mma_m16n8k8, detail::in_f16, detail::to_f32,
               detail::random_bits, 8, 8192},
    CaptureSet{"mma8_f16_f32_wide", detail::mma_m16n8k8, detail::in_f16, detail::to_f32, detail::wide, 8,
               8192},
    CaptureSet{"mma8_f16_f16_wide", detail::mma_m16n8k8, detail::in_f16, detail::to_f16, detail::wide, 8,
               8192},
    CaptureSet{"mma8_bf16_f32_wide", detail::mma_m16n8k8, detail::in_bf16, detail::to_f32, detail::wide, 8,
               8192},
    CaptureSet{"wgmma_f16_f32_random", detail::wgmma_m64n8k16, detail::in_f16, detail::to_f32,
               detail::random_bits, 16, 2048},
    CaptureSet{"wgmma_f16_f32_wide", detail::wgmma_m64n8k16, detail::in_f16, detail::to_f32, detail::wide, 16,
               2048},
    CaptureSet{"wgmma_f16_f16_random", detail::wgmma_m64n8k16, detail::in_f16, detail::to_f16,
               detail::random_bits, 16, 2048},
    CaptureSet{"wgmma_f16_f16_wide", detail::wgmma_m64n8k16, detail::in_f16, detail::to_f16, detail::wide, 16,
               2048},
    CaptureSet{"chain64_f16_f32", detail::mma_m16n8k16, detail::in_f16, detail::to_f32, detail::uniform, 64,
               512},
    CaptureSet{"chain512_f16_f32", detail::mma_m16n8k16, detail::in_f16, detail::to_f32, detail::uniform, 512,
               128},
    CaptureSet{"chain4096_f16_f32", detail::mma_m16n8k16, detail::in_f16, detail::to_f32, detail::uniform,
               4096, 32},
    CaptureSet{"chain4096_f16_f16", detail::mma_m16n8k16, detail::in_f16, detail::to_f16, detail::uniform,
               4096, 32},
    CaptureSet{"chain1024_wgmma", detail::wgmma_m64n8k16, detail::in_f16, detail::to_f32, detail::uniform,
               1024, 16},
    CaptureSet{"zeros_f16_f32", detail::mma_m16n8k16, detail::in_f16, detail::to_f32, detail::zeros, 16, 64},
    CaptureSet{"zeros_f16_f16", detail::mma_m16n8k16, detail::in_f16, detail::to_f16, detail::zeros, 16, 64},
    CaptureSet{"tiny_f16_f16", detail::mma_m16n8k16, detail::in_f16, detail::to_f16, detail::tiny, 16, 512},
    CaptureSet{"tiny_bf16_f32", detail::mma_m16n8k16, detail::in_bf16, detail::to_f32, detail::tiny, 16, 512},
    CaptureSet{"tiny_wgmma_f16_f16", detail::wgmma_m64n8k16, detail::in_f16, detail::to_f16, detail::tiny, 16,
               128},
    CaptureSet{"probes_f16_f16", detail::mma_m16n8k16, detail::in_f16, detail::to_f16, detail::probes, 16,
               64},
    CaptureSet{"probes_wgmma_f16_f16", detail::wgmma_m64n8k16, detail::in_f16, detail::to_f16, detail::probes,
               16, 16},
    CaptureSet{"cancelling_f16_f16", detail::mma_m16n8k16, detail::in_f16, detail::to_f16, detail::cancelling,
               16, 4096},
    CaptureSet{"cancelling_f16_f32", detail::mma_m16n8k16, detail::in_f16, detail::to_f32, detail::cancelling,
               16, 4096},
    CaptureSet{"specials_f16_f32", detail::mma_m16n8k16, detail::in_f16, detail::to_f32, detail::specials, 16,
               512},
    CaptureSet{"specials_f16_f16", detail::mma_m16n8k16, detail::in_f16, detail::to_f16, detail::specials, 16,
               512},
    CaptureSet{"specials_bf16_f32", detail::mma_m16n8k16, detail::in_bf16, detail::to_f32, detail::specials,
               16, 512},
    CaptureSet{"mma8_tf32_f32_random", detail::mma_m16n8k8, detail::in_tf32, detail::to_f32,
               detail::random_bits, 8, 2048},
    CaptureSet{"mma8_tf32_f32_wide", detail::mma_m16n8k8, detail::in_tf32, detail::to_f32, detail::wide, 8,
               2048},
    CaptureSet{"cancelling_tf32_f32", detail::mma_m16n8k8, detail::in_tf32, detail::to_f32,
               detail::cancelling, 8, 2048},
    CaptureSet{"chain512_tf32_f32", detail::mma_m16n8k8, detail::in_tf32, detail::to_f32, detail::uniform,
               512, 128},
    CaptureSet{"mma32_e4m3_f32_random", detail::mma_m16n8k32, detail::in_e4m3, detail::to_f32,
               detail::random_bits, 32, 2048},
    CaptureSet{"mma32_e4m3_f32_wide", detail::mma_m16n8k32, detail::in_e4m3, detail::to_f32, detail::wide, 32,
               2048},
    CaptureSet{"wgmma_e4m3_f32_random", detail::wgmma_m64n8k32, detail::in_e4m3, detail::to_f32,
               detail::random_bits, 32, 512},
    CaptureSet{"wgmma_e4m3_f32_wide", detail::wgmma_m64n8k32, detail::in_e4m3, detail::to_f32, detail::wide,
               32, 512},
    CaptureSet{"cancelling_wgmma_e4m3_f32", detail::wgmma_m64n8k32, detail::in_e4m3, detail::to_f32,
               detail::cancelling, 32, 512},
    CaptureSet{"mma32_e4m3_f16_random", detail::mma_m16n8k32, detail::in_e4m3, detail::to_f16,
               detail::random_bits, 32, 2048},
    CaptureSet{"mma32_e4m3_f16_wide", detail::mma_m16n8k32, detail::in_e4m3, detail::to_f16, detail::wide, 32,
               2048},
    CaptureSet{"wgmma_e4m3_f16_random", detail::wgmma_m64n8k32, detail::in_e4m3, detail::to_f16,
               detail::random_bits, 32, 512},
    CaptureSet{"wgmma_e4m3_f16_wide", detail::wgmma_m64n8k32, detail::in_e4m3, detail::to_f16, detail::wide,
               32, 512},
    CaptureSet{"cancelling_wgmma_e4m3_f16", detail::wgmma_m64n8k32, detail::in_e4m3, detail::to_f16,
               detail::cancelling, 32, 512},
    CaptureSet{"chain1024_wgmma_e4m3", detail::wgmma_m64n8k32, detail::in_e4m3, detail::to_f32,
               detail::uniform, 1024, 16},
    CaptureSet{"mma32_e5m2_f32_random", detail::mma_m16n8k32, detail::in_e5m2, detail::to_f32,
               detail::random_bits, 32, 2048},
    CaptureSet{"mma32_e5m2_f32_wide", detail::mma_m16n8k32, detail::in_e5m2, detail::to_f32, detail::wide, 32,
               2048},
    CaptureSet{"wgmma_e5m2_f32_random", detail::wgmma_m64n8k32, detail::in_e5m2, detail::to_f32,
               detail::random_bits, 32, 512},
    CaptureSet{"wgmma_e5m2_f32_wide", detail::wgmma_m64n8k32, detail::in_e5m2, detail::to_f32, detail::wide,
               32, 512},
    CaptureSet{"cancelling_wgmma_e5m2_f32", detail::wgmma_m64n8k32, detail::in_e5m2, detail::to_f32,
               detail::cancelling, 32, 512},
    CaptureSet{"mma32_e5m2_f16_random", detail::mma_m16n8k32, detail::in_e5m2, detail::to_f16,
               detail::random_bits, 32, 2048},
    CaptureSet{"mma32_e5m2_f16_wide", detail::mma_m16n8k32, detail::in_e5m2, detail::to_f16, detail::wide, 32,
               2048},
    CaptureSet{"wgmma_e5m2_f16_random", detail::wgmma_m64n8k32, detail::in_e5m2, detail::to_f16,
               detail::random_bits, 32, 512},
    CaptureSet{"wgmma_e5m2_f16_wide", detail::wgmma_m64n8k32, detail::in_e5m2, detail::to_f16, detail::wide,
               32, 512},
    CaptureSet{"cancelling_wgmma_e5m2_f16", detail::wgmma_m64n8k32, detail::in_e5m2, detail::to_f16,
               detail::cancelling, 32, 512},
    CaptureSet{"chain1024_wgmma_e5m2", detail::wgmma_m64n8k32, detail::in_e5m2, detail::to_f32,
               detail::uniform, 1024, 16},
    CaptureSet{"cublas64_f16_f32", detail::cublas, detail::in_f16, detail::to_f32, detail::uniform, 64, 1},
    CaptureSet{"cublas512_f16_f32", detail::cublas, detail::in_f16, detail::to_f32, detail::uniform, 512, 1},
    CaptureSet{"cublas4096_f16_f32", detail::cublas, detail::in_f16, detail::to_f32, detail::uniform, 4096,
               1},
    CaptureSet{"cublas4096_f16_f16", detail::cublas, detail::in_f16, detail::to_f16, detail::uniform, 4096,
               1},
};

/// A function of FP16 whose results for all 65,536 codes are captured.
struct CaptureFunction {
  std::string_view name;  ///< CUDA's
  double (*exact)(double);
  bool rounded;  ///< documented as the exact result rounded to nearest even
};
[[nodiscard]] const std::vector<CaptureFunction>& capture_functions();

/// The codes of one tile's operands: a (rows, depth), b (depth, columns) and c (rows, columns).
struct TileOperands {
  std::vector<std::uint32_t> a;
  std::vector<std::uint32_t> b;
  std::vector<std::uint32_t> c;
};
[[nodiscard]] TileOperands operands_of(const CaptureSet& set, int tile);

}  // namespace halfscope
