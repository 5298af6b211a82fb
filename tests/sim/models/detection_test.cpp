// A detector's geometry, matching, suppression and AP50: cases worked out by hand, and naive references.
#include <algorithm>
#include <cmath>
#include <set>

#include "sim/models/detection/anchors.hpp"
#include "sim/models/detection/average_precision.hpp"
#include "sim/models/detection/matching.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::detection_test {
namespace {

Box box(float top, float left, float bottom, float right) {
  return {.top = top, .left = left, .bottom = bottom, .right = right};
}

Box in_image(Box b, std::int32_t example, std::int32_t label) {
  b.example = example;
  b.label = label;
  return b;
}

/// Squares of side 4 to 12 in 32x32, in 3 images and 2 classes.
std::vector<Box> random_boxes(std::size_t count, std::uint64_t seed) {
  const std::vector<float> u = uniform_floats(count * 4, 0, 1, seed);
  std::vector<Box> boxes;
  for (std::size_t i = 0; i < count; ++i) {
    const float side = 4 + 8 * u[4 * i], top = 20 * u[4 * i + 1], left = 20 * u[4 * i + 2];
    boxes.push_back(in_image(box(top, left, top + side, left + side),
                             static_cast<std::int32_t>(u[4 * i + 3] * 3), static_cast<std::int32_t>(i % 2)));
  }
  return boxes;
}

/// `count` detections; every third one has the score of another.
std::vector<Detection> random_detections(std::size_t count, std::uint64_t seed) {
  std::vector<Detection> detections;
  for (const Box& b : random_boxes(count, seed)) {
    const auto place = static_cast<std::uint64_t>(detections.size());
    detections.push_back({b, RandomStream{seed, 1}.uniform(place % 3 == 0 ? 0 : place)});
  }
  return detections;
}

TEST_CASE("overlaps of boxes", "[detection]") {
  const Box square = box(0, 0, 4, 4);
  CHECK(intersection_over_union(square, square) == 1);
  CHECK(intersection_over_union(square, box(2, 2, 6, 6)) == Approx(4.0 / 28));
  CHECK(intersection_over_union(square, box(1, 1, 3, 3)) == Approx(4.0 / 16));
  CHECK(intersection_over_union(square, box(0, 4, 4, 8)) == 0);
  CHECK(intersection_over_union(square, box(9, 9, 12, 12)) == 0);
  CHECK(intersection_over_union(box(3, 3, 3, 3), box(3, 3, 3, 3)) == 0);
  CHECK(intersection_over_union(box(4, 4, 0, 0), square) == 0);
}

TEST_CASE("boxes are encoded relative to anchors and decoded back", "[detection]") {
  const Box anchor = box(10, 20, 30, 60);
  const BoxOffsets offsets = encode_box(box(15, 20, 35, 100), anchor);
  CHECK(offsets[0] == Approx(5.0 / 20 / 0.1));
  CHECK(offsets[1] == Approx(20.0 / 40 / 0.1));
  CHECK(offsets[2] == Approx(0).margin(1e-6));
  CHECK(offsets[3] == Approx(std::log(2.0) / 0.2));
  for (const Box& b : random_boxes(200, 3)) {
    const Box back = decode_box(encode_box(b, anchor), anchor);
    CHECK(back.top == Approx(b.top).margin(1e-4));
    CHECK(back.left == Approx(b.left).margin(1e-4));
    CHECK(back.bottom == Approx(b.bottom).margin(1e-4));
    CHECK(back.right == Approx(b.right).margin(1e-4));
  }
  const Box huge = decode_box({0, 0, 1e30f, 1e30f}, anchor);
  CHECK(huge.bottom - huge.top == Approx(20'000));
}

TEST_CASE("anchors are centred on their cells, grid by grid", "[detection]") {
  const std::array grids{AnchorGrid{1, 2, 4, {2, 4, 6}}, AnchorGrid{1, 1, 8, {8, 10, 12}}};
  const std::vector<Box> anchors = make_anchors(grids);
  REQUIRE(anchors.size() == 9);
  const auto same = [](const Box& a, const Box& b) {
    return a.top == b.top && a.left == b.left && a.bottom == b.bottom && a.right == b.right;
  };
  CHECK(same(anchors[0], box(1, 1, 3, 3)));
  CHECK(same(anchors[2], box(-1, -1, 5, 5)));
  CHECK(same(anchors[4], box(0, 4, 4, 8)));
  CHECK(same(anchors[6], box(0, 0, 8, 8)));
}

TEST_CASE("anchors match the box that they overlap most, and every box gets its best", "[detection]") {
  const std::vector<Box> anchors{box(0, 0, 4, 4), box(0, 1, 4, 5), box(20, 20, 24, 24), box(40, 40, 44, 44)};
  // The first box is the first anchor; the second is nearer to the second anchor; the third touches only the
  // third.
  const std::vector<Box> boxes{box(0, 0, 4, 4), box(0, 1.2f, 4, 5.2f), box(23, 23, 27, 27)};
  CHECK(match_anchors(anchors, boxes) == std::vector<std::int32_t>{0, 1, 2, unmatched});
  CHECK(match_anchors(anchors, {}) == std::vector<std::int32_t>(4, unmatched));
  // A box that touches no anchor is nobody's; one exactly at 0.5 is matched.
  const std::vector<Box> apart{box(100, 100, 104, 104)}, half{box(0, 0, 2, 4), box(0, 0, 4, 4)};
  CHECK(match_anchors(anchors, apart) == std::vector<std::int32_t>(4, unmatched));
  // Both boxes have the first anchor as their best: the later one gets it.
  CHECK(match_anchors(std::span(anchors).first(1), half) == std::vector<std::int32_t>{1});
  const std::vector<Box> only_half{box(0, 0, 2, 4)}, two{box(0, 0, 4, 4), box(0, 0, 2, 4)};
  CHECK(match_anchors(anchors, only_half) == std::vector<std::int32_t>{0, unmatched, unmatched, unmatched});
  CHECK(match_anchors(two, only_half) == std::vector<std::int32_t>{0, 0});
  CHECK(match_anchors({}, boxes).empty());
}

/// Every anchor with every box.
std::vector<std::int32_t> naive_match(std::span<const Box> anchors, std::span<const Box> boxes) {
  std::vector<std::int32_t> match(anchors.size(), unmatched);
  for (std::size_t a = 0; a < anchors.size(); ++a) {
    float most = 0;
    for (std::size_t b = 0; b < boxes.size(); ++b) {
      const float share = intersection_over_union(anchors[a], boxes[b]);
      if (share >= 0.5f && share > most) {
        most = share;
        match[a] = static_cast<std::int32_t>(b);
      }
    }
  }
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    const auto share = [&](const Box& anchor) { return intersection_over_union(anchor, boxes[b]); };
    const auto best = std::max_element(anchors.begin(), anchors.end(), [&](const Box& one, const Box& other) {
      return share(one) < share(other);
    });
    if (best != anchors.end() && share(*best) > 0) {
      match[static_cast<std::size_t>(best - anchors.begin())] = static_cast<std::int32_t>(b);
    }
  }
  return match;
}

TEST_CASE("anchors of a large image_size match as every anchor with every box does", "[detection]") {
  const std::vector<Box> anchors =
      make_anchors(std::array{AnchorGrid{40, 48, 4, {20, 24, 28}}, AnchorGrid{20, 24, 8, {24, 30, 36}}});
  const std::vector<float> u = uniform_floats(3 * 60, 0, 1, 5);
  std::vector<Box> boxes;
  for (std::size_t i = 0; i < 60; ++i) {
    const float side = 20 + 16 * u[3 * i], top = 180 * u[3 * i + 1] - 10, left = 210 * u[3 * i + 2] - 10;
    boxes.push_back(box(top, left, top + side, left + side));
  }
  for (const std::size_t count : {0u, 1u, 60u}) {
    const auto some = std::span(boxes).first(count);
    CHECK(match_anchors(anchors, some) == naive_match(anchors, some));
  }
}

TEST_CASE("targets follow the boxes of their image", "[detection]") {
  const std::vector<Box> anchors{box(0, 0, 4, 4), box(8, 8, 12, 12)};
  const std::vector<Box> boxes{in_image(box(8, 8, 12, 12), 0, 6), in_image(box(0, 0, 4, 4), 2, 0),
                               in_image(box(8, 8, 13, 12), 2, 9)};
  const AnchorTargets targets = assign_targets(anchors, boxes, 4);
  CHECK(targets.labels == std::vector<std::int32_t>{0, 7, 0, 0, 1, 10, 0, 0});
  CHECK(targets.matched == std::vector<std::int64_t>{1, 4, 5});
  REQUIRE(targets.offsets.shape() == Shape{3, 4});
  CHECK(targets.offsets[0] == 0);
  CHECK(targets.offsets[8] == Approx(0.5 / 4 / 0.1));
  CHECK(targets.offsets[10] == Approx(std::log(1.25) / 0.2));
  const AnchorTargets none = assign_targets(anchors, {}, 2);
  CHECK(none.labels == std::vector<std::int32_t>(4, 0));
  CHECK(none.offsets.shape() == Shape{0, 4});
}

/// Takes the best again and again and drops what overlaps it.
std::vector<Detection> naive_suppress(std::vector<Detection> rest, float most_overlap) {
  std::vector<Detection> kept;
  while (!rest.empty()) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < rest.size(); ++i)
      if (rest[i].score > rest[best].score) best = i;
    kept.push_back(rest[best]);
    std::vector<Detection> next;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const bool drop = intersection_over_union(rest[i].box, kept.back().box) > most_overlap;
      if (i != best && !drop) next.push_back(rest[i]);
    }
    rest = next;
  }
  return kept;
}

