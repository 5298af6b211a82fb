// The layers: one declaration per layer, with the parameters that it takes.
#pragma once

#include <optional>
#include <span>

#include "lib/nn/elementwise.hpp"
#include "lib/nn/embedding.hpp"
#include "lib/nn/pool.hpp"
#include "lib/nn/roi_pool.hpp"
#include "lib/nn/stride.hpp"
#include "sim/layers/activations.hpp"
#include "sim/layers/attention.hpp"
#include "sim/layers/losses.hpp"
#include "sim/layers/recurrent.hpp"
#include "sim/tape/tape.hpp"

namespace halfscope {

/// y = x weight (in, out) + bias (out). Where x's last axis is `in` long, y is (leading axes of x, out), so
/// that a sequence (time, batch, in) gives (time, batch, out); else all axes after the first are flattened
/// and y is (batch, out).
struct LinearParameters {
  Parameter& weight;
  Parameter& bias;
};
TensorRef linear(Tape& tape, const std::string& name, TensorRef x, LinearParameters parameters);
/// The same without a bias.
TensorRef linear(Tape& tape, const std::string& name, TensorRef x, Parameter& weight);

/// The same with the weight (out, in), whose rows are the outputs' as an embedding's are, and a bias of `out`
/// numbers in any shape.
TensorRef linear_transposed(Tape& tape, const std::string& name, TensorRef x, LinearParameters parameters);

/// The words that a sampled softmax compares: the labels of the rows, then the samples. A gathering of their
/// rows has the gradients.
struct SampledWords {
  TensorRef weights;  // (labels + samples, width)
  TensorRef biases;   // (labels + samples, 1)
  std::span<const std::int32_t> labels, samples;
  std::vector<float> correction;  // (labels + samples): taken off the logits
};
/// y (labels, 1 + samples): of each row of x (labels, width) the dot product with its own label's weights,
/// then with each sample's, plus the biases, minus the corrections (Jean et al., ACL 2015; TensorFlow's
/// sampled_softmax_loss). A row's own product adds up as the policy's reduction model for the layer's name
/// says, the others are a matrix product. A sample that is a row's label gets 1e4 less there. Throws
/// InvalidArgument for shapes that do not fit.
TensorRef sampled_logits(Tape& tape, const std::string& name, TensorRef x, SampledWords words);

/// A kernel of any size; without `padding` of odd ones.
struct Conv2dParameters {
  Parameter& weight;          // (height, width, in / groups, out)
  Parameter* bias = nullptr;  // (out)
  Stride stride{};            ///< one for both axes, or one for rows and one for columns
  /// Zeros on each side, fewer than the kernel has rows and columns; none given: half the kernel's, rounded
  /// down, which keeps the extents at a stride of 1.
  std::optional<Border> padding = std::nullopt;
  std::int64_t groups = 1;  ///< groups of channels: group g of the outputs sees group g of the inputs alone
};

/// y (batch, down, across, out), down = (height + 2 padding - kernel's height) / stride + 1, rounded down,
/// and across likewise, = x (batch, height, width, in) convolved with the weight, plus the bias where there
/// is one. Each output is one sum over (row, column, in / groups) of the kernel, in that order, with the bias
/// added last in FP32 before the one rounding. Each number of x's gradient is one sum over (row, column,
/// out / groups), the zeros between the strides among its terms. Throws InvalidArgument for shapes that do
/// not fit and for images that, with their padding, are smaller than the kernel.
TensorRef conv2d(Tape& tape, const std::string& name, TensorRef x, const Conv2dParameters& parameters);

/// The weight is that of the convolution from images of y's shape to ones of x's, whose backward pass this
/// is.
struct ConvTranspose2dParameters {
  Parameter& weight;          // (height, width, out, in)
  Parameter* bias = nullptr;  // (out)
  Stride stride{};            ///< zeros from a pixel of x to the next, and one: of both axes, or of each
  Border padding{};           ///< pixels left out on each side, fewer than the kernel has rows and columns
};

/// y (batch, down, across, out), down = (height - 1) stride - 2 padding + kernel's height and across
/// likewise, = x (batch, height, width, in) convolved back, plus the bias where there is one: without it the
/// gradient that `conv2d` hands to an input of y's shape, of the same weight, stride and padding, for an
/// output's gradient x. Each output is one sum over (row, column, in) of the kernel turned by 180 degrees, in
/// that order, the zeros between the strides among its terms, with the bias added last in FP32 before the one
/// rounding. x's gradient is the convolution of y's: each number one sum over (row, column, out). Throws
/// InvalidArgument for shapes that do not fit and for an output without pixels.
TensorRef conv_transpose2d(Tape& tape, const std::string& name, TensorRef x,
                           const ConvTranspose2dParameters& parameters);

/// y (batch, height / 2, width / 2, channels): exact in every format. Throws InvalidArgument for odd heights
/// or widths.
TensorRef max_pool(Tape& tape, const std::string& name, TensorRef x);

/// y (batch, down, across, channels) = the largest number of each window: exact in every format. Where
/// windows overlap, a number's gradients are added in FP32 and rounded once. Throws InvalidArgument for
/// windows that do not fit the images and for those of more than 15 by 15.
TensorRef max_pool(Tape& tape, const std::string& name, TensorRef x, const PoolWindow& window);

/// y (batch, down, across, channels) = the mean of each window, added up row by row in FP32 and rounded once,
/// as are the gradients of a number's windows. Throws as `max_pool` does.
TensorRef average_pool(Tape& tape, const std::string& name, TensorRef x, const PoolWindow& window,
                       AverageOver over = AverageOver::window);

/// Regions of a batch of images, those of the first image first, each to become `size` by `size` numbers.
struct Regions {
  std::span<const Region> of_images;
  std::int64_t size = 1;
};
/// y (regions, size, size, channels) = the largest number of each part of each region (Girshick, "Fast
/// R-CNN", ICCV 2015, section 2.1, on whole pixels): exact in every format. Where regions or their parts
/// overlap, a number's gradients are added in FP32 and rounded once. Throws InvalidArgument for regions that
/// are empty, beyond the images or out of order, and where x is no batch of images.
TensorRef roi_max_pool(Tape& tape, const std::string& name, TensorRef x, const Regions& regions);

/// Constants of AlexNet (Krizhevsky et al., NIPS 2012, section 3.3), whose alpha multiplies the sum; Caffe
/// and PyTorch multiply the mean, with an alpha `size` times that.
struct LocalResponse {
  std::int64_t size = 5;  ///< neighbouring channels, odd
  float alpha = 1e-4f;
  float beta = 0.75f;
  float k = 2;
};
/// y = x / (k + alpha sum)^beta, with the sum of squares over the `size` channels around each. The sums of
/// squares, in backward those of what comes back through them, add up as the policy's reduction model for the
/// layer's name says, which rounds the squares too: in FP16 one of a number above 255 is infinite, and the
/// output silently 0. Everything else is FP32 arithmetic.
TensorRef local_response_norm(Tape& tape, const std::string& name, TensorRef x,
                              const LocalResponse& response = {});

/// y (batch, channels) = the mean of x (batch, height, width, channels) over its positions. The sum is a
/// large reduction: it adds up as the policy's reduction model for the layer's name says, and the trackers
/// see it. Throws InvalidArgument where x is no batch of images.
TensorRef global_average_pool(Tape& tape, const std::string& name, TensorRef x);

/// y (batch, height * factor, width * factor, channels): each pixel of x becomes a square of `factor` by
/// `factor` equal ones, which is exact in every format. Its gradient is their sum, row by row in FP32,
/// rounded once. Throws InvalidArgument for a factor below 1 and where x is no batch of images.
TensorRef upsample_nearest(Tape& tape, const std::string& name, TensorRef x, std::int64_t factor);

/// y (..., channels of a + channels of b): exact in every format. Throws InvalidArgument unless a and b have
/// the same axes before the last.
TensorRef concat_channels(Tape& tape, const std::string& name, TensorRef a, TensorRef b);
/// As above, with any number of tensors, at least one, side by side in their order.
TensorRef concat_channels(Tape& tape, const std::string& name, std::span<const TensorRef> parts);

/// Rows of `columns` consecutive numbers of a tensor, by number; a row may come several times.
struct TakenRows {
  std::span<const std::int32_t> rows;
  std::int64_t columns = 1;
  Shape shape{};                            ///< has as many numbers as x; empty: (rows, columns)
  AbsentRows absent = AbsentRows::refused;  ///< whether `no_row` is a row of zeros
};
/// y (rows, columns), or of the shape that is given, = those rows of x: copies, exact in every format. The
/// gradients of a row that comes several times are added in FP32 and rounded once; of others they are 0.
/// Throws InvalidArgument for rows that x does not have and for a shape of another size.
TensorRef take_rows(Tape& tape, const std::string& name, TensorRef x, const TakenRows& taken);

/// y = branch + shortcut, added in FP32 and rounded once. Backward hands both the same gradient. Throws
/// InvalidArgument where their shapes differ.
TensorRef add_residual(Tape& tape, const std::string& name, TensorRef branch, TensorRef shortcut);

/// y = a * b, element by element, rounded once. Throws InvalidArgument where their shapes differ.
TensorRef multiply(Tape& tape, const std::string& name, TensorRef a, TensorRef b);

/// y = x * mask / (1 - probability), where element i's mask is a pure function of the run's seed, the step,
/// the layer's name and i; in evaluation, and where `probability` is 0, x itself. Throws InvalidArgument
/// unless 0 <= probability < 1.
TensorRef dropout(Tape& tape, const std::string& name, TensorRef x, float probability);

/// The statistics (mean, variance; in backward the sums of gradients) are reductions over every position of
/// the batch: they add up as the policy's reduction model for the layer's name says. Everything else is FP32
/// arithmetic.
struct BatchNormParameters {
  Parameter& gamma;          // (channels)
  Parameter& beta;           // (channels)
  Buffer& running_mean;      // (channels)
  Buffer& running_variance;  // (channels)
  float epsilon = 1e-5f;
  float running_momentum = 0.1f;  ///< weight of the newest batch in the running statistics
};
TensorRef batch_norm(Tape& tape, const std::string& name, TensorRef x, const BatchNormParameters& parameters);

/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, with mean and variance of each row of features.
/// The statistics, in backward the means of the gradients over a row and the sums for gamma and beta, add up
/// as the policy's reduction model for the layer's name says. Everything else is FP32 arithmetic.
struct LayerNormParameters {
  Parameter& gamma;  // (features)
  Parameter& beta;   // (features)
  float epsilon = 1e-5f;
};
TensorRef layer_norm(Tape& tape, const std::string& name, TensorRef x, const LayerNormParameters& parameters);

/// y = gamma * x / sqrt(mean of x^2 + epsilon), the mean over each row of features (Zhang & Sennrich, NeurIPS
/// 2019). The mean squares, in backward the means of the gradients times y and the sums for gamma, add up as
/// the policy's reduction model for the layer's name says. Everything else is FP32 arithmetic.
struct RmsNormParameters {
  Parameter& gamma;  // (features)
  float epsilon = 1e-6f;
};
TensorRef rms_norm(Tape& tape, const std::string& name, TensorRef x, const RmsNormParameters& parameters);

/// Token numbers of `leading` axes, row-major: (time, batch), say.
struct Tokens {
  std::span<const std::int32_t> values;
  Shape leading;
};

/// y (leading..., features) = the rows of table (vocabulary, features) at `tokens`: copies, exact in every
/// format. The table's gradient adds up the gradients of a token's positions in FP32, in ascending
/// order of position, and is rounded once. Throws InvalidArgument for a token out of range, or where the axes
/// hold another number of tokens.
TensorRef embedding(Tape& tape, const std::string& name, const Tokens& tokens, Parameter& table);

/// The states (time, batch, hidden) after each step, from x (time, batch, in) and a zero state:
///   h' = tanh(x W + b + h V + c),
/// as a loop over an RNN cell: V and c are used by an operation of each step, so that their gradients are
/// sums over the steps' own, which the tape adds.
TensorRef rnn(Tape& tape, const std::string& name, TensorRef x, const RecurrentParameters& parameters);

/// The states (time, batch, hidden) after each step, from x (time, batch, in) and a zero state. Gates r
/// (reset), z (update), n (candidate) in this order, as PyTorch has them:
///   r, z = sigmoid(x W + b + h V + c);  n = tanh(x W + b + r (h V + c));  h' = n + z (h - n).
/// Every operation's output is rounded as an activation and every gradient as an activation gradient, time
/// step by time step; gradients that meet in a state are added in FP32 and rounded once. x W + b of all
/// time steps is one product, of h V one per step; each weight's gradient is one sum over all steps.
TensorRef gru(Tape& tape, const std::string& name, TensorRef x, const RecurrentParameters& parameters);

/// The states (time, batch, hidden) after each step, from x (time, batch, in) and zero state and cell. Gates
/// i (input), f (forget), g (cell), o (output) in this order, as PyTorch has them:
///   i, f, o = sigmoid(x W + b + h V + c);  g = tanh(x W + b + h V + c);
///   cell' = f cell + i g;  h' = o tanh(cell').
/// Every operation's output is rounded as an activation and every gradient as an activation gradient, time
/// step by time step; gradients that meet in a state or a cell are added in FP32 and rounded once. x W + b
/// of all time steps is one product, of h V one per step; each weight's gradient is one sum over all steps.
TensorRef lstm(Tape& tape, const std::string& name, TensorRef x, const RecurrentParameters& parameters);

/// The same with h' projection (hidden, state) in place of h' as the state, which is (time, batch, state)
/// and goes into the next step's gates (Sak et al., 2014; PyTorch's proj_size, without a bias). h' is
/// recorded as NAME.unprojected. The projection's gradient is one sum over all steps.
TensorRef projected_lstm(Tape& tape, const std::string& name, TensorRef x,
                         const RecurrentParameters& parameters, Parameter& projection);

}  // namespace halfscope
