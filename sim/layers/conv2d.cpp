// Forward and backward of the convolution: three matrix products over patches of zero-padded images.
#include "sim/layers/conv2d.hpp"

#include <halfscope/kernel/elementwise.hpp>
#include <halfscope/kernel/gemm.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t kernel_size = 3;
constexpr std::int64_t border = 1;

/// Zero-padded images, and where their patches lie: patch p's element k is images[position[p] + element[k]].
struct Patches {
  Array images;
  std::vector<std::int32_t> position;  // (batch * height * width)
  std::vector<std::int32_t> element;   // (3 * 3 * channels)
};

Patches patches_of(const Array& x, const ImageShape& shape) {
  const std::int64_t padded_row = (shape.width + 2 * border) * shape.channels;
  const std::int64_t padded_image = (shape.height + 2 * border) * padded_row;
  Patches patches{
      Array({shape.batch, shape.height + 2 * border, shape.width + 2 * border, shape.channels}), {}, {}};
  (void)strided_offsets(1,
                        static_cast<std::int64_t>(patches.images.size()));  // throws where offsets do not fit
  pad_images(x.values(), shape, border, patches.images.values());
  for (std::int64_t n = 0; n < shape.batch; ++n) {
    for (std::int64_t y = 0; y < shape.height; ++y) {
      const std::int64_t row = n * padded_image + y * padded_row;
      for (std::int64_t i = 0; i < shape.width; ++i) {
        patches.position.push_back(static_cast<std::int32_t>(row + i * shape.channels));
      }
    }
  }
  for (std::int64_t y = 0; y < kernel_size; ++y) {
    for (std::int64_t i = 0; i < kernel_size * shape.channels; ++i) {
      patches.element.push_back(static_cast<std::int32_t>(y * padded_row + i));
    }
  }
  return patches;
}

/// (3, 3, out, in): the weight turned by 180 degrees with its channels swapped, which convolves gradients
/// back.
Array turned(const Array& weight) {
  const std::int64_t in = weight.extent(2), out = weight.extent(3);
  Array result({kernel_size, kernel_size, out, in});
  const std::int64_t taps = kernel_size * kernel_size;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    const auto offset = static_cast<std::size_t>(tap * in * out);
    const auto size = static_cast<std::size_t>(in * out);
    transpose(weight.values().subspan(static_cast<std::size_t>((taps - 1 - tap) * in * out), size), in, out,
              result.values().subspan(offset, size));
  }
  return result;
}

ImageShape image_shape(const Shape& shape) {
  return {shape.at(0), shape.at(1), shape.at(2), shape.at(3)};
}

/// The convolution of `patches` with a weight (3, 3, channels, out).
Array convolve(const Patches& patches, const Array& weight, Shape output, const AccumulateModel& model) {
  Array y(std::move(output));
  const std::int64_t out = weight.extent(3);
  gemm({patches.images.data(), patches.position, patches.element},
       {weight.data(), static_cast<std::int64_t>(patches.element.size()), out}, y.values(), model);
  return y;
}

}  // namespace

TensorRef conv2d(Tape& tape, const std::string& name, TensorRef x, Parameter& weight) {
  const TensorRef w = tape.parameter(weight);
  const Shape& shape = tape.value(x).shape();
  if (shape.size() != 4 || shape[3] != tape.value(w).extent(2)) {
    throw RequestError("layer " + name + ": input " + to_string(shape) + " does not fit weight " +
                       to_string(tape.value(w).shape()));
  }
  const ImageShape images = image_shape(shape);
  const std::int64_t out = tape.value(w).extent(3);
  auto patches = std::make_shared<Patches>(patches_of(tape.value(x), images));
  const AccumulateModel model = tape.policy().products;
  Array y = convolve(*patches, tape.value(w), {images.batch, images.height, images.width, out}, model);

  const auto backward = [x, w, images, out, model, patches](Tape& t, Array gradient) {
    Array weight_gradient(t.value(w).shape());
    gemm({patches->images.data(), patches->element, patches->position},
         {gradient.data(), images.batch * images.height * images.width, out}, weight_gradient.values(),
         model);
    t.add_gradient(w, std::move(weight_gradient));
    if (!t.needs_gradient(x)) return;
    const Patches of_gradient = patches_of(gradient, {images.batch, images.height, images.width, out});
    t.add_gradient(x, convolve(of_gradient, turned(t.value(w)), t.value(x).shape(), model));
  };
  return tape.record({.name = name, .value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
