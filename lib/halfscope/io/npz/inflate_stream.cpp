// zlib's inflate, fed from the file in steps.
#include <halfscope/io/npz/detail/inflate_stream.hpp>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

#include <halfscope/io/detail/parse_error.hpp>

namespace halfscope {

/// Does not move: zlib keeps the address of its stream.
struct InflateStream::State {
  State(const InputFile& input, const ZipMember& packed) : file(input), member(packed) {
    constexpr int raw_deflate = -15;  // window bits; negative: no header, as zip has it
    if (inflateInit2(&zlib, raw_deflate) != Z_OK) throw std::bad_alloc();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { inflateEnd(&zlib); }

  [[noreturn]] void fail(std::string_view problem) const {
    const std::uint64_t byte = member.begin + taken - zlib.avail_in;
    refuse(place_of(member, file), fmt::format("byte {}: {}", byte, problem));
  }

  void refill() {
    if (zlib.avail_in != 0 || taken == member.packed_size) return;
    const auto step =
        std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), member.packed_size - taken));
    file.read(member.begin + taken, step);
    taken += step.size();
    zlib.next_in = reinterpret_cast<Bytef*>(step.data());
    zlib.avail_in = static_cast<uInt>(step.size());
  }

  /// Unpacks bytes into `to` and returns how many; fewer than there is room for only at the stream's end.
  std::size_t unpack(std::span<std::byte> to) {
    zlib.next_out = reinterpret_cast<Bytef*>(to.data());
    zlib.avail_out = static_cast<uInt>(to.size());
    while (!ended && zlib.avail_out != 0) {
      refill();
      const int status = inflate(&zlib, Z_NO_FLUSH);
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      if (status == Z_BUF_ERROR) fail("the packed bytes end before the member does");
      if (status != Z_OK && status != Z_STREAM_END) {
        fail(fmt::format("damaged: {}", zlib.msg != nullptr ? zlib.msg : "not deflated data"));
      }
      ended = status == Z_STREAM_END;
    }
    return to.size() - zlib.avail_out;
  }

  /// At the declared size: nothing may follow, and the checksum must be right.
  void check_end() {
    std::byte more;
    if (unpack({&more, 1}) != 0) fail(fmt::format("unpacks to more than the {} bytes declared", member.size));
    if (zlib.avail_in != 0 || taken != member.packed_size)
      fail("the packed bytes go on after the member's end");
    if (crc != member.crc) {
      fail(fmt::format("damaged: the checksum is {:08x}, it should be {:08x}", crc, member.crc));
    }
  }

  const InputFile& file;
  ZipMember member;
  z_stream zlib{};
  std::uint64_t taken = 0;  // packed bytes read from the file
  std::uint64_t position = 0;
  std::uint32_t crc = 0;
  bool ended = false;
  std::array<std::byte, 1 << 15> buffer;
};

InflateStream::InflateStream(const InputFile& file, const ZipMember& member)
    : state_(std::make_unique<State>(file, member)) {}
InflateStream::InflateStream(InflateStream&&) noexcept = default;
InflateStream& InflateStream::operator=(InflateStream&&) noexcept = default;
InflateStream::~InflateStream() = default;

std::uint64_t InflateStream::position() const {
  return state_->position;
}

void InflateStream::read(std::span<std::byte> to) {
  State& s = *state_;
  const std::size_t count = s.unpack(to);
  s.position += count;
  if (count < to.size()) {
    s.fail(fmt::format("unpacks to {} bytes, {} are declared", s.position, s.member.size));
  }
  s.crc = static_cast<std::uint32_t>(
      ::crc32(s.crc, reinterpret_cast<const Bytef*>(to.data()), static_cast<uInt>(to.size())));
  if (s.position == s.member.size) s.check_end();
}

void InflateStream::skip_to(std::uint64_t position) {
  std::array<std::byte, 1 << 15> dropped;
  while (state_->position < position) {
    read(std::span(dropped).first(std::min<std::uint64_t>(dropped.size(), position - state_->position)));
  }
}

}  // namespace halfscope
