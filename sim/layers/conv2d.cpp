// Forward and backward of the convolution: three matrix products over patches of zero-padded images.
#include "sim/layers/layers.hpp"

#include <array>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include <halfscope/kernel/gemm/gemm.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/dilate.hpp"
#include "lib/nn/elementwise.hpp"

namespace halfscope {
namespace {

/// Patches of a square, their middles `stride` pixels apart from the first pixel on.
struct PatchGrid {
  std::int64_t kernel_size;
  std::int64_t stride = 1;

  [[nodiscard]] std::int64_t count(std::int64_t pixels) const { return (pixels + stride - 1) / stride; }
};

/// Where the patches of zero-padded images lie: patch p's element k is images[position[p] + element[k]].
struct PatchOffsets {
  Memory<std::int32_t> position;  // (batch * patches down * patches across)
  Memory<std::int32_t> element;   // (size * size * channels)
  std::int64_t stride = 0;        ///< where patches are all the pixels, one each: their channels; else 0
};

PatchOffsets compute_offsets(const ImageShape& shape, const PatchGrid& grid) {
  const std::int64_t kernel_size = grid.kernel_size, border = kernel_size / 2;
  const std::int64_t padded_row = (shape.width + 2 * border) * shape.channels;
  const std::int64_t padded_image = (shape.height + 2 * border) * padded_row;
  (void)strided_offsets(1, shape.batch * padded_image);  // throws where offsets do not fit
  std::vector<std::int32_t> position, element;
  position.reserve(
      static_cast<std::size_t>(shape.batch * grid.count(shape.height) * grid.count(shape.width)));
  for (std::int64_t n = 0; n < shape.batch; ++n) {
    for (std::int64_t y = 0; y < shape.height; y += grid.stride) {
      const std::int64_t row = n * padded_image + y * padded_row;
      for (std::int64_t i = 0; i < shape.width; i += grid.stride) {
        position.push_back(static_cast<std::int32_t>(row + i * shape.channels));
      }
    }
  }
  for (std::int64_t y = 0; y < kernel_size; ++y) {
    for (std::int64_t i = 0; i < kernel_size * shape.channels; ++i) {
      element.push_back(static_cast<std::int32_t>(y * padded_row + i));
    }
  }
  return {Memory<std::int32_t>::from(position), Memory<std::int32_t>::from(element),
          kernel_size == 1 && grid.stride == 1 ? shape.channels : 0};
}

/// The same every step, so they are computed once per device and shape; the network's own thread is the only
/// caller.
std::shared_ptr<const PatchOffsets> offsets_of(const ImageShape& shape, const PatchGrid& grid) {
  using Key = std::tuple<Device, std::array<std::int64_t, 6>>;
  constexpr std::size_t most_kept = 64;
  thread_local std::map<Key, std::shared_ptr<const PatchOffsets>> kept;
  const Key key{active_device(),
                {shape.batch, shape.height, shape.width, shape.channels, grid.kernel_size, grid.stride}};
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  if (kept.size() == most_kept) kept.clear();
  return kept[key] = std::make_shared<const PatchOffsets>(compute_offsets(shape, grid));
}

struct Patches {
  Array images;  // (batch, height + 2 border, width + 2 border, channels)
  std::shared_ptr<const PatchOffsets> offsets;
};

Patches patches_of(const Array& x, const ImageShape& shape, const PatchGrid& grid) {
  const std::int64_t border = grid.kernel_size / 2;
  auto offsets = offsets_of(shape, grid);
  Array images({shape.batch, shape.height + 2 * border, shape.width + 2 * border, shape.channels}, x.dtype());
  pad_images(x.view(), shape, border, images.view());
  return {std::move(images), std::move(offsets)};
}

/// (size, size, out, in): the weight turned by 180 degrees with its channels swapped, which convolves
/// gradients back.
Array turned(const Array& weight) {
  const std::int64_t size = weight.extent(0), in = weight.extent(2), out = weight.extent(3);
  Array result({size, size, out, in}, weight.dtype());
  const std::int64_t taps = size * size;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    const auto offset = static_cast<std::size_t>(tap * in * out);
    const auto count = static_cast<std::size_t>(in * out);
    transpose(weight.view().part(static_cast<std::size_t>((taps - 1 - tap) * in * out), count), in, out,
              result.view().part(offset, count));
  }
  return result;
}

/// The gradient of an output with a stride as one without: zeros stand where no patch has its middle.
Array spread_out(Array gradient, const ImageShape& shape, std::int64_t stride) {
  if (stride == 1) return gradient;
  Array result({shape.batch, shape.height, shape.width, shape.channels}, gradient.dtype());
  spread(gradient.view(), shape, stride, result.view());
  return result;
}

/// The convolution of `patches` with a weight (size, size, channels, out).
Array convolve(const Patches& patches, const Array& weight, Shape output, const AccumulateModel& model) {
  Array y(std::move(output));
  const std::int64_t out = weight.extent(3);
  const PatchOffsets& offsets = *patches.offsets;
  gemm({ElementReader(patches.images.view()), offsets.position.values(), offsets.element.values(),
        MatrixLayout::row_major, offsets.stride},
       {ElementReader(weight.view()), static_cast<std::int64_t>(offsets.element.size()), out}, y.values(),
       model);
  return y;
}

void check(const std::string& name, const Shape& x, const Shape& weight, std::int64_t stride) {
  if (stride < 1)
    throw InvalidArgument("layer " + name + ": stride " + std::to_string(stride) + "; give 1 or more");
  const bool fits = weight.size() == 4 && weight[0] == weight[1] && weight[0] % 2 == 1 && x.size() == 4 &&
                    x[3] == weight[2];
  if (fits) return;
  throw InvalidArgument("layer " + name + ": input " + to_string(x) + " does not fit weight " +
                        to_string(weight));
}

/// Adds the bias to y and returns its place on the tape.
TensorRef add_bias(Tape& tape, const std::string& name, Parameter& parameter, Array& y) {
  const TensorRef bias = tape.parameter(parameter);
  if (tape.value(bias).shape() != Shape{y.extent(3)}) {
    throw InvalidArgument("layer " + name + ": bias " + to_string(tape.value(bias).shape()) +
                          " does not fit output " + to_string(y.shape()));
  }
  add_to_rows(tape.value(bias).view(), y.values());
  return bias;
}

void add_bias_gradient(Tape& tape, TensorRef bias, const Array& gradient) {
  Array sums(tape.value(bias).shape());
  const auto channels = static_cast<std::int64_t>(sums.size());
  const auto rows = static_cast<std::int64_t>(gradient.size()) / channels;
  column_sums({.x = ElementReader(gradient.view()), .rows = rows, .columns = channels},
              ScopedAccumulate{}.model, sums.values());
  tape.add_gradient(bias, std::move(sums));
}

}  // namespace