TEST_CASE("suppression keeps the best of those that overlap", "[detection]") {
  const std::vector<Detection> three{
      {box(0, 0, 4, 4), 0.5f}, {box(0, 1, 4, 5), 0.9f}, {box(0, 2, 4, 6), 0.4f}};
  // Neighbours overlap by 3/5, the outer two by 1/3: once the middle one is dropped nothing suppresses the
  // last.
  CHECK(suppress(three, 0.45f).size() == 1);
  CHECK(suppress({three[1], three[0]}, 0.45f).front().score == 0.9f);
  CHECK(suppress({three[0], three[2]}, 0.45f).size() == 2);
  CHECK(suppress(three, 0.6f).size() == 3);
  CHECK(suppress({}, 0.45f).empty());
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    const std::vector<Detection> all = random_detections(120, seed);
    const auto ours = suppress(all, 0.45f), expected = naive_suppress(all, 0.45f);
    REQUIRE(ours.size() == expected.size());
    CHECK(ours.size() < all.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      CHECK(ours[i].score == expected[i].score);
      CHECK(ours[i].box.top == expected[i].box.top);
    }
  }
}

/// Right detections among the first `count` of a ranking, each taking its box.
double naive_right(const std::vector<Detection>& ranked, std::size_t count, const std::vector<Box>& truth) {
  std::set<std::size_t> taken;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t best = truth.size();
    for (std::size_t t = 0; t < truth.size(); ++t) {
      const bool same = truth[t].example == ranked[i].box.example && truth[t].label == ranked[i].box.label;
      const float share = same && taken.count(t) == 0 ? intersection_over_union(truth[t], ranked[i].box) : 0;
      if (share >= 0.5f &&
          (best == truth.size() || share > intersection_over_union(truth[best], ranked[i].box)))
        best = t;
    }
    if (best < truth.size()) taken.insert(best);
  }
  return static_cast<double>(taken.size());
}

