// Formats whose elements share a scale by blocks: MXFP8, MXFP4, NVFP4, FP8 in blocks of 128, as values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <halfscope/core/names.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope {

/// Storage of a block's scale.
enum class ScaleFormat : std::uint8_t {
  e8m0,   ///< a power of two, 2^(code - 127); the last code is NaN
  ue4m3,  ///< E4M3 without its sign
  fp32,   ///< the bits of a float
};
template <>
inline constexpr std::array<std::string_view, 3> enum_names<ScaleFormat>{"e8m0", "ue4m3", "fp32"};

/// Factor that all blocks of a tensor share beside their own scales.
enum class TensorScale : std::uint8_t {
  none,
  fp32,  ///< a float, made of the tensor's largest magnitude
};
template <>
inline constexpr std::array<std::string_view, 2> enum_names<TensorScale>{"none", "fp32"};

/// How an element is brought to the block's scale, in one FP32 rounding.
enum class ScaleStep : std::uint8_t { multiply, divide };

/// Result of -0, and of a product that is -0 in FP32.
enum class ZeroSign : std::uint8_t { kept, dropped };

/// Measure by which one of two scales is the better.
enum class ScaleChoice : std::uint8_t {
  single,    ///< there is one scale
  absolute,  ///< the smaller sum of absolute errors
  square,    ///< the smaller sum of squared errors
};

/// A rule's numbers for a tensor. `scale` is what a file holds; `factor` is what the rule computes with.
struct TensorFactors {
  float scale = 1;
  float factor = 1;
};

/// Input of a rule for scales: the largest magnitude of the block's numbers, and whether a NaN is among
/// them, for elements of `element` in a tensor with these factors.
struct BlockMaximum {
  float amax = 0;
  bool has_nan = false;
  FloatFormat element{};
  TensorFactors tensor{};
};

/// A block's scale. An element q of the block is worth q * value, times the tensor's scale.
struct BlockScale {
  std::uint32_t code = 0;  ///< code in the scale format
  float value = 1;
  float factor = 1;  ///< multiplies or divides the elements
};
/// One scale, or two of which the better one is taken; the first one where they are equally good.
struct BlockScales {
  BlockScale first{};
  BlockScale second{};
};

/// How the scale of a block follows from its largest magnitude.
struct ScaleRule {
  std::string_view name;
  ScaleFormat scale;
  std::string_view summary;
  BlockScales (*scales)(const BlockMaximum& block);
  TensorFactors (*tensor)(float tensor_amax) = nullptr;  ///< none: the rule has no tensor scale
  ScaleStep step = ScaleStep::multiply;
  ZeroSign zero = ZeroSign::kept;
  ScaleChoice choice = ScaleChoice::single;
  float error_denominator = 0;  ///< the choice's: 6 times the largest scale
};

// The rules. E8M0, OCP MX 1.0, 6.3, and those who round otherwise; a NaN or an infinity makes the block NaN,
// and a block of zeros has the least scale.
[[nodiscard]] BlockScales scales_floor(const BlockMaximum& block);
[[nodiscard]] BlockScales scales_ceil(const BlockMaximum& block);
[[nodiscard]] BlockScales scales_even(const BlockMaximum& block);
[[nodiscard]] BlockScales scales_rceil(const BlockMaximum& block);
[[nodiscard]] BlockScales scales_nearest(const BlockMaximum& block);
// FP32, of amax / max in FP32. A NaN makes the scale NaN, except with TransformerEngine's, which leaves it
// out.
[[nodiscard]] BlockScales scales_deepseek(const BlockMaximum& block);
[[nodiscard]] BlockScales scales_deepgemm(const BlockMaximum& block);
[[nodiscard]] BlockScales scales_deepgemm_ue8m0(const BlockMaximum& block);
[[nodiscard]] BlockScales scales_te(const BlockMaximum& block);
[[nodiscard]] BlockScales scales_te_pow2(const BlockMaximum& block);
// UE4M3 in a tensor with a scale, NVFP4. NaNs are left out of amax.
[[nodiscard]] BlockScales scales_nvfp4_te(const BlockMaximum& block);
[[nodiscard]] TensorFactors tensor_nvfp4_te(float tensor_amax);
[[nodiscard]] BlockScales scales_te_head_room(const BlockMaximum& block);
[[nodiscard]] TensorFactors tensor_te_head_room(float tensor_amax);
[[nodiscard]] BlockScales scales_four_over_six(const BlockMaximum& block);
[[nodiscard]] TensorFactors tensor_four_over_six_448(float tensor_amax);
[[nodiscard]] TensorFactors tensor_four_over_six_256(float tensor_amax);
[[nodiscard]] BlockScales scales_torchao(const BlockMaximum& block);
[[nodiscard]] TensorFactors tensor_torchao(float tensor_amax);
[[nodiscard]] BlockScales scales_modelopt(const BlockMaximum& block);
[[nodiscard]] TensorFactors tensor_modelopt(float tensor_amax);

