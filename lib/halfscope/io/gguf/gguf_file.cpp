// Layout (ggml, docs/gguf.md): magic, version, counts, metadata, descriptions of tensors, and from the next
// multiple of the alignment on the data.
#include <halfscope/io/gguf/detail/gguf_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <halfscope/io/detail/flat_places.hpp>
#include <halfscope/io/detail/parse_error.hpp>

namespace halfscope {
namespace {

constexpr std::uint64_t longest_gguf_text = 1 << 16, most_gguf_tensors = 1 << 19, most_gguf_entries = 1 << 20;
constexpr std::uint32_t most_gguf_axes = 8;
constexpr std::uint32_t gguf_text = 8, gguf_array = 9, gguf_uint32 = 4;

/// Bytes of the fixed-size gguf_types of metadata; 0 of texts and arrays.
constexpr std::array<std::uint64_t, 13> metadata_bytes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/// A type of elements, which come in blocks of so many bytes.
struct GgufType {
  std::uint32_t code;
  std::string_view name;
  std::optional<DType> stored;
  std::uint64_t elements, bytes;  ///< in a block
};
constexpr std::array gguf_types{
    GgufType{0, "F32", DType::f32, 1, 4},
    GgufType{1, "F16", DType::f16, 1, 2},
    GgufType{30, "BF16", DType::bf16, 1, 2},
    GgufType{28, "F64", DType::f64, 1, 8},
    GgufType{2, "Q4_0", {}, 32, 18},
    GgufType{3, "Q4_1", {}, 32, 20},
    GgufType{6, "Q5_0", {}, 32, 22},
    GgufType{7, "Q5_1", {}, 32, 24},
    GgufType{8, "Q8_0", {}, 32, 34},
    GgufType{9, "Q8_1", {}, 32, 40},
    GgufType{10, "Q2_K", {}, 256, 84},
    GgufType{11, "Q3_K", {}, 256, 110},
    GgufType{12, "Q4_K", {}, 256, 144},
    GgufType{13, "Q5_K", {}, 256, 176},
    GgufType{14, "Q6_K", {}, 256, 210},
    GgufType{15, "Q8_K", {}, 256, 292},
    GgufType{16, "IQ2_XXS", {}, 256, 66},
    GgufType{17, "IQ2_XS", {}, 256, 74},
    GgufType{18, "IQ3_XXS", {}, 256, 98},
    GgufType{19, "IQ1_S", {}, 256, 50},
    GgufType{20, "IQ4_NL", {}, 32, 18},
    GgufType{21, "IQ3_S", {}, 256, 110},
    GgufType{22, "IQ2_S", {}, 256, 82},
    GgufType{23, "IQ4_XS", {}, 256, 136},
    GgufType{24, "I8", {}, 1, 1},
    GgufType{25, "I16", {}, 1, 2},
    GgufType{26, "I32", {}, 1, 4},
    GgufType{27, "I64", {}, 1, 8},
    GgufType{29, "IQ1_M", {}, 256, 56},
    GgufType{34, "TQ1_0", {}, 256, 54},
    GgufType{35, "TQ2_0", {}, 256, 66},
    GgufType{39, "MXFP4", {}, 32, 17},
    GgufType{40, "NVFP4", {}, 64, 36},
    GgufType{41, "Q1_0", {}, 128, 18},
};

/// Reads forwards, a buffer at a time.
class GgufCursor {
 public:
  explicit GgufCursor(const InputFile& file) : file_(file) {}

