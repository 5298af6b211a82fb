// A data set of zeros.
#include "sim/data/blank_images.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace halfscope {
namespace {

class BlankImages final : public Dataset {
 public:
  BlankImages(Shape shape, std::int64_t classes) : shape_(std::move(shape)), classes_(classes) {}

  [[nodiscard]] std::int64_t size(Split) const override { return 1; }
  [[nodiscard]] Shape example_shape() const override { return shape_; }
  [[nodiscard]] std::int64_t class_count() const override { return classes_; }
  [[nodiscard]] Batch batch(Split, std::span<const std::int64_t> indices) const override {
    if (std::ranges::any_of(indices, [](std::int64_t index) { return index != 0; }))
      throw InvalidArgument("blank images: there is one, numbered 0");
    const auto count = static_cast<std::int64_t>(indices.size());
    return {.inputs = Array({count, shape_.at(0), shape_.at(1), shape_.at(2)}),
            .labels = std::vector<std::int32_t>(indices.size(), 0)};
  }

 private:
  Shape shape_;
  std::int64_t classes_;
};

}  // namespace

std::unique_ptr<Dataset> make_blank_images(const Shape& shape, std::int64_t classes) {
  const bool sized = shape.size() == 3 && std::ranges::all_of(shape, [](std::int64_t n) { return n > 0; });
  if (!sized || classes < 1) {
    throw InvalidArgument(
        fmt::format("blank images of shape {} and {} classes; give three extents and a class, "
                    "each 1 or more",
                    to_string(shape), classes));
  }
  return std::make_unique<BlankImages>(shape, classes);
}

}  // namespace halfscope