/// One line per rule; the first one of a scale format is what its blocks have unless they are given another.
inline constexpr std::array scale_rules{
    ScaleRule{"rceil", ScaleFormat::e8m0, "amax / max up to a power of two: nothing clips (cuBLAS, TE)",
              scales_rceil},
    ScaleRule{"floor", ScaleFormat::e8m0, "OCP MX 1.0: the binade of amax; may clip", scales_floor},
    ScaleRule{"ceil", ScaleFormat::e8m0, "amax up to a power of two; wastes a binade", scales_ceil},
    ScaleRule{"even", ScaleFormat::e8m0, "the binade of amax rounded to the element's bits; may clip",
              scales_even},
    ScaleRule{"nearest", ScaleFormat::e8m0, "amax / max to the nearest power of two; clips half the blocks",
              scales_nearest},
    ScaleRule{"deepgemm", ScaleFormat::fp32, "amax / 448 with amax at least 1e-4 (DeepGEMM)",
              scales_deepgemm},
    ScaleRule{"deepgemm_ue8m0", ScaleFormat::fp32, "the same up to a power of two", scales_deepgemm_ue8m0},
    ScaleRule{"deepseek", ScaleFormat::fp32, "amax / 448 (DeepSeek-V3); a block of zeros becomes NaN",
              scales_deepseek, nullptr, ScaleStep::divide},
    ScaleRule{"te", ScaleFormat::fp32, "1 / (448 / amax) (TransformerEngine)", scales_te},
    ScaleRule{"te_pow2", ScaleFormat::fp32, "the same to a power of two, TransformerEngine's default",
              scales_te_pow2},
    ScaleRule{"te", ScaleFormat::ue4m3, "amax / 6 to the nearest, NVFP4 of TransformerEngine; may clip",
              scales_nvfp4_te, tensor_nvfp4_te, ScaleStep::multiply, ZeroSign::dropped},
    ScaleRule{"te_head_room", ScaleFormat::ue4m3,
              "scales of 17/16 of TransformerEngine's: no rounding of a normal scale clips (Quartet II)",
              scales_te_head_room, tensor_te_head_room, ScaleStep::multiply, ZeroSign::dropped},
    ScaleRule{"torchao", ScaleFormat::ue4m3, "NVFP4 of torchao: least scale 2^-6", scales_torchao,
              tensor_torchao},
    ScaleRule{"modelopt", ScaleFormat::ue4m3, "NVFP4 of ModelOpt: least scale 2^-9", scales_modelopt,
              tensor_modelopt, ScaleStep::divide, ZeroSign::dropped},
    ScaleRule{"four_over_six_mae_256", ScaleFormat::ue4m3,
              "amax to 4 or 6, the smaller absolute error; largest scale 256", scales_four_over_six,
              tensor_four_over_six_256, ScaleStep::multiply, ZeroSign::dropped, ScaleChoice::absolute,
              6 * 256},
    ScaleRule{"four_over_six_mse_256", ScaleFormat::ue4m3,
              "amax to 4 or 6, the smaller squared error; largest scale 256", scales_four_over_six,
              tensor_four_over_six_256, ScaleStep::multiply, ZeroSign::dropped, ScaleChoice::square, 6 * 256},
    ScaleRule{"four_over_six_mae_448", ScaleFormat::ue4m3,
              "amax to 4 or 6, the smaller absolute error; largest scale 448", scales_four_over_six,
              tensor_four_over_six_448, ScaleStep::multiply, ZeroSign::dropped, ScaleChoice::absolute,
              6 * 448},
    ScaleRule{"four_over_six_mse_448", ScaleFormat::ue4m3,
              "amax to 4 or 6, the smaller squared error; largest scale 448", scales_four_over_six,
              tensor_four_over_six_448, ScaleStep::multiply, ZeroSign::dropped, ScaleChoice::square, 6 * 448},
};

