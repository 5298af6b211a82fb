// Walks through the chunks of a RIFF file.
#include "sim/data/wav.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include <halfscope/core/error.hpp>

namespace halfscope {
namespace {

constexpr std::size_t chunk_header = 8, riff_header = 12, format_size = 16;
constexpr std::uint32_t pcm = 1;

/// A little-endian number of `size` bytes.
std::uint32_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t number = 0;
  for (std::size_t i = size; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

[[noreturn]] void fail(std::string_view source, std::string_view what) {
  throw InvalidArgument(fmt::format("{}: {}", source, what));
}

/// Content of the chunk called `name`; empty where there is none.
std::optional<std::string_view> find_chunk(std::string_view bytes, std::string_view name,
                                           std::string_view source, SampleCount count) {
  std::size_t at = riff_header;
  while (at + chunk_header <= bytes.size()) {
    const std::size_t size = number_at(bytes, at + 4, 4), left = bytes.size() - at - chunk_header;
    const bool wanted = bytes.substr(at, 4) == name;
    if (size > left && count == SampleCount::as_declared)
      fail(source, fmt::format("the file ends {} bytes too early", size - left));
    if (wanted) return bytes.substr(at + chunk_header, std::min(size, left));
    at += chunk_header + std::min(size, left) + size % 2;
  }
  return std::nullopt;
}

/// Samples per second.
std::int64_t checked_rate(std::string_view format, std::string_view source) {
  if (format.size() < format_size) fail(source, "its format chunk is too short");
  const std::uint32_t code = number_at(format, 0, 2), channels = number_at(format, 2, 2),
                      bits = number_at(format, 14, 2);
  if (code != pcm || channels != 1 || bits != 16) {
    fail(source, fmt::format("format {} of {} channels and {} bits; give PCM (1) of 1 channel and 16 bits",
                             code, channels, bits));
  }
  return number_at(format, 4, 4);
}

}  // namespace

Recording parse_wav(std::string_view bytes, std::string_view source, SampleCount count) {
  if (bytes.size() < riff_header || bytes.substr(0, 4) != "RIFF" || bytes.substr(8, 4) != "WAVE")
    fail(source, "this is no WAVE file");
  const auto format = find_chunk(bytes, "fmt ", source, count);
  if (!format) fail(source, "a WAVE file without a format");
  Recording recording{checked_rate(*format, source), {}};
  const auto data = find_chunk(bytes, "data", source, count);
  if (!data) fail(source, "a WAVE file without samples");
  for (std::size_t at = 0; at + 1 < data->size(); at += 2) {
    const auto sample = static_cast<std::int16_t>(number_at(*data, at, 2));
    recording.samples.push_back(static_cast<float>(sample) * 0x1p-15f);
  }
  return recording;
}

}  // namespace halfscope
