// Fashion-MNIST, or any data set in the four files of the MNIST family: grey images in 10 classes.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string_view>

#include "sim/data/dataset.hpp"
#include "sim/data/idx.hpp"

namespace halfscope {

/// Where Debian's package dataset-fashion-mnist puts the files.
inline constexpr std::string_view fashion_mnist_folder = "/usr/share/datasets/fashion-mnist";

/// One split as it is in the files.
struct LabelledImages {
  IdxArray images;  // (count, height, width), 0..255
  IdxArray labels;  // (count), 0..9
};
inline constexpr std::int32_t fashion_mnist_classes = 10;

/// Train and test as they are in the folder, with the errors of `open_fashion_mnist`.
[[nodiscard]] std::array<LabelledImages, 2> read_fashion_mnist(const std::filesystem::path& folder);

/// Reads train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte,
/// each plain or with .gz, from the folder `spec.data`. Pixels x of 0..255 become (x / 255 - 0.286) / 0.353,
/// which has mean 0 and variance 1 over the training set. Source: Xiao, Rasul, Vollgraf, "Fashion-MNIST",
/// 2017. Throws InvalidArgument with the file and what is wrong with it: missing, damaged, a label that is
/// not 0..9, counts or image sizes that disagree.
[[nodiscard]] std::unique_ptr<Dataset> open_fashion_mnist(const DatasetSpec& spec);

}  // namespace halfscope
