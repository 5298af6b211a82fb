// Scenes: what they hold, that they are functions of their index alone, and what is refused.
#include "sim/data/scenes.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/data/datasets.hpp"
#include "tests/sim/data/idx_files.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::scenes_test {
namespace {

/// Items of 2x2 that are all one brightness: train 255 (classes 3 and 4), test 102 (class 7).
void put_items(const TemporaryFolder& folder) {
  folder.put("train-images-idx3-ubyte", idx_bytes({2, 2, 2}, std::string(8, '\xff')));
  folder.put("train-labels-idx1-ubyte", idx_bytes({2}, "\x03\x04"));
  folder.put("t10k-images-idx3-ubyte", idx_bytes({1, 2, 2}, std::string(4, '\x66')));
  folder.put("t10k-labels-idx1-ubyte", idx_bytes({1}, "\x07"));
}

std::vector<std::int64_t> range(std::int64_t count) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

bool inside(const Box& box, std::size_t pixel, std::size_t image_size) {
  const std::size_t y = pixel / image_size, x = pixel % image_size;
  const auto row = static_cast<float>(y), column = static_cast<float>(x);
  return row >= box.top && row < box.bottom && column >= box.left && column < box.right;
}

TEST_CASE("a scene shows its boxes, twice as bright, and noise", "[scenes]") {
  const TemporaryFolder folder;
  put_items(folder);
  const Scenes scenes({.data = folder.path(), .options = {{"image_size", 48}}}, "scenes");
  for (const auto& [split, brightness] : {std::pair{Split::train, 2.0}, std::pair{Split::test, 0.8}}) {
    const Batch batch = scenes.boxes(split, range(50));
    REQUIRE(batch.inputs.shape() == Shape{50, 48, 48, 1});
    CHECK(batch.labels.empty());
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
      const auto image = static_cast<std::int32_t>(i / (48 * 48));
      const bool covered = std::any_of(batch.boxes.begin(), batch.boxes.end(), [&](const Box& box) {
        return box.example == image && inside(box, i % (48 * 48), 48);
      });
      const double noise = static_cast<double>(batch.inputs[i]) - (covered ? brightness : 0);
      sum += noise;
      squares += noise * noise;
    }
    const auto count = static_cast<double>(batch.inputs.size());
    CHECK(sum / count == Approx(0).margin(0.002));
    CHECK(std::sqrt(squares / count) == Approx(0.1).epsilon(0.02));
  }
}

TEST_CASE("boxes are as the recipe says", "[scenes]") {
  const TemporaryFolder folder;
  put_items(folder);
  const auto data = open_dataset("detection_scenes", {.data = folder.path()});
  CHECK(data->size(Split::train) == 3000);
  CHECK(data->size(Split::test) == 200);
  CHECK(data->example_shape() == Shape{64, 64, 1});
  CHECK(data->class_count() == 10);
  const Batch batch = data->batch(Split::train, range(400));
  std::array<int, 4> scenes_with{};
  std::array<int, 37> with_side{};
  std::array<int, 10> with_label{};
  for (std::int32_t n = 0; n < 400; ++n) {
    std::vector<Box> boxes;
    for (const Box& box : batch.boxes)
      if (box.example == n) boxes.push_back(box);
    REQUIRE_FALSE(boxes.empty());
    REQUIRE(boxes.size() <= 3);
    ++scenes_with.at(boxes.size());
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      const Box& a = boxes[i];
      CHECK((a.top >= 0 && a.left >= 0 && a.bottom <= 64 && a.right <= 64));
      CHECK(a.bottom - a.top == a.right - a.left);
      ++with_side.at(static_cast<std::size_t>(a.bottom - a.top));
      ++with_label.at(static_cast<std::size_t>(a.label));
      for (std::size_t j = 0; j < i; ++j) {
        const Box& b = boxes[j];
        CHECK(std::min(std::min(a.bottom, b.bottom) - std::max(a.top, b.top),
                       std::min(a.right, b.right) - std::max(a.left, b.left)) <= 4);
      }
    }
  }
  for (std::size_t count = 1; count < 4; ++count) CHECK(scenes_with.at(count) > 40);
  for (std::size_t side = 0; side < with_side.size(); ++side) CHECK((with_side.at(side) > 0) == (side >= 20));
  CHECK(with_label[3] > 200);
  CHECK(with_label[4] > 200);
  CHECK(with_label[3] + with_label[4] == static_cast<int>(batch.boxes.size()));
  CHECK(std::is_sorted(batch.boxes.begin(), batch.boxes.end(),
                       [](const Box& a, const Box& b) { return a.example < b.example; }));
}

TEST_CASE("a larger image_size holds as many more items", "[scenes]") {
  const TemporaryFolder folder;
  put_items(folder);
  const auto boxes_at = [&](std::int64_t image_size) {
    return open_dataset("detection_scenes", {.data = folder.path(), .options = {{"image_size", image_size}}})
        ->batch(Split::train, range(60))
        .boxes;
  };
  const double usual = static_cast<double>(boxes_at(64).size());
  for (const std::int64_t times : {2, 4}) {
    const std::vector<Box> boxes = boxes_at(64 * times);
    // As dense as the usual one: somewhat denser, since fewer items are at an edge.
    CHECK(static_cast<double>(boxes.size()) > 0.95 * usual * static_cast<double>(times * times));
    CHECK(static_cast<double>(boxes.size()) < 1.25 * usual * static_cast<double>(times * times));
    for (std::int32_t n = 0; n < 60; ++n) {
      const auto count =
          std::count_if(boxes.begin(), boxes.end(), [&](const Box& b) { return b.example == n; });
      CHECK((count >= times * times && count <= 3 * times * times));
    }
  }
}

