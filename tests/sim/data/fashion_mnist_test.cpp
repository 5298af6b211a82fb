// Fashion-MNIST: the values of a batch, and every way in which the four files can be wrong.
#include "sim/data/fashion_mnist.hpp"

#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "sim/data/datasets.hpp"
#include "tests/sim/data/idx_files.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::fashion_mnist_test {
namespace {

using Files = std::map<std::string, std::string>;

/// Three training and two test images of 2x2.
Files small_files() {
  return {{"train-images-idx3-ubyte",
           idx_bytes({3, 2, 2}, std::string("\0\1\2\3\xff\xfe\xfd\xfc\x10\x20\x30\x40", 12))},
          {"train-labels-idx1-ubyte", idx_bytes({3}, std::string("\0\x09\x05", 3))},
          {"t10k-images-idx3-ubyte", idx_bytes({2, 2, 2}, "abcdefgh")},
          {"t10k-labels-idx1-ubyte", idx_bytes({2}, "\x07\x01")}};
}

void put_all(const TemporaryFolder& folder, const Files& files) {
  for (const auto& [name, contents] : files) folder.put(name, contents);
}

/// Message of opening when `name` holds `contents` instead.
std::string refusal(const std::string& name, const std::string& contents) {
  const TemporaryFolder folder;
  Files files = small_files();
  files[name] = contents;
  put_all(folder, files);
  auto message = message_of<InvalidArgument>(
      [&] { static_cast<void>(fashion_mnist_kind.open({.data = folder.path()})); });
  check_says(message, {folder.path().string()});
  return message;
}

TEST_CASE("a batch holds the examples asked for, normalised", "[fashion_mnist]") {
  const TemporaryFolder folder;
  put_all(folder, small_files());
  const auto data = fashion_mnist_kind.open({.data = folder.path()});
  CHECK(data->size(Split::train) == 3);
  CHECK(data->size(Split::test) == 2);
  CHECK(data->example_shape() == Shape{2, 2, 1});
  CHECK(data->class_count() == 10);

  const std::array<std::int64_t, 4> indices{2, 0, 1, 2};
  const Batch batch = data->batch(Split::train, indices);
  CHECK(batch.inputs.shape() == Shape{4, 2, 2, 1});
  CHECK(batch.labels == std::vector<std::int32_t>{5, 0, 9, 5});
  const std::array<int, 16> pixels{16, 32, 48, 64, 0, 1, 2, 3, 255, 254, 253, 252, 16, 32, 48, 64};
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    CHECK(batch.inputs[i] == (static_cast<float>(pixels[i]) / 255.0f - 0.286f) / 0.353f);
  }
  const std::array<std::int64_t, 1> last{1};
  CHECK(data->batch(Split::test, last).labels == std::vector<std::int32_t>{1});
  CHECK(data->batch(Split::test, {}).inputs.shape() == Shape{0, 2, 2, 1});
}

TEST_CASE("for generators images have a black border and pixels from -1 to 1", "[fashion_mnist]") {
  const TemporaryFolder folder;
  put_all(folder, small_files());
  const auto data = open_dataset("fashion_mnist_32", {.data = folder.path()});
  CHECK(data->example_shape() == Shape{6, 6, 1});
  const std::array<std::int64_t, 2> indices{1, 2};
  const Batch batch = data->batch(Split::train, indices);
  CHECK(batch.inputs.shape() == Shape{2, 6, 6, 1});
  const std::array<int, 8> pixels{255, 254, 253, 252, 16, 32, 48, 64};
  for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
    const std::size_t image = i / 36, row = i / 6 % 6, column = i % 6;
    const bool inside = row >= 2 && row < 4 && column >= 2 && column < 4;
    const int pixel = inside ? pixels[image * 4 + (row - 2) * 2 + (column - 2)] : 0;
    CHECK(batch.inputs[i] == Approx(static_cast<float>(pixel) / 127.5f - 1).margin(1e-6));
  }
  CHECK(*std::ranges::max_element(batch.inputs.values()) == 1);
  const std::array<std::int64_t, 1> wrong{3};
  check_says(message_of<InvalidArgument>([&] { static_cast<void>(data->batch(Split::train, wrong)); }),
             {"fashion_mnist_32 has 0 to 2"});
}

TEST_CASE("an example out of range is refused", "[fashion_mnist]") {
  const TemporaryFolder folder;
  put_all(folder, small_files());
  const auto data = fashion_mnist_kind.open({.data = folder.path()});
  for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{2}, std::int64_t{1} << 62}) {
    const std::array<std::int64_t, 2> indices{0, wrong};
    check_says(message_of<InvalidArgument>([&] { static_cast<void>(data->batch(Split::test, indices)); }),
               {"test example " + std::to_string(wrong), "0 to 1"});
  }
}

