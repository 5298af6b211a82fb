// A file of named tensors in any common format, read in pieces and never whole: what `analyze` looks at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <halfscope/core/names.hpp>

namespace halfscope {

/// How a file stores an element; the names are those of `--dtype`.
enum class StoredType : std::uint8_t { f16, bf16, f32, f64, f8_e4m3, f8_e5m2 };
template <>
inline constexpr std::array<std::string_view, 6> enum_names<StoredType>{"f16", "bf16",    "f32",
                                                                        "f64", "f8_e4m3", "f8_e5m2"};

struct StoredTensor {
  std::string name;  ///< the key in the file; for .npy and raw files the file's name without its extension
  StoredType type{};
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;  ///< product of `shape`
};

/// Takes consecutive elements of a tensor; the memory is only lent for the call.
using ElementSink = std::function<void(std::span<const float>)>;

/// Elements come in storage order, so a column-major array is read as it lies. Every type becomes FP32: f16,
/// bf16, f8 exactly; f64 rounded to odd, so that rounding it again to any format of up to 22 significand bits
/// gives what rounding the f64 would, and a nonzero number never becomes zero nor a finite one infinite.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  [[nodiscard]] virtual const std::vector<StoredTensor>& tensors() const = 0;
  /// Elements [first, first + count) of tensor `index`, in order, in pieces of at most 16384; safe to call
  /// from several threads at once. Throws RequestError where the file turns out to be damaged there.
  virtual void read(std::size_t index, std::int64_t first, std::int64_t count,
                    const ElementSink& sink) const = 0;
};

/// Opens `path` by its extension (.npy, .npz, .safetensors), or as raw little-endian elements where
/// `raw_type` is given. The file is mapped; memory does not grow with its size. Throws RequestError with the
/// file, and the byte or the tensor where there is one, for a file that breaks its format.
[[nodiscard]] std::unique_ptr<TensorFile> open_tensor_file(const std::filesystem::path& path,
                                                           std::optional<StoredType> raw_type = std::nullopt);

}  // namespace halfscope
