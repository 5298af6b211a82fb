// A quantized tensor as its layout reads it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <halfscope/io/block_findings.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// Codes of a tensor as its bytes show them, for what a configuration says of them.
struct CodeKind {
  std::string_view library{};  ///< "GPTQ", "AWQ", ...; empty where several write the same parts
  unsigned bits = 0;           ///< bits of a code; 0: no configuration tells of them
  bool are_integers = false;
  std::int64_t inputs = 0, groups = 0;  ///< along the inputs; 0 groups: scales of other blocks
};

class QuantizedTensor {
 public:
  /// Elements come in the order of `axes`, see StoredTensor.
  QuantizedTensor(std::string name, std::vector<std::int64_t> shape, std::vector<std::size_t> axes = {});
  QuantizedTensor(const QuantizedTensor&) = delete;
  QuantizedTensor& operator=(const QuantizedTensor&) = delete;
  virtual ~QuantizedTensor() = default;

  [[nodiscard]] const StoredTensor& stored() const { return stored_; }
  /// The numbers from element `first` on.
  virtual void read(const TensorFile& file, std::int64_t first, std::span<float> values) const = 0;
  [[nodiscard]] virtual CodeKind kind() const { return {}; }
  /// Whether every code is an integer of so many bits, whatever it is stored in.
  [[nodiscard]] virtual bool fit_in(const TensorFile& /*file*/, unsigned /*bits*/) const { return false; }
  /// Goes over all codes.
  [[nodiscard]] virtual BlockFindings findings(const TensorFile& file) const = 0;
  /// The largest magnitude that each block of scales stands for, half a step above its largest code; empty
  /// where blocks are none of rows and columns.
  [[nodiscard]] virtual std::vector<double> limits(const TensorFile& /*file*/) const { return {}; }
  /// The block of an element, where there are limits.
  [[nodiscard]] virtual std::int64_t block_of(std::int64_t /*element*/) const { return 0; }

 private:
  StoredTensor stored_;
};

/// Codes and scale of a block, for the lists that it is in.
struct BlockState {
  std::int64_t block = 0;
  float code = 0;  ///< the largest magnitude; infinite where a code is NaN or infinite
  float scale = 1;
};
/// Largest numbers of the two types.
struct LargestNumbers {
  float code = 0, scale = 0;
};
void judge_block(const BlockState& state, const LargestNumbers& largest, BlockFindings& found);

}  // namespace halfscope
