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

}  // namespace halfscope
