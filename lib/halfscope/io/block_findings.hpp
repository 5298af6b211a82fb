// Counts of a quantized tensor's blocks by kind, and the sentences that say what to do about them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope {

/// Indices of damage that are kept, and of blocks that are only noted: most blocks of a sound tensor are.
inline constexpr std::size_t most_damage_indices = 16384, most_noted_indices = 8;

/// Blocks, or their scales, by ascending index of the scale in row-major order.
struct BlockList {
  std::size_t most = most_damage_indices;
  std::int64_t count = 0;
  std::vector<std::int64_t> indices{};  ///< the first `most`

  void add(std::int64_t block) {
    if (indices.size() < most) indices.push_back(block);
    ++count;
  }
  [[nodiscard]] std::int64_t left_out() const { return count - std::ssize(indices); }
};

/// A scale that multiplies or divides a whole tensor, besides the scales of its blocks.
struct WholeScale {
  std::string name;
  float value = 1;
  bool divides = false;

  /// Whether every number of the tensor has a value under it.
  [[nodiscard]] bool is_sound() const { return value > 0 && value <= 3.4028234663852886e38f; }
  [[nodiscard]] float factor() const { return divides ? 1 / value : value; }
};

/// Scales beside the codes that they multiply.
struct ScaleRelations {
  bool all_ones = false;    ///< every scale is 1
  bool are_powers = false;  ///< every scale is a power of two
  bool all_reach_largest =
      false;  ///< every block of more than three, but those of zeros, has the largest code
  float largest_code = 0;
  double largest_step = 1;  ///< factor from a scale to the power of two above it, at most
};

/// The state of a quantized tensor's blocks; a block is in as many lists as apply.
struct BlockFindings {
  std::string layout;  ///< "F8_E4M3 in blocks of 128 x 128, scales F32"
  std::int64_t blocks = 0;
  /// Blocks have codes of one type, of which at_largest and low tell; not so the blocks of GGUF.
  bool has_codes = true;
  BlockList zero_blocks{most_noted_indices};  ///< every value is zero
  BlockList nan_codes{};                      ///< a code is NaN or infinite
  BlockList nan_scales{};                     ///< NaN or infinite
  BlockList zero_scales{};                    ///< zero, over codes that are not
  BlockList negative_scales{};
  BlockList saturated_scales{};              ///< the largest finite number of their type
  BlockList at_largest{most_noted_indices};  ///< a code is the largest of its type
  BlockList low{most_noted_indices};         ///< the largest code is below half of the largest of its type
  /// Blocks of which a value of the original is beyond what their largest code stands for; where an original
  /// was given.
  std::optional<BlockList> clipped{};
  /// Beside the original: nonzero values of it that became zero, and all of them.
  std::optional<std::int64_t> flushed{};
  std::int64_t nonzero = 0;
  /// Factor by which the median block is larger than the original's, least squares in each; nothing without
  /// an original or without blocks of rows and columns.
  std::optional<double> growth{};
  /// Relations of scales and codes; all_ones and largest_code alone where the scales are of few bits, and
  /// nothing under a scale of the tensor other than 1.
  std::optional<ScaleRelations> relations{};
  /// A scale of the whole tensor. Under it the block of the largest value has the largest scale there is,
  /// which is no damage.
  std::optional<WholeScale> whole_scale{};
  /// The one FP32 scale of a tensor that has no others.
  std::optional<float> single_scale{};
};

struct BlockKind {
  const char *key, *heading;
  BlockList BlockFindings::*list;
  std::string_view damage, remedy;  ///< empty where nothing is lost
  int drop = 0;                     ///< a narrow table leaves out the column of the largest first
  bool is_of_codes = false;         ///< not there without BlockFindings::has_codes
  bool is_rare = false;             ///< a column only where a tensor has one
};
inline constexpr std::array block_kinds{
    BlockKind{"nan_codes", "NaN codes", &BlockFindings::nan_codes,
              "blocks have a code that is NaN or infinite", "after a look at the original"},
    BlockKind{"nan_scales", "NaN scales", &BlockFindings::nan_scales, "scales are NaN or infinite",
              "with a finite scale for blocks of zeros"},
    BlockKind{"zero_scales", "zero scales", &BlockFindings::zero_scales,
              "scales are 0 over codes that are not", "with scales that do not underflow"},
    BlockKind{"negative_scales", "negative", &BlockFindings::negative_scales, "scales are negative",
              "with positive scales", 0, false, true},
    BlockKind{"saturated_scales", "saturated", &BlockFindings::saturated_scales,
              "scales are the largest of their type", "with scales that do not saturate"},
    BlockKind{"zero_blocks", "zero blocks", &BlockFindings::zero_blocks, "", "", 2},
    BlockKind{"at_largest", "at largest code", &BlockFindings::at_largest, "", "", 3, true},
    BlockKind{"low", "below half", &BlockFindings::low, "", "", 1, true},
};

/// A quantized tensor's name and what was found.
struct NamedFindings {
  std::string name;
  const BlockFindings* findings = nullptr;
};

/// A sentence for each damage of each tensor and of tensors that a runtime fuses, or one that there is none:
/// what to do, and why. Notes follow, and how many quantized tensors are `unread`.
[[nodiscard]] std::vector<std::string> quantized_verdict(std::span<const NamedFindings> tensors,
                                                         std::size_t unread);

/// The first indices of a list: "0, 1, 2, ...".
[[nodiscard]] std::string first_indices(const BlockList& list);

}  // namespace halfscope