TensorRef conv2d(Tape& tape, const std::string& name, TensorRef x, const Conv2dParameters& parameters) {
  const TensorRef w = tape.parameter(parameters.weight);
  const Shape& shape = tape.value(x).shape();
  check(name, shape, tape.value(w).shape(), parameters.stride);
  const ImageShape images{shape[0], shape[1], shape[2], shape[3]};
  const PatchGrid grid{tape.value(w).extent(0), parameters.stride};
  const Shape output{images.batch, grid.count(images.height), grid.count(images.width),
                     tape.value(w).extent(3)};
  auto patches = std::make_shared<Patches>(patches_of(tape.value(x), images, grid));
  const AccumulateModel model = tape.policy().products;
  Array y = convolve(*patches, tape.value(w), output, model);
  std::optional<TensorRef> bias;
  if (parameters.bias != nullptr) bias = add_bias(tape, name, *parameters.bias, y);

  const auto backward = [x, w, bias, images, grid, model, patches](Tape& t, Array gradient) {
    const std::int64_t channels = t.value(w).extent(3);
    if (bias) add_bias_gradient(t, *bias, gradient);
    Array weight_gradient(t.value(w).shape());
    const PatchOffsets& offsets = *patches->offsets;
    gemm({ElementReader(patches->images.view()), offsets.element.values(), offsets.position.values(),
          MatrixLayout::transposed, offsets.stride},
         {ElementReader(gradient.view()), static_cast<std::int64_t>(offsets.position.size()), channels},
         weight_gradient.values(), model);
    t.add_gradient(w, std::move(weight_gradient));
    if (!t.needs_gradient(x)) return;
    const ImageShape of_gradient{images.batch, images.height, images.width, channels};
    gradient = spread_out(std::move(gradient), of_gradient, grid.stride);
    t.add_gradient(x, convolve(patches_of(gradient, of_gradient, {grid.kernel_size}), turned(t.value(w)),
                               t.value(x).shape(), model));
  };
  return tape.record({.name = name, .value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
