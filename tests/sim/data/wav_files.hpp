// WAVE files for tests, put together by hand.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace halfscope {

inline std::string little_endian(std::uint32_t value, std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

/// Format of a WAVE file.
struct WavFormat {
  std::uint32_t rate = 16000, channels = 1, bits = 16, code = 1;
};

/// A file of `data`, which holds what `format` says.
inline std::string wav_bytes(const std::string& data, const WavFormat& format = {}) {
  const std::uint32_t frame = format.channels * format.bits / 8;
  const std::string chunk = little_endian(format.code, 2) + little_endian(format.channels, 2) +
                            little_endian(format.rate, 4) + little_endian(format.rate * frame, 4) +
                            little_endian(frame, 2) + little_endian(format.bits, 2);
  const auto size = [](const std::string& bytes) {
    return little_endian(static_cast<std::uint32_t>(bytes.size()), 4);
  };
  const std::string body = "WAVEfmt " + size(chunk) + chunk + "data" + size(data) + data;
  return "RIFF" + size(body) + body;
}

/// Samples within [-1, 1) as 16 bits each.
inline std::string pcm_bytes(std::span<const float> samples) {
  std::string bytes;
  for (const float sample : samples) {
    bytes += little_endian(static_cast<std::uint32_t>(static_cast<std::int32_t>(sample * 32768)), 2);
  }
  return bytes;
}

}  // namespace halfscope
