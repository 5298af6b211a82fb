// IDX: two zero bytes, the element type, the number of dimensions, big-endian 32-bit extents, the elements.
#include "sim/data/idx.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <halfscope/core/error.hpp>
#include <halfscope/io/file.hpp>

namespace halfscope {
namespace {

constexpr std::uint8_t unsigned_byte = 0x08;
constexpr std::string_view gzip_magic = "\x1f\x8b";

[[noreturn]] void refuse(std::string_view source, std::string_view problem) {
  throw InvalidArgument(fmt::format("{}: {}", source, problem));
}

/// The bytes of a file in order, as they are stored.
class ByteStream {
 public:
  explicit ByteStream(std::string_view bytes) : rest_(bytes) {}
  virtual ~ByteStream() = default;

  /// Fills `target` from its start; fewer bytes than it holds only at the end of the stream.
  virtual std::size_t take(std::span<std::uint8_t> target) {
    const std::size_t count = std::min(target.size(), rest_.size());
    std::copy_n(rest_.begin(), count, target.begin());
    rest_.remove_prefix(count);
    return count;
  }

 protected:
  std::string_view rest_;
};

/// The same, decompressed as they are asked for: a small file that expands to terabytes is never held whole.
class GzipStream : public ByteStream {
 public:
  GzipStream(std::string_view bytes, std::string_view source) : ByteStream(bytes), source_(source) {
    constexpr int gzip_with_largest_window = 16 + MAX_WBITS;
    if (inflateInit2(&zlib_, gzip_with_largest_window) != Z_OK)
      throw RuntimeFailure("zlib cannot start: out of memory");
  }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;
  ~GzipStream() override { inflateEnd(&zlib_); }

  std::size_t take(std::span<std::uint8_t> target) override {
    std::size_t filled = 0;
    while (filled < target.size() && !ended_) filled += inflate_into(target.subspan(filled));
    return filled;
  }

 private:
  std::size_t inflate_into(std::span<std::uint8_t> target) {
    constexpr std::size_t piece = 1 << 30;  // zlib counts in 32 bits
    const std::size_t offered = std::min(rest_.size(), piece);
    const std::size_t room = std::min(target.size(), piece);
    // zlib's interface takes a mutable pointer that it only reads from.
    zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
    zlib_.avail_in = static_cast<uInt>(offered);
    zlib_.next_out = target.data();
    zlib_.avail_out = static_cast<uInt>(room);
    const int status = inflate(&zlib_, Z_NO_FLUSH);
    rest_.remove_prefix(offered - zlib_.avail_in);
    const std::size_t produced = room - zlib_.avail_out;
    if (status == Z_STREAM_END) {
      ended_ = true;
      if (!rest_.empty())
        refuse(source_, fmt::format("{} bytes follow the end of the gzip data", rest_.size()));
    } else if (status == Z_BUF_ERROR || (status == Z_OK && produced == 0 && rest_.empty())) {
      refuse(source_, "the gzip data is truncated; fetch the file again");
    } else if (status == Z_MEM_ERROR) {
      throw RuntimeFailure(fmt::format("{}: not enough memory to decompress", source_));
    } else if (status != Z_OK) {
      refuse(source_, fmt::format("the gzip data is damaged ({}); fetch the file again",
                                  zlib_.msg != nullptr ? zlib_.msg : "needs a dictionary"));
    }
    return produced;
  }

  std::string_view source_;
  z_stream zlib_{};
  bool ended_ = false;
};

Shape read_header(ByteStream& stream, std::size_t dimensions, std::string_view source) {
  std::vector<std::uint8_t> bytes(4 + 4 * dimensions);
  const std::size_t count = stream.take(bytes);
  if (count >= 4 && (bytes[0] != 0 || bytes[1] != 0 || bytes[2] != unsigned_byte || bytes[3] != dimensions)) {
    refuse(
        source,
        fmt::format("byte 0: magic number {:02x}{:02x}{:02x}{:02x}; expected 000008{:02x}, IDX of unsigned "
                    "bytes with {} dimensions",
                    bytes[0], bytes[1], bytes[2], bytes[3], dimensions, dimensions));
  }
  if (count < bytes.size()) {
    refuse(source, fmt::format("truncated: {} bytes, but the IDX header takes {}", count, bytes.size()));
  }
  Shape shape;
  for (std::size_t at = 4; at < bytes.size(); at += 4) {
    shape.push_back(std::int64_t{bytes[at]} << 24 | bytes[at + 1] << 16 | bytes[at + 2] << 8 | bytes[at + 3]);
    if (shape.back() == 0) refuse(source, fmt::format("byte {}: an extent is 0; the file holds no data", at));
  }
  return shape;
}

/// Exactly as many bytes as `shape` has elements, read piece by piece so that a false header allocates
/// little.
std::vector<std::uint8_t> read_values(ByteStream& stream, const Shape& shape, std::string_view source) {
  constexpr std::size_t piece = 1 << 20;
  std::size_t expected = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(expected, static_cast<std::size_t>(extent), &expected)) {
      refuse(source, fmt::format("byte 4: no file holds the {} bytes of its header", to_string(shape)));
    }
  }
  std::vector<std::uint8_t> values;
  while (values.size() < expected) {
    const std::size_t before = values.size();
    const std::size_t wanted = std::min(piece, expected - before);
    values.resize(before + wanted);
    const std::size_t count = stream.take(std::span(values).subspan(before));
    if (count == wanted) continue;
    refuse(source, fmt::format("truncated: the header promises {} = {} bytes, the file holds {}",
                               to_string(shape), expected, before + count));
  }
  std::array<std::uint8_t, 1> extra;
  if (stream.take(extra) != 0) {
    refuse(source,
           fmt::format("bytes follow the {} = {} that the header promises", to_string(shape), expected));
  }
  return values;
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& path, std::size_t dimensions) {
  const std::string contents = read_file(path);
  const std::string source = printable(path);
  const std::unique_ptr<ByteStream> stream = contents.starts_with(gzip_magic)
                                                 ? std::make_unique<GzipStream>(contents, source)
                                                 : std::make_unique<ByteStream>(contents);
  IdxArray array;
  array.shape = read_header(*stream, dimensions, source);
  array.values = read_values(*stream, array.shape, source);
  return array;
}

}  // namespace halfscope