  [[nodiscard]] std::uint64_t at() const { return at_; }
  void skip(std::uint64_t bytes) {
    need(bytes);
    at_ += bytes;
  }
  template <typename Number>
  [[nodiscard]] Number number() {
    Number value{};
    copy(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  [[nodiscard]] std::string text() {
    const auto size = number<std::uint64_t>();
    if (size > longest_gguf_text) fail(fmt::format("a name of {} bytes", size));
    std::string text(size, '\0');
    copy(std::as_writable_bytes(std::span(text)));
    return text;
  }
  [[noreturn]] void fail(std::string_view problem) const {
    refuse(file_.name(), fmt::format("byte {}: {}", at_, problem));
  }

 private:
  void need(std::uint64_t bytes) const {
    if (bytes > file_.size() - at_) fail(fmt::format("truncated: {} bytes more are needed", bytes));
  }
  void copy(std::span<std::byte> to) {
    need(to.size());
    if (at_ < begin_ || at_ + to.size() > begin_ + size_) {
      begin_ = at_;
      size_ = std::min<std::uint64_t>(buffer_.size(), file_.size() - at_);
      file_.read(begin_, std::span(buffer_).first(size_));
    }
    std::memcpy(to.data(), buffer_.data() + (at_ - begin_), to.size());
    at_ += to.size();
  }

  const InputFile& file_;
  std::uint64_t at_ = 0, begin_ = 0, size_ = 0;
  std::array<std::byte, longest_gguf_text> buffer_;
};

void skip_gguf_value(GgufCursor& cursor, std::uint32_t type) {
  if (type == gguf_text) return cursor.skip(cursor.number<std::uint64_t>());
  if (type == gguf_array) {
    const auto item = cursor.number<std::uint32_t>();
    auto count = cursor.number<std::uint64_t>();
    if (item == gguf_text) {
      while (count-- > 0) skip_gguf_value(cursor, item);
      return;
    }
    if (item >= metadata_bytes.size() || metadata_bytes[item] == 0) cursor.fail("an array of no known type");
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(count, metadata_bytes[item], &bytes))
      cursor.fail("an array of too many values");
    return cursor.skip(bytes);
  }
  if (type >= metadata_bytes.size()) cursor.fail(fmt::format("metadata of the unknown type {}", type));
  cursor.skip(metadata_bytes[type]);
}

/// Passes over the metadata, and returns the alignment that it tells.
std::uint64_t read_alignment(GgufCursor& cursor, std::uint64_t entries) {
  std::uint64_t alignment = 32;
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::string key = cursor.text();
    const auto type = cursor.number<std::uint32_t>();
    if (key == "general.alignment" && type == gguf_uint32) {
      alignment = cursor.number<std::uint32_t>();
      if (alignment == 0) cursor.fail("an alignment of 0");
    } else {
      skip_gguf_value(cursor, type);
    }
  }
  return alignment;
}

struct GgufTensor {
  std::string name;
  std::uint32_t type = 0;
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0;
};

/// Extents stand in the file from the fastest to the slowest.
GgufTensor read_gguf_tensor(GgufCursor& cursor) {
  GgufTensor tensor;
  tensor.name = cursor.text();
  const auto axes = cursor.number<std::uint32_t>();
  if (axes > most_gguf_axes) cursor.fail(fmt::format("a tensor of {} axes", axes));
  for (std::uint32_t axis = 0; axis < axes; ++axis) {
    const auto extent = cursor.number<std::int64_t>();
    if (extent < 0) cursor.fail("a negative extent");
    tensor.shape.insert(tensor.shape.begin(), extent);
  }
  tensor.type = cursor.number<std::uint32_t>();
  tensor.offset = cursor.number<std::uint64_t>();
  return tensor;
}

/// Bytes of a tensor, of which the data holds that many from its offset on.
std::uint64_t gguf_bytes_of(const GgufTensor& tensor, const GgufType& type, std::uint64_t held,
                            const std::string& where) {
  const std::uint64_t elements = checked_size(tensor.shape, 1, where);
  const auto row = static_cast<std::uint64_t>(tensor.shape.empty() ? 1 : tensor.shape.back());
  if (row % type.elements != 0)
    refuse(where, fmt::format("rows of {} elements are no whole blocks of {}, which {} has", row,
                              type.elements, type.name));
  std::uint64_t bytes = 0;
  const bool is_beyond = __builtin_mul_overflow(elements / type.elements, type.bytes, &bytes);
  if (is_beyond || tensor.offset > held || bytes > held - tensor.offset)
    refuse(where, fmt::format("truncated: {} bytes from byte {} of the data on, which has {}", bytes,
                              tensor.offset, held));
  return bytes;
}

void add_gguf_tensor(GgufTensor tensor, std::uint64_t data_begin, FlatTensorFile& file) {
  const auto* const type =
      std::ranges::find_if(gguf_types, [&](const GgufType& known) { return known.code == tensor.type; });
  if (type == gguf_types.end())
    return file.skip({std::move(tensor.name), fmt::format("GGUF's type {}", tensor.type)});
  const std::string where = fmt::format("{}: tensor {}", file.file().name(), excerpt(tensor.name));
  const std::uint64_t size = file.file().size(), held = size > data_begin ? size - data_begin : 0;
  const std::uint64_t bytes = gguf_bytes_of(tensor, *type, held, where), begin = data_begin + tensor.offset;
  if (!type->stored) {
    file.add_codes({tensor.name, std::string(type->name), tensor.shape, begin, bytes});
    return file.skip({std::move(tensor.name), fmt::format("GGUF's type {}", type->name)});
  }
  file.add({std::move(tensor.name), *type->stored, std::move(tensor.shape),
            static_cast<std::int64_t>(bytes / type->bytes)},
           {begin, {*type->stored}});
}

}  // namespace

std::unique_ptr<TensorFile> open_gguf(InputFile file) {
  GgufCursor cursor(file);
  cursor.skip(gguf_magic.size());
  const auto version = cursor.number<std::uint32_t>();
  if (version != 2 && version != 3) cursor.fail(fmt::format("version {} of GGUF; 2 and 3 are read", version));
  const auto count = cursor.number<std::uint64_t>();
  const auto entries = cursor.number<std::uint64_t>();
  if (count > most_gguf_tensors || entries > most_gguf_entries)
    cursor.fail(fmt::format("{} tensors and {} entries of metadata are too many", count, entries));
  const std::uint64_t alignment = read_alignment(cursor, entries);
  std::vector<GgufTensor> tensors;
  for (std::uint64_t i = 0; i < count; ++i) tensors.push_back(read_gguf_tensor(cursor));
  const std::uint64_t data_begin = (cursor.at() + alignment - 1) / alignment * alignment;
  auto opened = std::make_unique<FlatTensorFile>(std::move(file));
  for (GgufTensor& tensor : tensors) add_gguf_tensor(std::move(tensor), data_begin, *opened);
  return opened;
}

}  // namespace halfscope
