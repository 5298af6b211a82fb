// Proposals, samples and targets of a two-stage detector: cases worked out by hand, and counts.
#include "sim/models/detection/region_targets.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/models/detection/anchors.hpp"
#include "sim/models/detection/mask_head.hpp"
#include "sim/models/detection/proposals.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::region_targets_test {
namespace {

Box box(float top, float left, float bottom, float right) {
  return {.top = top, .left = left, .bottom = bottom, .right = right};
}

Box in_image(Box b, std::int32_t example, std::int32_t label) {
  b.example = example;
  b.label = label;
  return b;
}

bool same(const Box& a, const Box& b) {
  return a.top == b.top && a.left == b.left && a.bottom == b.bottom && a.right == b.right;
}

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("proposals are clipped, ranked and free of each other", "[detection]") {
  const std::vector<Box> anchors{box(-4, -4, 8, 8), box(10, 10, 20, 20), box(10, 11, 20, 21),
                                 box(40, 40, 50, 50), box(24, 24, 34, 34)};
  // The third overlaps the second by 9/11 and is worse; the fourth lies outside; of the last only 8 are
  // inside.
  const std::vector<float> logits{0, 1, 0, 3, 0, 2, 0, 9, 1, 0}, offsets(20);
  const auto found = propose(anchors, {logits, offsets}, {32, 32}, 10);
  REQUIRE(found.size() == 3);
  CHECK(same(found[0], box(10, 10, 20, 20)));
  CHECK(same(found[1], box(0, 0, 8, 8)));
  CHECK(same(found[2], box(24, 24, 32, 32)));
  CHECK(propose(anchors, {logits, offsets}, {32, 32}, 2).size() == 2);
}

TEST_CASE("predictions that are no numbers propose nothing, and the image stands in", "[detection]") {
  const std::vector<Box> anchors{box(0, 0, 8, 8), box(8, 8, 16, 16)};
  const std::vector<float> good(8);
  for (const float wrong : {not_a_number, infinity, -infinity}) {
    const auto all_wrong = propose(anchors, {std::vector<float>(4, wrong), good}, {32, 24}, 5);
    REQUIRE(all_wrong.size() == 1);
    CHECK(same(all_wrong[0], box(0, 0, 32, 24)));
    std::vector<float> offsets(8);
    offsets[0] = wrong;
    const auto one_left = propose(anchors, {std::vector<float>(4), offsets}, {32, 24}, 5);
    REQUIRE(one_left.size() == 1);
    CHECK(same(one_left[0], anchors[1]));
  }
}

TEST_CASE("anchors between the two overlaps are not sampled", "[detection]") {
  const std::vector<Box> anchors{box(0, 0, 10, 10), box(0, 4, 10, 14), box(0, 8, 10, 18),
                                 box(50, 50, 60, 60)};
  const std::vector<Box> objects{box(0, 0, 10, 10)};
  const SampleRule rule{.object_overlap = 0.6f, .background_overlap = 0.3f, .count = 8};
  // Overlaps 1, 6/14, 2/18 and 0.
  const auto samples = sample_anchors(anchors, objects, rule, {});
  REQUIRE(samples.size() == 3);
  CHECK(samples[0].place == 0);
  CHECK(samples[0].object == 0);
  CHECK(samples[1].place == 2);
  CHECK(samples[1].object == background);
  CHECK(samples[2].place == 3);
  // The best anchor stands for an object that it hardly overlaps; of proposals it is background.
  const std::vector<Box> corner{box(9, 9, 12, 12)};
  CHECK(sample_anchors(anchors, corner, rule, {})[1].object == 0);
  CHECK(sample_proposals(anchors, corner, rule, {})[1].object == background);
  const std::vector<Box> far_away{box(1e6f, 1e6f, 2e6f, 2e6f)};
  for (const Sample& sample : sample_anchors(anchors, far_away, rule, {})) CHECK(sample.object == background);
  CHECK(sample_anchors(anchors, {}, rule, {}).size() == 4);
}

TEST_CASE("samples are half objects at most, each once, and follow the stream", "[detection]") {
  const std::vector<Box> anchors = make_anchors(std::array{AnchorGrid{16, 16, 4, {20, 28, 36}}});
  std::vector<Box> objects;
  for (int i = 0; i < 9; ++i) {
    const auto top = static_cast<float>(i / 3 * 20), left = static_cast<float>(i % 3 * 20);
    objects.push_back(box(top, left, top + 24, left + 24));
  }
  const SampleRule rule{.object_overlap = 0.4f, .background_overlap = 0.3f, .count = 32};
  const auto places = [&](std::uint64_t seed, std::uint32_t step, std::uint64_t first) {
    const auto samples = sample_anchors(anchors, objects, rule, {RandomStream{seed, step}, first});
    CHECK(samples.size() == 32);
    CHECK(std::ranges::count(samples, background, &Sample::object) == 16);
    std::vector<std::int32_t> all;
    for (const Sample& sample : samples) {
      all.push_back(sample.place);
      if (sample.object == background) continue;
      const Box& object = objects[static_cast<std::size_t>(sample.object)];
      CHECK(intersection_over_union(anchors[static_cast<std::size_t>(sample.place)], object) >= 0.4f);
    }
    CHECK(std::ranges::is_sorted(all));
    CHECK(std::ranges::adjacent_find(all) == all.end());
    return all;
  };
  const auto drawn = places(1, 1, 0);
  CHECK(places(1, 1, 0) == drawn);
  CHECK(places(2, 1, 0) != drawn);
  CHECK(places(1, 2, 0) != drawn);
  CHECK(places(1, 1, 768) != drawn);
}

TEST_CASE("regions carry the class of what they show, and their objects stand among them", "[detection]") {
  const std::vector<std::vector<Box>> proposals{{box(0, 0, 10, 10), box(20, 20, 30, 30)}, {box(5, 5, 9, 9)}};
  const std::vector<Box> objects{in_image(box(0, 0, 10, 12), 0, 6)};
  const SampleRule rule{.count = 16};
  const RegionTargets sampled = sampled_regions(proposals, objects, rule, {});
  CHECK(sampled.labels == std::vector<std::int32_t>{7, 0, 7, 0});
  CHECK(sampled.matched == std::vector<std::int64_t>{0, 2});
  CHECK(sampled.boxes[3].example == 1);
  REQUIRE(sampled.offsets.shape() == Shape{2, 4});
  CHECK(sampled.offsets[1] == Approx(1.0 / 10 / 0.1));
  CHECK(sampled.offsets[3] == Approx(std::log(1.2) / 0.2));
  CHECK(sampled.offsets[4] == 0);
  const RegionTargets all = all_regions(proposals, objects);
  CHECK(all.labels == std::vector<std::int32_t>{7, 0, 0});
  CHECK(all.matched == std::vector<std::int64_t>{0});
  CHECK(all_regions(proposals, {}).offsets.shape() == Shape{0, 4});
}

TEST_CASE("anchors of every image of a batch are sampled", "[detection]") {
  const std::vector<Box> anchors{box(0, 0, 4, 4), box(8, 8, 12, 12)};
  const std::vector<Box> objects{in_image(box(8, 8, 12, 13), 1, 3)};
  const SampleRule rule{.object_overlap = 0.6f, .background_overlap = 0.3f, .count = 4};
  const AnchorSamples samples = sampled_anchors(anchors, objects, 3, rule, {});
  CHECK(samples.rows == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5});
  CHECK(samples.labels == std::vector<std::int32_t>{0, 0, 0, 1, 0, 0});
  CHECK(samples.matched == std::vector<std::int64_t>{3});
  CHECK(samples.offsets[3] == Approx(std::log(1.25) / 0.2));
}

