// Quantized tensors of a file: payload, scales and blocks put together by name and shape, read as numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <halfscope/io/block_findings.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// How quantized tensors are read.
enum class QuantizedView : std::uint8_t {
  values,   ///< payload times scales, under the name of the payload
  payload,  ///< payload and scales as tensors of their own
};

/// Rows and columns of DeepSeek's blocks, as the model's configuration states them.
struct WeightBlock {
  std::int64_t rows = 0, columns = 0;
};

/// A file whose quantized tensors are shown in one of the two views.
class QuantizedFile : public TensorFile {
 public:
  /// A line for each tensor that is left out, since its payload or its scales are not in the file or it
  /// cannot be decided what they are, and for each whose scales have other blocks than were stated.
  [[nodiscard]] virtual const std::vector<std::string>& problems() const = 0;
  /// Names of quantized tensors that are not read.
  [[nodiscard]] virtual const std::vector<std::string>& unread() const = 0;
  /// Whether tensor `index` is dequantized.
  [[nodiscard]] virtual bool has_blocks(std::size_t index) const = 0;
  /// Goes over all codes of tensor `index`, which has blocks, and over its `original`, where one is given.
  /// Throws InvalidArgument where a file turns out to be damaged.
  [[nodiscard]] virtual BlockFindings findings(std::size_t index,
                                               const std::optional<TensorInFile>& original) const = 0;
};

/// A file that has a tensor which this one lacks.
struct OtherFile {
  std::string name;       ///< for messages
  bool is_shard = false;  ///< an index or numbered names say that the two files are one checkpoint
};

/// The file that has a tensor of that name, lacks its partner, and is not read together with this one.
using FileBeside =
    std::function<std::optional<OtherFile>(const std::string& tensor, const std::string& partner)>;

/// Settings of a quantization, as the model's configuration states them.
struct StatedQuantization {
  std::string source{};             ///< name of the file that states them; empty without one
  std::string method{};             ///< "gptq", "awq", ...; empty where it has no name
  std::set<std::int64_t> bits{};    ///< bits of weights' codes; several where layers differ
  std::set<std::int64_t> groups{};  ///< codes along the inputs that share a scale, -1: all; empty where a
                                    ///< part of the settings leaves them open
  bool has_integers = false, has_floats = false;  ///< kinds of the codes that it names
  std::optional<WeightBlock> block{};  ///< block of `X_scale_inv`; without it blocks follow from the shapes
  std::optional<bool> zeros_as_are{};  ///< GPTQ: zero points are stored as they are (v2), or less one (v1)
  std::optional<bool> is_symmetric{};  ///< GPTQ: all zero points are the middle of the range
};

struct QuantizedReading {
  QuantizedView view = QuantizedView::values;
  StatedQuantization stated{};
  FileBeside beside{};  ///< asked for parts that the file lacks
};

/// Shows `file`, which `name` names in messages, by the layouts of layouts/detail/layouts.hpp. A tensor whose
/// scales do not fit it, or of which it cannot be decided what its codes stand for, is left out with a line
/// in QuantizedFile::problems.
[[nodiscard]] std::unique_ptr<QuantizedFile> show_quantized(std::unique_ptr<TensorFile> file,
                                                            const std::string& name,
                                                            const QuantizedReading& reading = {});

}  // namespace halfscope
