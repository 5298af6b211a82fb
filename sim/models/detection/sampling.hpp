// Samples of what a two-stage detector learns from: some anchors and some regions of each image.
#pragma once

#include <span>
#include <vector>

#include <halfscope/core/random.hpp>

#include "sim/models/detection/box.hpp"

namespace halfscope {

/// When a box stands for an object that it overlaps, and how many boxes are sampled.
struct SampleRule {
  float object_overlap = 0.5f;      ///< with the object that it overlaps most, at least
  float background_overlap = 0.5f;  ///< with any object, below
  std::size_t count = 0;            ///< at most, half of them objects at most
};

/// A sampled box: its place among the boxes, and the object that it stands for.
struct Sample {
  std::int32_t place = 0;
  std::int32_t object = 0;  ///< its place among the objects; `background` where it stands for none
};
inline constexpr std::int32_t background = -1;

/// Samples, in ascending order of their places. Which of too many are taken is a function of
/// the `stream` and of the place of a box plus `first` alone.
struct SampleStream {
  RandomStream stream;
  std::uint64_t first = 0;
};

/// Samples `anchors`: an object's best anchor stands for it, whatever they overlap by above 0.
[[nodiscard]] std::vector<Sample> sample_anchors(std::span<const Box> anchors, std::span<const Box> objects,
                                                 const SampleRule& rule, const SampleStream& random);

/// Samples `proposals`, in the same way but without that: what overlaps no object enough is background.
[[nodiscard]] std::vector<Sample> sample_proposals(std::span<const Box> proposals,
                                                   std::span<const Box> objects, const SampleRule& rule,
                                                   const SampleStream& random);

}  // namespace halfscope
