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

using PixelTable = std::array<float, 256>;

/// (x / 255 - mean) / deviation of each pixel x.
constexpr PixelTable normalised(float mean, float deviation) {
  PixelTable table{};
  for (std::size_t pixel = 0; pixel < table.size(); ++pixel)
    table[pixel] = (static_cast<float>(pixel) / 255.0f - mean) / deviation;
  return table;
}

/// A data set's images, beside those of the files.
struct ImageLayout {
  std::string_view dataset;
  PixelTable pixels;
  std::int64_t border = 0;  ///< black pixels on each side
};
constexpr ImageLayout standardised{"fashion_mnist", normalised(0.286f, 0.353f)};
constexpr ImageLayout between_one_and_minus_one{"fashion_mnist_32", normalised(0.5f, 0.5f), 2};

class FashionMnist : public Dataset {
 public:
  FashionMnist(std::array<LabelledImages, 2> splits, const ImageLayout& layout)
      : splits_(std::move(splits)), layout_(layout) {}

  [[nodiscard]] std::int64_t size(Split split) const override { return of(split).labels.shape[0]; }
  [[nodiscard]] Shape example_shape() const override {
    const Shape& images = of(Split::train).images.shape;
    return {images[1] + 2 * layout_.border, images[2] + 2 * layout_.border, 1};
  }
  [[nodiscard]] std::int64_t class_count() const override { return fashion_mnist_classes; }
  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override;

 private:
  [[nodiscard]] const LabelledImages& of(Split split) const {
    return splits_.at(static_cast<std::size_t>(split));
  }

  std::array<LabelledImages, 2> splits_;
  const ImageLayout& layout_;
};

Batch FashionMnist::batch(Split split, std::span<const std::int64_t> indices) const {
  const auto& [images, labels] = of(split);
  const std::int64_t height = images.shape[1], width = images.shape[2];
  const Shape shape = example_shape();
  Batch batch{.inputs = Array({static_cast<std::int64_t>(indices.size()), shape[0], shape[1], 1})};
  std::ranges::fill(batch.inputs.values(), layout_.pixels[0]);
  batch.labels.reserve(indices.size());
  float* image = batch.inputs.data();
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= size(split)) {
      throw InvalidArgument(fmt::format("{} example {}: {} has 0 to {}", name_of(split), index,
                                        layout_.dataset, size(split) - 1));
    }
    const std::uint8_t* row = images.values.data() + index * height * width;
    for (std::int64_t r = 0; r < height; ++r, row += width) {
      float* const target = image + (r + layout_.border) * shape[1] + layout_.border;
      std::transform(row, row + width, target, [&](std::uint8_t x) { return layout_.pixels[x]; });
    }
    image += shape[0] * shape[1];
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

namespace {

std::unique_ptr<Dataset> open_fashion_mnist(const DatasetSpec& spec) {
  return std::make_unique<FashionMnist>(read_fashion_mnist(spec.data), standardised);
}

std::unique_ptr<Dataset> open_fashion_mnist_32(const DatasetSpec& spec) {
  try {
    return std::make_unique<FashionMnist>(read_fashion_mnist(spec.data), between_one_and_minus_one);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("fashion_mnist_32: {}", error.what()));
  }
}

}  // namespace

constexpr DatasetKind fashion_mnist_kind{
    .data = DataKind::images, .open = open_fashion_mnist, .default_data = fashion_mnist_folder};
constexpr DatasetKind fashion_mnist_32_kind{
    .data = DataKind::images, .open = open_fashion_mnist_32, .default_data = fashion_mnist_folder};

}  // namespace halfscope
