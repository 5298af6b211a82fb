// A file of named tensors in any common format, read in pieces and never whole: what `analyze` looks at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/core/dtype.hpp>

namespace halfscope {

/// Cost of reading a tensor from its middle.
enum class Access : std::uint8_t {
  random,      ///< nothing: every element is found at once
  sequential,  ///< compressed: all elements before must be unpacked; readers that go forward do so once
};

struct StoredTensor {
  std::string name;  ///< the key in the file; for .npy and raw files the file's name without its extension
  DType type{};
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;  ///< product of `shape`
  Access access = Access::random;
  /// The axes of `shape` in the order in which the elements come, the slowest first; empty where that is the
  /// order of the shape, as the last axis then moves fastest.
  std::vector<std::size_t> axes{};
};

/// A tensor, or another member of an archive, that holds no numbers to look at: integers, text, pickled
/// objects.
struct SkippedTensor {
  std::string name;
  std::string reason;  ///< why, in a few words: "dtype I64"
};

/// A tensor of codes: packed or scale types, blocks, and integers that mean something beside another tensor.
/// It is among the skipped ones too.
struct StoredCodes {
  std::string name;
  std::string type;  ///< as the file calls it: "U8", "I32", "F4", "F8_E8M0", "Q4_K"
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  ///< byte in the file
  std::uint64_t bytes = 0;
};

/// Whether a tensor, by its name, is asked for.
using NameFilter = std::function<bool(std::string_view name)>;

/// Takes consecutive elements of a tensor; the memory is only lent for the call.
using ElementSink = std::function<void(std::span<const float>)>;
/// The same as they are stored, little-endian; the memory is aligned for any element.
using StoredSink = std::function<void(std::span<const std::byte>)>;

/// Elements come in storage order, so a column-major array is read as it lies (StoredTensor::axes). Every
/// type becomes FP32: f16, bf16, f8 exactly; f64 rounded to odd, so that rounding it again to any format of
/// up to 22 significand bits gives what rounding the f64 would, and a nonzero number never becomes zero nor a
/// finite one infinite.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  [[nodiscard]] virtual const std::vector<StoredTensor>& tensors() const = 0;
  /// Other content of the file, so that its user learns what was not looked at.
  [[nodiscard]] virtual const std::vector<SkippedTensor>& skipped() const {
    static const std::vector<SkippedTensor> nothing;
    return nothing;
  }
  [[nodiscard]] virtual const std::vector<StoredCodes>& codes() const {
    static const std::vector<StoredCodes> nothing;
    return nothing;
  }
  /// Bytes of one of `codes()`, from its byte `first` on.
  virtual void read_bytes(const StoredCodes& /*tensor*/, std::uint64_t /*first*/,
                          std::span<std::byte> /*to*/) const {}
  /// Elements [first, first + count) of tensor `index`, in order, in pieces of whole elements and at most
  /// 64 KiB; safe to call from several threads at once. Throws InvalidArgument where the file turns out to be
  /// damaged there.
  virtual void read_stored(std::size_t index, std::int64_t first, std::int64_t count,
                           const StoredSink& sink) const = 0;
  /// The same as FP32, in pieces of at most 16384 elements.
  void read(std::size_t index, std::int64_t first, std::int64_t count, const ElementSink& sink) const;
  /// As many elements of tensor `index` as `to` has room for, from `first` on, as FP32.
  virtual void read_into(std::size_t index, std::int64_t first, std::span<float> to) const;
  /// All elements of tensor `index` as FP32 in the order of its shape, whatever the order in the file;
  /// `values` has room for them.
  void read_row_major(std::size_t index, std::span<float> values) const;
};

/// A tensor of a file.
struct TensorInFile {
  const TensorFile& file;
  std::size_t index = 0;
  std::string_view file_name = "its file";  ///< for messages
  [[nodiscard]] const StoredTensor& tensor() const { return file.tensors().at(index); }
};

/// The type of elements that a file does not tell, and the option under which a caller of the program's or of
/// Python's states it, for messages.
struct StatedType {
  std::optional<DType> type{};
  std::string_view option = "--dtype";

  StatedType() = default;
  StatedType(std::nullopt_t) {}
  StatedType(DType stated) : type(stated) {}
  StatedType(std::optional<DType> stated) : type(stated) {}
  StatedType(std::optional<DType> stated, std::string_view name) : type(stated), option(name) {}
};

/// Opens `path` by its first bytes, and where they do not tell by its extension: .npy, .npz, .safetensors,
/// PyTorch's checkpoints (zip and older; of their pickles no function is called) and GGUF. Formats that are
/// known and not read are named in the error, with a way to convert them. Any other file holds raw
/// little-endian elements of `raw_type`, which must then be given. In .npy it gives a type to elements that
/// the format has no name for
/// ("V2", which is how NumPy saves ml_dtypes' bfloat16). Members of an archive that `wanted`, where given,
/// refuses are not looked into: they may be damaged, and are in neither list. Memory does not grow with the
/// file's size. Throws InvalidArgument with the file, and the byte or the tensor where there is one, for a
/// file that breaks its format and for an .npy file without floating-point elements.
[[nodiscard]] std::unique_ptr<TensorFile> open_tensor_file(const std::filesystem::path& path,
                                                           const StatedType& raw_type = {},
                                                           const NameFilter& wanted = {});

/// How a file in a folder is taken.
enum class FolderRole : std::uint8_t {
  other,     ///< as nothing: text, say
  tensors,   ///< as one to be opened
  not_read,  ///< as tensors in a format that is not read
};
struct FolderEntry {
  FolderRole role = FolderRole::other;
  std::string reason;  ///< for not_read: the file's kind, and how to convert it
};
/// By the name, and where it does not tell by the first bytes.
[[nodiscard]] FolderEntry look_at_file(const std::filesystem::path& path);

}  // namespace halfscope
