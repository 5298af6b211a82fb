// Quantized tensors of a file: payload, scales and blocks put together by name and shape, read as numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <halfscope/io/file_updates.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// How quantized tensors are read.
enum class QuantizedView : std::uint8_t {
  values,   ///< payload times scales, under the name of the payload
  payload,  ///< payload and scales as tensors of their own
};

/// Rows and columns of DeepSeek's blocks, as the model's configuration states them.
struct WeightBlock {
  std::int64_t rows = 0, columns = 0;
};

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

/// The state of a quantized tensor's blocks; a block is in as many lists as apply.
struct BlockFindings {
  std::string layout;  ///< "F8_E4M3 in blocks of 128 x 128, scales F32"
  std::int64_t blocks = 0;
  BlockList zero_blocks{most_noted_indices};  ///< every code is zero
  BlockList nan_codes;                        ///< a code is NaN or infinite
  BlockList nan_scales;                       ///< NaN or infinite
  BlockList zero_scales;                      ///< zero, over codes that are not
  BlockList saturated_scales;                 ///< the largest finite number of their type
  BlockList at_largest{most_noted_indices};   ///< a code is the largest of its type: the block may clip
  BlockList low{most_noted_indices};          ///< the largest code is below half of the range, and not zero
  /// A value of the original lies beyond the largest code by more than half a step; nothing where no original
  /// was given.
  std::optional<BlockList> clipped{};
  /// A scale of the whole tensor multiplies those of the blocks: the block of the largest value then has the
  /// largest scale there is, which is no damage.
  bool has_tensor_scale = false;
};

/// A file whose quantized tensors are shown in one of the two views.
class QuantizedFile : public TensorFile {
 public:
  /// A line for each tensor that is left out, as its payload or its scales are not in the file, and for each
  /// whose scales have other blocks than were stated.
  [[nodiscard]] virtual const std::vector<std::string>& problems() const = 0;
  /// Whether tensor `index` is dequantized.
  [[nodiscard]] virtual bool has_blocks(std::size_t index) const = 0;
  /// Goes over all codes of tensor `index`, which has blocks, and over its `original`, where one is given.
  /// Throws InvalidArgument where a file turns out to be damaged.
  [[nodiscard]] virtual BlockFindings findings(std::size_t index,
                                               const std::optional<TensorInFile>& original) const = 0;
};

/// The file that has a tensor of that name, lacks its partner, and is not read together with this one; for
/// messages.
using FileBeside =
    std::function<std::optional<std::string>(const std::string& tensor, const std::string& partner)>;

struct QuantizedReading {
  QuantizedView view = QuantizedView::values;
  std::optional<WeightBlock> block{};  ///< block of `X_scale_inv`; without it blocks follow from the shapes
  FileBeside beside{};                 ///< asked for parts that the file lacks
};

/// Shows `file`, which `name` names in messages. Layouts: `X` with `X_scale_inv` or `X_scale` (per tensor,
/// per row or in blocks of rows and columns), besides `X_scale_2` for all of it; `X_blocks` (packed FP4, 32 a
/// block) with `X_scales`. U8 beside scales is packed FP4, as scales it is E8M0. Throws InvalidArgument where
/// scales do not fit their payload.
[[nodiscard]] std::unique_ptr<QuantizedFile> show_quantized(std::unique_ptr<TensorFile> file,
                                                            const std::string& name,
                                                            const QuantizedReading& reading = {});

}  // namespace halfscope
