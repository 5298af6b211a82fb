// A data set: examples with labels, in a train and a test split.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <halfscope/core/array.hpp>

namespace halfscope {

/// One minibatch, or any selection of examples.
struct Batch {
  Array inputs;                      // (batch, height, width, channel)
  std::vector<std::int32_t> labels;  // (batch)
};

enum class Split : std::uint8_t { train, test };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<Split>{"train", "test"};

class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Number of examples, at least 1.
  [[nodiscard]] virtual std::int64_t size(Split split) const = 0;
  /// (height, width, channel) of one example.
  [[nodiscard]] virtual Shape example_shape() const = 0;
  /// Labels are in [0, class_count).
  [[nodiscard]] virtual std::int64_t class_count() const = 0;
  /// The examples at `indices` of `split`, in that order. Throws RequestError for an index out of range.
  [[nodiscard]] virtual Batch batch(Split split, std::span<const std::int64_t> indices) const = 0;
};

}  // namespace halfscope