TEST_CASE("pixel labels are the class of what is brighter than 0.15", "[scenes]") {
  const TemporaryFolder folder;
  put_items(folder);
  const DatasetSpec spec{.data = folder.path(), .options = {{"image_size", 40}}};
  const auto data = open_dataset("segmentation_scenes", spec);
  CHECK(data->class_count() == 11);
  const auto indices = range(20);
  const Batch pixels = data->batch(Split::train, indices);
  const Batch boxes = open_dataset("detection_scenes", spec)->batch(Split::train, indices);
  CHECK(std::equal(pixels.inputs.values().begin(), pixels.inputs.values().end(), boxes.inputs.data()));
  REQUIRE(pixels.labels.size() == 20 * 40 * 40);
  CHECK(pixels.boxes.empty());
  for (std::size_t i = 0; i < pixels.labels.size(); ++i) {
    std::int32_t expected = 0;
    for (const Box& box : boxes.boxes) {
      const bool here = box.example == static_cast<std::int32_t>(i / 1600) && inside(box, i % 1600, 40);
      if (here && expected == 0) expected = box.label + 1;  // as bright as a later one, so the first stays
    }
    REQUIRE(pixels.labels[i] == expected);
  }
  // Items of brightness 0.149 are there, but no label is.
  folder.put("t10k-images-idx3-ubyte", idx_bytes({1, 2, 2}, std::string(4, '\x26')));
  const Batch dark = open_dataset("segmentation_scenes", spec)->batch(Split::test, indices);
  CHECK(std::all_of(dark.labels.begin(), dark.labels.end(), [](std::int32_t label) { return label == 0; }));
  CHECK(*std::max_element(dark.inputs.values().begin(), dark.inputs.values().end()) > 0.5f);
}

TEST_CASE("items are scaled bilinearly", "[scenes]") {
  const TemporaryFolder folder;
  put_items(folder);
  // Left column 0, right column 255: brightness rises from left to right over the middle half of the square.
  folder.put("t10k-images-idx3-ubyte", idx_bytes({1, 2, 2}, std::string("\0\xff\0\xff", 4)));
  const Scenes scenes({.data = folder.path(), .options = {{"image_size", 36}}}, "scenes");
  const Batch batch = scenes.boxes(Split::test, range(60));
  for (const Box& box : batch.boxes) {
    const auto side = static_cast<std::size_t>(box.right - box.left);
    const auto first = static_cast<std::size_t>(box.example) * 36 * 36 + static_cast<std::size_t>(box.left);
    for (std::size_t c = 0; c < side; ++c) {
      double mean = 0;
      for (auto r = static_cast<std::size_t>(box.top); r < static_cast<std::size_t>(box.bottom); ++r)
        mean += static_cast<double>(batch.inputs[first + r * 36 + c]) / static_cast<double>(side);
      const double at = (static_cast<double>(c) + 0.5) * 2 / static_cast<double>(side) - 0.5;
      // Where another item overlaps, at most 4 rows of it are brighter.
      CHECK(mean == Approx(2 * std::clamp(at, 0.0, 1.0)).margin(0.1 + (batch.boxes.size() > 60 ? 0.4 : 0)));
    }
  }
}

TEST_CASE("a scene depends on its split and index alone", "[scenes]") {
  const TemporaryFolder folder;
  put_items(folder);
  const auto data = open_dataset("detection_scenes", {.data = folder.path()});
  const std::array<std::int64_t, 3> some{7, 2999, 7};
  const Batch batch = data->batch(Split::train, some);
  const Batch again =
      with_threads(2, [&] { return data->batch(Split::train, std::array<std::int64_t, 1>{2999}); });
  const std::size_t image = 64 * 64;
  const float* pixels = batch.inputs.data();
  CHECK(std::equal(pixels, pixels + image, pixels + 2 * image));
  CHECK_FALSE(std::equal(pixels, pixels + image, pixels + image));
  CHECK(std::equal(again.inputs.data(), again.inputs.data() + image, pixels + image));
  CHECK(data->batch(Split::train, {}).inputs.shape() == Shape{0, 64, 64, 1});
}

TEST_CASE("scenes refuse small images, missing data and indices out of range", "[scenes]") {
  const TemporaryFolder folder;
  put_items(folder);
  for (const char* name : {"detection_scenes", "segmentation_scenes"}) {
    check_says(message_of<InvalidArgument>([&] {
                 (void)open_dataset(name, {.data = folder.path(), .options = {{"image_size", 35}}});
               }),
               {name, "image_size of 35", "image_size 36 or more"});
    check_says(message_of<InvalidArgument>([&] { (void)open_dataset(name, {.data = folder / "absent"}); }),
               {name, "absent", "dataset-fashion-mnist"});
    const auto data = open_dataset(name, {.data = folder.path(), .options = {{"image_size", 36}}});
    CHECK(data->batch(Split::test, std::array<std::int64_t, 1>{199}).inputs.size() == 36 * 36);
    for (const std::int64_t wrong : {-1, 200}) {
      const std::array<std::int64_t, 2> indices{0, wrong};
      check_says(message_of<InvalidArgument>([&] { (void)data->batch(Split::test, indices); }),
                 {"test example " + std::to_string(wrong), name, "0 to 199"});
    }
  }
}

}  // namespace
}  // namespace halfscope::scenes_test