TEST_CASE("files may be plain or gzip, each for itself", "[fashion_mnist]") {
  const TemporaryFolder folder;
  Files files = small_files();
  files["train-images-idx3-ubyte.gz"] = gzip(files["train-images-idx3-ubyte"]);
  files.erase("train-images-idx3-ubyte");
  put_all(folder, files);
  CHECK(fashion_mnist_kind.open({.data = folder.path()})->size(Split::train) == 3);
}

TEST_CASE("a missing folder says how to get the data", "[fashion_mnist]") {
  const TemporaryFolder folder;
  check_says(message_of<InvalidArgument>(
                 [&] { static_cast<void>(fashion_mnist_kind.open({.data = folder / "absent"})); }),
             {(folder / "absent").string(), "apt install dataset-fashion-mnist", "--data FOLDER",
              "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
              "t10k-labels-idx1-ubyte"});
}

TEST_CASE("each missing file is named", "[fashion_mnist]") {
  for (const auto& [name, contents] : small_files()) {
    const TemporaryFolder folder;
    put_all(folder, small_files());
    std::filesystem::remove(folder / name);
    check_says(message_of<InvalidArgument>(
                   [&] { static_cast<void>(fashion_mnist_kind.open({.data = folder.path()})); }),
               {folder.path().string(), name, name + ".gz"});
  }
}

TEST_CASE("each damaged file is named", "[fashion_mnist]") {
  for (const auto& [name, contents] : small_files()) {
    check_says(refusal(name, contents + "x"), {name, "bytes follow"});
    check_says(refusal(name, contents.substr(0, contents.size() - 1)), {name, "truncated"});
    check_says(refusal(name, gzip(contents).substr(0, 20)), {name, "gzip data is truncated"});
    check_says(refusal(name, "not an IDX file"), {name, "magic number"});
  }
}

TEST_CASE("files that disagree are refused", "[fashion_mnist]") {
  check_says(refusal("train-labels-idx1-ubyte", idx_bytes({2}, "\x01\x02")),
             {"train-labels-idx1-ubyte has 2 labels", "train-images-idx3-ubyte has 3 images"});
  check_says(refusal("t10k-images-idx3-ubyte", idx_bytes({2, 4, 1}, "abcdefgh")),
             {"training images of 2x2 but test images of 4x1"});
  check_says(refusal("t10k-labels-idx1-ubyte", idx_bytes({2}, "\x01\x0a")),
             {"t10k-labels-idx1-ubyte: label 1 is 10; expected 0 to 9"});
  check_says(refusal("train-labels-idx1-ubyte", idx_bytes({0}, "")),
             {"train-labels-idx1-ubyte", "an extent is 0"});
}

TEST_CASE("every data set is found by name, and no other", "[datasets]") {
  const TemporaryFolder folder;
  put_all(folder, small_files());
  for (const DatasetEntry& entry : datasets) {
    INFO(entry.name);
    CHECK_FALSE(entry.summary.empty());
    check_says(message_of<InvalidArgument>(
                   [&] { static_cast<void>(open_dataset(entry.name, {.data = folder / "absent"})); }),
               {std::string(entry.name), entry.kind.data == DataKind::none ? "leave out data" : "absent"});
  }
  CHECK(open_dataset("fashion_mnist", {.data = folder.path()})->size(Split::test) == 2);
  check_says(message_of<InvalidArgument>(
                 [&] { static_cast<void>(open_dataset("fashionmnist", {.data = folder.path()})); }),
             {"unknown data set 'fashionmnist'", "did you mean 'fashion_mnist'"});
}

TEST_CASE("the published data set has its published sizes and statistics", "[fashion_mnist]") {
  if (!std::filesystem::is_directory(fashion_mnist_folder)) {
    WARN("not checked: " << fashion_mnist_folder << " is not there");
    return;
  }
  const auto data = open_dataset("fashion_mnist", {});
  CHECK(data->example_shape() == Shape{28, 28, 1});
  REQUIRE(data->size(Split::train) == 60'000);
  REQUIRE(data->size(Split::test) == 10'000);

  std::vector<std::int64_t> all(60'000);
  std::iota(all.begin(), all.end(), 0);
  const Batch train = data->batch(Split::train, all);
  std::array<int, 10> per_class{};
  for (const std::int32_t label : train.labels) ++per_class.at(static_cast<std::size_t>(label));
  for (const int count : per_class) CHECK(count == 6000);
  double sum = 0;
  double squares = 0;
  for (const float x : train.inputs.values()) {
    sum += x;
    squares += double{x} * x;
  }
  const auto elements = static_cast<double>(train.inputs.size());
  CHECK(std::abs(sum / elements) < 0.001);
  CHECK(std::abs(squares / elements - 1) < 0.002);
  CHECK(std::vector(train.labels.begin(), train.labels.begin() + 5) ==
        std::vector<std::int32_t>{9, 0, 0, 3, 0});
}

}  // namespace
}  // namespace halfscope::fashion_mnist_test
