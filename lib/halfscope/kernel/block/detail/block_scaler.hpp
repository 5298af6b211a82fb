// Scales of many blocks by a format's rule.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <halfscope/format/block_format.hpp>
#include <halfscope/format/detail/ue4m3_steps.hpp>
#include <halfscope/kernel/block/detail/maxima.hpp>

namespace halfscope::detail {

/// The code of an E8M0 scale by the bits of a largest magnitude. It grows by at most one within a binade.
struct E8m0Steps {
  struct Binade {
    std::uint32_t code = 0;    ///< code of its first number
    std::uint32_t next = ~0u;  ///< bits of the first number whose code is one larger
  };
  std::array<Binade, 256> binades{};     ///< by exponent field; the last one is of infinity and NaNs
  std::array<BlockScale, 256> scales{};  ///< by code

  [[nodiscard]] const BlockScale& of(std::uint32_t magnitude) const {
    const Binade& binade = binades[magnitude >> 23];
    return scales[binade.code + (magnitude >= binade.next ? 1u : 0u)];
  }
};

/// Scales of largest magnitudes by a format's rule, bit for bit, from tables if there are any.
class BlockScaler {
 public:
  BlockScaler(const BlockFormat& format, const TensorFactors& tensor);

  /// to[i] is the scale of a block with these maxima, under a rule that does not choose one of two.
  void scale(std::span<const BlockMaxima> blocks, std::span<BlockScale> to) const;

  /// Whether blocks with these maxima and scales are those of an OrdinaryRow.
  [[nodiscard]] bool are_ordinary(std::span<const BlockMaxima> blocks,
                                  std::span<const BlockScale> scales) const;

 private:
  void scale_by_quotients(std::span<const BlockMaxima> blocks, std::span<BlockScale> to) const;

  const ScaleRule* rule_;
  FloatFormat element_;
  TensorFactors tensor_;
  const E8m0Steps* e8m0_ = nullptr;        ///< for E8M0 scales that the table can hold
  std::optional<Ue4m3Steps> ue4m3_{};      ///< for UE4M3 scales
  std::array<BlockScale, 128> by_code_{};  ///< UE4M3 scales by code
  /// The first code whose scale is not ordinary, if it is NaN's; 0 where others are not, or may not be.
  std::uint32_t ordinary_codes_ = 0;
};

}  // namespace halfscope::detail
