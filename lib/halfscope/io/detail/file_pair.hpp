// Two tensors of one shape, in one file or two, read beside each other.
#pragma once

#include <algorithm>
#include <vector>

#include <halfscope/io/detail/tensor_parts.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// Elements of each file that are in memory at a time.
constexpr std::int64_t pair_block = std::int64_t{1} << 16;
/// Elements of a tensor that is held in memory, since its file has them in another order than the other file.
constexpr std::int64_t most_reordered = std::int64_t{1} << 29;

/// A tensor and its partner, element by element, whatever the order in which their files have them.
class TensorPair {
 public:
  /// Throws InvalidArgument where the files have them in different orders, and the one to be reordered has
  /// more than `most_reordered` elements.
  TensorPair(const TensorInFile& one, const TensorInFile& other);

  /// Parts in which both can be read: 16 blocks where both are read at any place.
  [[nodiscard]] std::vector<TensorPart> parts() const;

  /// Calls take(a, b) with the elements of `part` of both tensors, up to `pair_block` of them at a time.
  template <typename Take>
  void read(const TensorPart& part, Take&& take) const {
    std::vector<float> a, b;
    for (std::int64_t done = 0; done < part.count; done += pair_block) {
      const std::int64_t count = std::min(pair_block, part.count - done);
      take(one_.range(part.first + done, count, a), other_.range(part.first + done, count, b));
    }
  }

 private:
  class Side {
   public:
    explicit Side(const TensorInFile& from) : from_(from) {}
    [[nodiscard]] const StoredTensor& tensor() const { return from_.tensor(); }
    /// From now on the elements come in the order of the shape.
    void reorder();
    [[nodiscard]] bool is_read_anywhere() const {
      return !in_order_.empty() || tensor().access == Access::random;
    }
    /// The elements [first, first + count); `buffer` is theirs where the file is read.
    [[nodiscard]] std::span<const float> range(std::int64_t first, std::int64_t count,
                                               std::vector<float>& buffer) const;

   private:
    TensorInFile from_;
    std::vector<float> in_order_;
  };

  Side one_, other_;
};

}  // namespace halfscope
