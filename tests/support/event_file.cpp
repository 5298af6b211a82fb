// Writes event files of TensorBoard, after the description of their records and messages.
#include "tests/support/event_file.hpp"

#include <bit>

namespace halfscope {
namespace event_file_of_tests {
namespace {

template <typename Number>
std::string little_endian_bytes(Number number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(number >> (8 * i))));
  return bytes;
}

std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes.push_back(static_cast<char>((number & 0x7f) | 0x80));
  return bytes + static_cast<char>(number);
}

/// A field that has a length.
std::string field(std::uint64_t key, std::string_view content) {
  return varint(key << 3 | 2) + varint(content.size()) + std::string(content);
}

/// CRC-32C bit by bit.
std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t rest = ~0u;
  for (const char c : bytes) {
    rest ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0x82f63b78u : 0);
  }
  return std::rotr(~rest, 15) + 0xa282ead8u;
}

std::string event(std::int64_t step, std::string_view value) {
  const std::string time = varint(1 << 3 | 1) + little_endian_bytes(std::uint64_t{0x41d9000000000000});
  return event_record(time + varint(2 << 3) + varint(static_cast<std::uint64_t>(step)) +
                      field(5, field(1, value)));
}

std::string bits_of(float value) {
  return little_endian_bytes(std::bit_cast<std::uint32_t>(value));
}

}  // namespace
}  // namespace event_file_of_tests

using namespace event_file_of_tests;

std::string event_record(std::string_view message) {
  const std::string size = little_endian_bytes<std::uint64_t>(message.size());
  return size + little_endian_bytes(checksum(size)) + std::string(message) +
         little_endian_bytes(checksum(message));
}

std::string event_file_head() {
  return event_record(field(3, "brain.Event:2"));
}

std::string scalar_record(std::int64_t step, std::string_view tag, float value) {
  return event(step, field(1, tag) + varint(2 << 3 | 5) + bits_of(value));
}

std::string tensor_record(std::int64_t step, std::string_view tag, float value) {
  const std::string tensor = varint(1 << 3) + varint(1) + field(2, "") + field(4, bits_of(value));
  return event(step, field(1, tag) + field(8, tensor) + field(9, field(4, "")));
}

}  // namespace halfscope
