// Steps that fit the fast caches: what a step reads is turned into floats, and looked at, while it is there.
#include <halfscope/io/elements.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <halfscope/io/refusal.hpp>
#include <halfscope/kernel/widen.hpp>

namespace halfscope {
namespace {

constexpr std::size_t step_bytes = 1 << 16;   // of the file: few enough calls to the system
constexpr std::size_t piece_elements = 4096;  // handed out at a time: 16 KiB of floats
static_assert(step_bytes / sizeof(float) <= 16384, "as TensorFile::read promises");
static_assert(step_bytes % sizeof(double) == 0, "a step ends between elements");

void swap_bytes(std::size_t width, std::span<std::byte> bytes) {
  for (auto element = bytes.begin(); element != bytes.end(); element += static_cast<std::ptrdiff_t>(width)) {
    std::reverse(element, element + static_cast<std::ptrdiff_t>(width));
  }
}

/// Hands out the elements of one step; floats as they lie, which saves a copy.
void deliver(StoredType type, std::span<const std::byte> bytes, const ElementSink& sink) {
  if (type == StoredType::f32) {
    return sink({reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)});
  }
  const std::size_t width = bytes_per_element(type);
  std::array<float, piece_elements> floats;
  for (std::size_t at = 0; at < bytes.size(); at += piece_elements * width) {
    const auto piece = std::span(floats).first(std::min(piece_elements, (bytes.size() - at) / width));
    widen(type, bytes.data() + at, piece);
    sink(piece);
  }
}

}  // namespace

void read_elements(const ElementEncoding& encoding, std::int64_t count, const ByteSource& source,
                   const ElementSink& sink) {
  const std::size_t width = bytes_per_element(encoding.type);
  alignas(64) std::array<std::byte, step_bytes> buffer;
  for (std::uint64_t left = static_cast<std::uint64_t>(count) * width; left > 0;) {
    const auto step = std::span(buffer).first(std::min<std::uint64_t>(left, step_bytes));
    source(step);
    if (encoding.order == std::endian::big) swap_bytes(width, step);
    deliver(encoding.type, step, sink);
    left -= step.size();
  }
}

void check_range(const StoredTensor& tensor, std::int64_t first, std::int64_t count) {
  if (first < 0 || count < 0 || first > tensor.elements || count > tensor.elements - first) {
    reject(fmt::format("tensor {}", excerpt(tensor.name)),
           fmt::format("{} elements from {} on are not within its {}", count, first, tensor.elements));
  }
}

}  // namespace halfscope
