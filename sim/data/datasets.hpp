// The data sets: one line per data set.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "sim/data/dataset.hpp"
#include "sim/data/detection_scenes.hpp"
#include "sim/data/fashion_mnist.hpp"
#include "sim/data/kjv_text.hpp"
#include "sim/data/segmentation_scenes.hpp"

namespace halfscope {

/// Source of a data set, as `--data` names it: a folder of images or a text file.
enum class DataKind : std::uint8_t { images, text };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<DataKind>{"images", "text"};

struct DatasetEntry {
  std::string_view name;
  std::string_view summary;
  DataKind kind;
  std::string_view default_data;  ///< the file or folder where its package puts it
  std::unique_ptr<Dataset> (*open)(const DatasetSpec& spec);
};

inline constexpr std::array datasets{
    DatasetEntry{"fashion_mnist", "60,000 + 10,000 grey images of 28x28, 10 classes of clothing",
                 DataKind::images, fashion_mnist_folder, open_fashion_mnist},
    DatasetEntry{"detection_scenes",
                 "3,000 + 200 scenes of Fashion-MNIST items, 1 to 3 on 64x64 pixels, with their boxes",
                 DataKind::images, fashion_mnist_folder, open_detection_scenes},
    DatasetEntry{"segmentation_scenes", "the same scenes with a class for each pixel", DataKind::images,
                 fashion_mnist_folder, open_segmentation_scenes},
    DatasetEntry{"kjv_text", "words of the King James Bible, or of any UTF-8 text given with --data",
                 DataKind::text, "", open_kjv_text},
};

/// Opens the data set called `name` from `spec.data`, or from where its package puts it. Throws
/// InvalidArgument for an unknown name and for files that are missing or wrong.
[[nodiscard]] std::unique_ptr<Dataset> open_dataset(std::string_view name, DatasetSpec spec);

}  // namespace halfscope
