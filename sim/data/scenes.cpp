// Lays out, paints and labels scenes.
#include "sim/data/scenes.hpp"
#include "sim/data/dataset_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/arithmetic/normal.hpp>
#include <halfscope/core/parallel.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t smallest_item = 20, largest_item = 36, largest_overlap = 4;
/// Most items of an image with sides of `usual_size`; a larger image has more, in proportion to its area.
constexpr std::int64_t usual_size = 64, most_items = 3, placement_attempts = 30;
constexpr float noise_deviation = 0.05f, label_threshold = 0.15f, input_gain = 2.0f;

struct PlacedItem {
  const std::uint8_t* pixels;  // (height, width) of the item's image
  std::int32_t label;
  std::int64_t top, left, side;
};

/// Overlap of two squares in their better separated direction; not above 0 where they are apart.
std::int64_t overlap(const PlacedItem& a, const PlacedItem& b) {
  const std::int64_t down = std::min(a.top + a.side, b.top + b.side) - std::max(a.top, b.top);
  const std::int64_t across = std::min(a.left + a.side, b.left + b.side) - std::max(a.left, b.left);
  return std::min(down, across);
}

/// Draws whole numbers one after the other.
struct Draws {
  RandomStream stream;
  std::uint64_t next = 0;
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>((stream.bits(next++) * static_cast<std::uint64_t>(bound)) >> 32);
  }
};

std::uint32_t site(std::string_view purpose, Split split) {
  const std::string name = fmt::format("scenes.{}.{}", purpose, name_of(split));
  return site_hash(name.data(), name.size());
}

/// Where output pixel i of a line scaled from `from` to `to` pixels lies between two input pixels.
struct Sample {
  std::int64_t low, high;
  float share;  ///< the part that `high` has in the pixel
};
Sample sample(std::int64_t i, std::int64_t from, std::int64_t to) {
  const float at = (static_cast<float>(i) + 0.5f) * static_cast<float>(from) / static_cast<float>(to) - 0.5f;
  const float inside = std::clamp(at, 0.0f, static_cast<float>(from - 1));
  const auto low = static_cast<std::int64_t>(inside);
  return {low, std::min(low + 1, from - 1), inside - static_cast<float>(low)};
}

/// How many times a image_size holds the usual one, at least once.
std::int64_t crowd(std::int64_t image_size) {
  return std::max<std::int64_t>(1, image_size * image_size / (usual_size * usual_size));
}

struct ItemShape {
  std::int64_t height, width;
};

/// Brightness 0..1 of the item, scaled to its square, at a pixel of the square.
float brightness(const PlacedItem& item, const ItemShape& shape, const Sample& row, const Sample& column) {
  const auto at = [&](std::int64_t r, std::int64_t c) {
    return static_cast<float>(item.pixels[r * shape.width + c]) / 255.0f;
  };
  const auto in_row = [&](std::int64_t r) {
    return at(r, column.low) + column.share * (at(r, column.high) - at(r, column.low));
  };
  const float low = in_row(row.low), high = in_row(row.high);
  return low + row.share * (high - low);
}

/// Paints the item over pixels (image_size, image_size); `labels` may be null.
void paint(const PlacedItem& item, const ItemShape& shape, std::int64_t image_size, float* pixels,
           std::int32_t* labels) {
  for (std::int64_t r = 0; r < item.side; ++r) {
    const Sample row = sample(r, shape.height, item.side);
    for (std::int64_t c = 0; c < item.side; ++c) {
      const float value = brightness(item, shape, row, sample(c, shape.width, item.side));
      const std::int64_t at = (item.top + r) * image_size + item.left + c;
      if (!(value > pixels[at])) continue;
      pixels[at] = value;
      if (labels != nullptr && value > label_threshold) labels[at] = item.label + 1;
    }
  }
}

void add_noise(const RandomStream& stream, std::span<float> pixels) {
  for (std::size_t i = 0; i < pixels.size(); i += 2) {
    const auto noise = normal_pair(stream, i / 2);
    for (std::size_t j = 0; j < std::min<std::size_t>(2, pixels.size() - i); ++j) {
      pixels[i + j] = input_gain * (pixels[i + j] + noise_deviation * noise[j]);
    }
  }
}

