// The four IDX files, kept as bytes; a batch normalises the pixels that it takes.
#include "sim/data/fashion_mnist.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include <halfscope/core/error.hpp>
#include <halfscope/io/file.hpp>

#include "sim/data/datasets.hpp"

namespace halfscope {
namespace {

constexpr std::array<float, 256> normalised = [] {
  std::array<float, 256> table{};
  for (std::size_t pixel = 0; pixel < table.size(); ++pixel) {
    table[pixel] = (static_cast<float>(pixel) / 255.0f - 0.286f) / 0.353f;
  }
  return table;
}();

class FashionMnist : public Dataset {
 public:
  explicit FashionMnist(std::array<LabelledImages, 2> splits) : splits_(std::move(splits)) {}

  [[nodiscard]] std::int64_t size(Split split) const override { return of(split).labels.shape[0]; }
  [[nodiscard]] Shape example_shape() const override {
    const Shape& images = of(Split::train).images.shape;
    return {images[1], images[2], 1};
  }
  [[nodiscard]] std::int64_t class_count() const override { return fashion_mnist_classes; }
  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override;

 private:
  [[nodiscard]] const LabelledImages& of(Split split) const {
    return splits_.at(static_cast<std::size_t>(split));
  }

  std::array<LabelledImages, 2> splits_;
};

Batch FashionMnist::batch(Split split, std::span<const std::int64_t> indices) const {
  const auto& [images, labels] = of(split);
  const std::int64_t height = images.shape[1];
  const std::int64_t width = images.shape[2];
  Batch batch{.inputs = Array({static_cast<std::int64_t>(indices.size()), height, width, 1})};
  batch.labels.reserve(indices.size());
  float* target = batch.inputs.data();
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= size(split)) {
      throw InvalidArgument(
          fmt::format("{} example {}: fashion_mnist has 0 to {}", name_of(split), index, size(split) - 1));
    }
    const std::uint8_t* pixels = images.values.data() + index * height * width;
    target =
        std::transform(pixels, pixels + height * width, target, [](std::uint8_t x) { return normalised[x]; });
    batch.labels.push_back(labels.values[static_cast<std::size_t>(index)]);
  }
  return batch;
}

/// The file called `name` or `name`.gz; the plain one where both exist.
std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& name) {
  for (const char* suffix : {"", ".gz"}) {
    auto path = folder / (name + suffix);
    std::error_code error;
    if (std::filesystem::exists(path, error)) return path;
  }
  throw InvalidArgument(
      fmt::format("fashion_mnist: {} has neither {} nor {}.gz", printable(folder), name, name));
}

LabelledImages read_examples(const std::filesystem::path& folder, const std::string& prefix) {
  const auto images_path = find_file(folder, prefix + "-images-idx3-ubyte");
  const auto labels_path = find_file(folder, prefix + "-labels-idx1-ubyte");
  LabelledImages examples{read_idx(images_path, 3), read_idx(labels_path, 1)};

  const auto& labels = examples.labels.values;
  if (examples.images.shape[0] != examples.labels.shape[0]) {
    throw InvalidArgument(fmt::format("{} has {} labels, but {} has {} images", printable(labels_path),
                                      labels.size(), printable(images_path), examples.images.shape[0]));
  }
  const auto wrong = std::find_if(labels.begin(), labels.end(),
                                  [](std::uint8_t label) { return label >= fashion_mnist_classes; });
  if (wrong != labels.end()) {
    throw InvalidArgument(fmt::format("{}: label {} is {}; expected 0 to {}", printable(labels_path),
                                      wrong - labels.begin(), *wrong, fashion_mnist_classes - 1));
  }
  return examples;
}

void check_folder(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return;
  throw InvalidArgument(fmt::format(
      "fashion_mnist: there is no folder {}; `apt install dataset-fashion-mnist` makes {}, or give --data "
      "FOLDER with train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
      "t10k-labels-idx1-ubyte, each plain or .gz",
      printable(folder), fashion_mnist_folder));
}

}  // namespace

std::array<LabelledImages, 2> read_fashion_mnist(const std::filesystem::path& folder) {
  check_folder(folder);
  std::array<LabelledImages, 2> splits{read_examples(folder, "train"), read_examples(folder, "t10k")};
  const Shape& a = splits[0].images.shape;
  const Shape& b = splits[1].images.shape;
  if (a[1] != b[1] || a[2] != b[2]) {
    throw InvalidArgument(
        fmt::format("fashion_mnist: {} has training images of {}x{} but test images of {}x{}",
                    printable(folder), a[1], a[2], b[1], b[2]));
  }
  return splits;
}

std::unique_ptr<Dataset> open_fashion_mnist(const DatasetSpec& spec) {
  return std::make_unique<FashionMnist>(read_fashion_mnist(spec.data));
}

}  // namespace halfscope
