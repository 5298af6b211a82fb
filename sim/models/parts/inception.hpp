// Inception modules: branches of convolutions and pools side by side on one input.
#pragma once

#include <optional>
#include <vector>

#include "sim/layers/layers.hpp"
#include "sim/models/model.hpp"

namespace halfscope {

/// Extents of one image's map.
struct MapShape {
  std::int64_t height, width, channels;
};

/// A convolution and the ReLU behind it, with a batch norm between them or a bias instead.
struct ActiveConvolution {
  std::string name;
  Conv2dParameters convolution;
  std::optional<BatchNormParameters> norm;
};

/// Parameters of an active convolution.
struct FilterSpec {
  std::int64_t out = 0;  ///< channels at width 1
  std::int64_t rows = 1, columns = rows;
  std::int64_t stride = 1;
  std::optional<Border> padding = std::nullopt;  ///< none: half the kernel
};

enum class BranchPool : std::uint8_t { none, average, maximum };
constexpr PoolWindow keeps_size{.size = 3, .stride = 1, .padding = 1};

/// A pool, if any, and convolutions one behind the other; behind those `ends`, if any, side by side.
struct BranchSpec {
  std::vector<FilterSpec> chain{};
  std::vector<FilterSpec> ends{};
  BranchPool pooling = BranchPool::none;
  PoolWindow window = keeps_size;
};

struct Branch {
  std::vector<ActiveConvolution> chain, ends;
  BranchPool pooling;
  PoolWindow window;
};

struct InceptionModule {
  std::string name;
  std::vector<Branch> branches;
};

/// The operation between a convolution and its ReLU.
enum class InceptionNorm : std::uint8_t { bias, batch_norm };

/// Adds the parameters of layers to a store one after the other, each behind the last, and knows the shape of
/// the map that the next one sees. A copy builds a head beside the layers that follow.
class InceptionBuilder {
 public:
  /// Biases begin at 0.2, as in Caffe's GoogLeNet. References outlive the builder.
  InceptionBuilder(ParameterStore& store, const ModelSpec& spec, InceptionNorm norm);

  [[nodiscard]] const MapShape& map() const { return map_; }
  /// NAME.weight and NAME.bias, or NAME.bn.gamma and the rest of a batch norm.
  [[nodiscard]] ActiveConvolution convolution(const std::string& name, const FilterSpec& filter);
  /// Convolutions of branch I are called NAME.branchI.convJ, its ends NAME.branchI.endJ. All branches end in
  /// the same height and width.
  [[nodiscard]] InceptionModule module(const std::string& name, const std::vector<BranchSpec>& branches);
  /// Lets the next layer see the map that a pool without parameters leaves.
  void pool(const PoolWindow& window);

 private:
  [[nodiscard]] ActiveConvolution add(const std::string& name, const FilterSpec& filter, MapShape& map) const;

  ParameterStore* store_;
  const ModelSpec* spec_;
  InceptionNorm norm_;
  MapShape map_;
};

TensorRef apply(Tape& tape, TensorRef x, const ActiveConvolution& layers);
TensorRef apply(Tape& tape, TensorRef x, const InceptionModule& module);

/// Windows of 5x5 every 3 pixels, as before each auxiliary head; the last ones of a map that they do not
/// divide are smaller.
constexpr PoolWindow auxiliary_window{.size = 5, .stride = 3, .partial = PartialWindow::kept};

/// The auxiliary head of GoogLeNet: average pool, 1x1 to 128, linear to 1024, ReLU, dropout, linear to the
/// classes.
struct AuxiliaryHead {
  std::string name;
  ActiveConvolution reduce;
  LinearParameters fc1, fc2;
  float dropout = 0;
};
/// On the map that `builder` has come to, from where the network goes on.
[[nodiscard]] AuxiliaryHead add_auxiliary_head(ParameterStore& store, const ModelSpec& spec,
                                               const InceptionBuilder& builder, const std::string& name);
/// Its logits (batch, classes).
TensorRef apply(Tape& tape, TensorRef x, const AuxiliaryHead& head);

}  // namespace halfscope
