// IDX and gzip bytes made by hand, for the tests of the readers.
#pragma once

#include <zlib.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope {

/// Header and values of an IDX file of unsigned bytes.
[[nodiscard]] inline std::string idx_bytes(const std::vector<std::uint32_t>& extents,
                                           std::string_view values) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents) {
    for (const unsigned shift : {24u, 16u, 8u, 0u}) bytes += static_cast<char>(extent >> shift & 0xff);
  }
  return bytes.append(values);
}

/// `bytes` as one gzip member.
[[nodiscard]] inline std::string gzip(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2");
  }
  std::string result(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

}  // namespace halfscope