TEST_CASE("boxes become the cells that they reach into", "[detection]") {
  const std::vector<Box> boxes{box(0, 0, 16, 8),        box(3.9f, 4, 4.1f, 12.1f),
                               box(100, 100, 120, 120), box(-9, -9, -3, 1e30f),
                               box(5, 5, 5, 5),         box(not_a_number, not_a_number, infinity, -infinity)};
  const auto cells = cells_of(boxes, 4, {4, 5});
  const auto is = [](const Region& r, std::int32_t top, std::int32_t left, std::int32_t bottom,
                     std::int32_t right) {
    return r.top == top && r.left == left && r.bottom == bottom && r.right == right;
  };
  CHECK(is(cells[0], 0, 0, 4, 2));
  CHECK(is(cells[1], 0, 1, 2, 4));
  CHECK(is(cells[2], 3, 4, 4, 5));
  CHECK(is(cells[3], 0, 0, 1, 5));
  CHECK(is(cells[4], 1, 1, 2, 2));
  CHECK(is(cells[5], 0, 0, 4, 1));
}

TEST_CASE("a box's mask has the label of the pixel in the middle of each cell", "[detection]") {
  // The second of two images of 4x6; its object has label 3, beside one with label 2.
  std::vector<std::int32_t> labels(24, 3);
  for (const std::int32_t label : {0, 0, 0, 0, 0, 0,  //
                                   0, 3, 3, 2, 0, 0,  //
                                   0, 3, 3, 2, 0, 0,  //
                                   0, 3, 0, 0, 0, 3})
    labels.push_back(label);
  const PixelLabels pixels{labels, 4, 6};
  // Cells of 1.5 pixels: their middles are 0.75 and 2.25 down, and as many behind column 1 across.
  CHECK(mask_of_box(in_image(box(1, 1, 4, 4), 1, 2), 3, pixels, 2) == std::vector<float>{1, 0, 1, 0});
  CHECK(mask_of_box(in_image(box(1, 1, 4, 4), 1, 1), 2, pixels, 2) == std::vector<float>{0, 1, 0, 0});
  CHECK(mask_of_box(in_image(box(0, 0, 4, 6), 1, 2), 3, pixels, 1) == std::vector<float>{0});
  CHECK(mask_of_box(in_image(box(0, 0, 4, 6), 0, 2), 3, pixels, 1) == std::vector<float>{1});
  // Beyond the image the nearest pixel counts; what is no number is at its edge.
  CHECK(mask_of_box(in_image(box(2, 4, infinity, 900), 1, 2), 3, pixels, 1) == std::vector<float>{1});
  CHECK(mask_of_box(in_image(box(not_a_number, 1, 4, 2), 1, 2), 3, pixels, 1) == std::vector<float>{0});
}

}  // namespace
}  // namespace halfscope::region_targets_test