/// The rule of these; throws InvalidArgument with the rules of the scale format.
[[nodiscard]] const ScaleRule& find_scale_rule(std::string_view name, ScaleFormat scale);

/// Rows and columns of a block; blocks run along the last axis.
struct BlockShape {
  int rows = 1;
  int columns = 32;

  friend constexpr bool operator==(const BlockShape&, const BlockShape&) = default;
  [[nodiscard]] constexpr int size() const { return rows * columns; }
};

/// A value: comparable, printable and parseable. Elements saturate.
struct BlockFormat {
  Quantizer element{.format = fp8_e4m3, .overflow = Overflow::saturate};
  BlockShape block{};
  const ScaleRule* rule = &scale_rules.front();
  TensorScale tensor_scale = TensorScale::none;

  friend constexpr bool operator==(const BlockFormat&, const BlockFormat&) = default;
  [[nodiscard]] constexpr ScaleFormat scale() const { return rule->scale; }
};

struct NamedBlockFormat {
  std::string_view name;
  BlockFormat format;
  std::string_view summary;
};

namespace detail {
constexpr BlockFormat named_block(const FloatFormat& element, BlockShape block, ScaleFormat scale) {
  const ScaleRule* rule = scale_rules.data();
  while (rule->scale != scale) ++rule;
  return {{.format = element, .overflow = Overflow::saturate},
          block,
          rule,
          scale == ScaleFormat::ue4m3 ? TensorScale::fp32 : TensorScale::none};
}
}  // namespace detail

inline constexpr std::array block_formats{
    NamedBlockFormat{"mxfp8_e4m3", detail::named_block(fp8_e4m3, {1, 32}, ScaleFormat::e8m0),
                     "OCP MX: E4M3 in blocks of 32, power-of-two scales"},
    NamedBlockFormat{"mxfp8_e5m2", detail::named_block(fp8_e5m2, {1, 32}, ScaleFormat::e8m0),
                     "OCP MX: E5M2 in blocks of 32"},
    NamedBlockFormat{"mxfp6_e3m2", detail::named_block(fp6_e3m2, {1, 32}, ScaleFormat::e8m0),
                     "OCP MX: E3M2 in blocks of 32"},
    NamedBlockFormat{"mxfp6_e2m3", detail::named_block(fp6_e2m3, {1, 32}, ScaleFormat::e8m0),
                     "OCP MX: E2M3 in blocks of 32"},
    NamedBlockFormat{"mxfp4", detail::named_block(fp4_e2m1, {1, 32}, ScaleFormat::e8m0),
                     "OCP MX: E2M1 in blocks of 32"},
    NamedBlockFormat{"nvfp4", detail::named_block(fp4_e2m1, {1, 16}, ScaleFormat::ue4m3),
                     "NVIDIA: E2M1 in blocks of 16, E4M3 scales, an FP32 scale for the tensor"},
    NamedBlockFormat{"nvfp4_16x16", detail::named_block(fp4_e2m1, {16, 16}, ScaleFormat::ue4m3),
                     "the same in tiles of 16 x 16, as weights have it"},
    NamedBlockFormat{"fp8_1x128", detail::named_block(fp8_e4m3, {1, 128}, ScaleFormat::fp32),
                     "DeepSeek-V3's activations: E4M3 in blocks of 128, FP32 scales"},
    NamedBlockFormat{"fp8_128x128", detail::named_block(fp8_e4m3, {128, 128}, ScaleFormat::fp32),
                     "DeepSeek-V3's weights: E4M3 in tiles of 128 x 128, FP32 scales"},
};

/// "mxfp4", "mxfp4/floor", "nvfp4/torchao/stochastic(8)", "block(fp8_e4m3, 1x32, e8m0/rceil)", the last with
/// ", fp32" for a tensor scale.
[[nodiscard]] std::string to_string(const BlockFormat& format);
/// "NAME[/RULE][/ROUNDING]" or "block(ELEMENT[/ROUNDING], ROWSxCOLUMNS, SCALE/RULE[, fp32])". Throws
/// InvalidArgument that names what would be right.
[[nodiscard]] BlockFormat parse_block_format(std::string_view text);
/// Whether `text` names a block format, rightly or wrongly, and not a format without blocks.
[[nodiscard]] bool is_block_format_name(std::string_view text);

/// The number of a scale's code.
[[nodiscard]] float decode_scale(std::uint32_t code, ScaleFormat scale);

}  // namespace halfscope