/// For each recall k / n the best precision of any prefix that finds at least k.
double naive_average_precision(std::vector<Detection> ranked, const std::vector<Box>& truth) {
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Detection& a, const Detection& b) { return a.score > b.score; });
  double sum = 0;
  for (std::size_t k = 1; k <= truth.size(); ++k) {
    double best = 0;
    for (std::size_t n = 1; n <= ranked.size(); ++n) {
      const double right = naive_right(ranked, n, truth);
      if (right >= static_cast<double>(k)) best = std::max(best, right / static_cast<double>(n));
    }
    sum += best;
  }
  return sum / static_cast<double>(truth.size());
}

TEST_CASE("AP50 by hand", "[detection]") {
  const std::vector<Box> truth{in_image(box(0, 0, 4, 4), 0, 0), in_image(box(8, 8, 12, 12), 0, 1),
                               in_image(box(0, 0, 4, 4), 1, 0)};
  const Detection right0{truth[0], 0.9f}, right1{truth[1], 0.5f}, right2{truth[2], 0.3f};
  const Detection twice{truth[0], 0.8f}, other_class{in_image(box(8, 8, 12, 12), 0, 0), 0.7f},
      other_image{in_image(box(8, 8, 12, 12), 1, 1), 0.6f}, off{in_image(box(0, 3, 4, 7), 1, 0), 0.95f};
  CHECK(average_precision_50({right2, right0, right1}, truth) == 1);
  CHECK(average_precision_50({}, truth) == 0);
  CHECK(average_precision_50({right0}, {}) == 0);
  CHECK(average_precision_50({right0, right1}, truth) == Approx(2.0 / 3));
  // Right, wrong, wrong, wrong, right, right: the best precision at recall 1/3 is 1, at 2/3 and 1 it is 3/6.
  CHECK(average_precision_50({right0, twice, other_class, other_image, right1, right2}, truth) ==
        Approx((1 + 0.5 + 0.5) / 3));
  CHECK(average_precision_50({off, right0}, truth) == Approx(0.5 / 3));
}

TEST_CASE("AP50 equals the naive definition", "[detection]") {
  for (std::uint64_t seed = 1; seed < 5; ++seed) {
    std::vector<Box> truth = random_boxes(12, seed);
    std::vector<Detection> detections = random_detections(30, seed + 50);
    // Some that are nearly right, so that there is something to find.
    for (std::size_t i = 0; i < truth.size(); i += 2) {
      Box near = truth[i];
      near.top += 0.5f;
      detections.push_back({near, RandomStream{seed, 2}.uniform(i)});
    }
    const double expected = naive_average_precision(detections, truth);
    CHECK(expected > 0.1);
    CHECK(expected < 0.9);
    CHECK(average_precision_50(detections, truth) == Approx(expected));
  }
}

}  // namespace
}  // namespace halfscope::detection_test