std::array<LabelledImages, 2> read_items(const DatasetSpec& spec, const std::string& owner) {
  if (spec.whole(image_size_option) < largest_item) {
    throw InvalidArgument(
        fmt::format("{}: a image_size of {} pixels is smaller than an item; give image_size {} or more",
                    owner, spec.whole(image_size_option), largest_item));
  }
  try {
    return read_fashion_mnist(spec.data);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(owner + ": " + error.what());
  }
}

}  // namespace

struct Scenes::Layout {
  std::int64_t index;
  std::vector<PlacedItem> items;
};

Scenes::Scenes(const DatasetSpec& spec, std::string owner)
    : items_(read_items(spec, owner)), image_size_(spec.whole(image_size_option)), owner_(std::move(owner)) {}

Scenes::Layout Scenes::layout(Split split, std::int64_t index) const {
  if (index < 0 || index >= size(split)) {
    throw InvalidArgument(
        fmt::format("{} example {}: {} has 0 to {}", name_of(split), index, owner_, size(split) - 1));
  }
  const LabelledImages& source = items_.at(static_cast<std::size_t>(split));
  const std::int64_t image = source.images.shape[1] * source.images.shape[2];
  Draws draws{{.step = static_cast<std::uint32_t>(index), .site = site("layout", split)}};
  Layout scene{index, {}};
  const std::int64_t wanted = crowd(image_size_) * (1 + draws.below(most_items));
  for (std::int64_t attempt = 0; attempt < crowd(image_size_) * placement_attempts; ++attempt) {
    const std::int64_t example = draws.below(source.labels.shape[0]);
    const std::int64_t side = smallest_item + draws.below(largest_item - smallest_item + 1);
    const std::int64_t top = draws.below(image_size_ - side + 1), left = draws.below(image_size_ - side + 1);
    const PlacedItem item{source.images.values.data() + example * image,
                          source.labels.values[static_cast<std::size_t>(example)], top, left, side};
    const auto fits = [&](const PlacedItem& other) { return overlap(item, other) <= largest_overlap; };
    if (std::all_of(scene.items.begin(), scene.items.end(), fits)) scene.items.push_back(item);
    if (static_cast<std::int64_t>(scene.items.size()) == wanted) break;
  }
  return scene;
}

std::vector<Scenes::Layout> Scenes::layouts(Split split, std::span<const std::int64_t> indices) const {
  std::vector<Layout> scenes;
  for (const std::int64_t index : indices) scenes.push_back(layout(split, index));
  return scenes;
}

Batch Scenes::compose(Split split, std::span<const Layout> layouts) const {
  Batch batch{.inputs = Array({static_cast<std::int64_t>(layouts.size()), image_size_, image_size_, 1})};
  const auto pixels = static_cast<std::size_t>(image_size_ * image_size_);
  batch.labels.assign(batch.inputs.size(), 0);
  const IdxArray& images = items_.at(static_cast<std::size_t>(split)).images;
  const ItemShape shape{images.shape[1], images.shape[2]};
  const std::uint32_t noise = site("noise", split);
  parallel_for(static_cast<std::int64_t>(layouts.size()), [&](std::int64_t n) noexcept {
    const Layout& scene = layouts[static_cast<std::size_t>(n)];
    const auto first = static_cast<std::size_t>(n) * pixels;
    const std::span<float> image = batch.inputs.values().subspan(first, pixels);
    std::fill(image.begin(), image.end(), 0.0f);
    for (const PlacedItem& item : scene.items) {
      paint(item, shape, image_size_, image.data(), batch.labels.data() + first);
    }
    // The scene is in the key, since the polar method's attempts count the step.
    add_noise({.seed = static_cast<std::uint64_t>(scene.index), .site = noise}, image);
  });
  return batch;
}

Batch Scenes::pixel_labels(Split split, std::span<const std::int64_t> indices) const {
  return compose(split, layouts(split, indices));
}

Batch Scenes::boxes(Split split, std::span<const std::int64_t> indices) const {
  const std::vector<Layout> scenes = layouts(split, indices);
  Batch batch = compose(split, scenes);
  batch.masks = std::move(batch.labels);
  batch.labels.clear();
  for (std::size_t n = 0; n < scenes.size(); ++n) {
    for (const PlacedItem& item : scenes[n].items) {
      const auto top = static_cast<float>(item.top), left = static_cast<float>(item.left),
                 side = static_cast<float>(item.side);
      batch.boxes.push_back({.example = static_cast<std::int32_t>(n),
                             .label = item.label,
                             .top = top,
                             .left = left,
                             .bottom = top + side,
                             .right = left + side});
    }
  }
  return batch;
}

}  // namespace halfscope
