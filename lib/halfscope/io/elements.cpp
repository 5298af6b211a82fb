// Reads elements in pieces that fit the fast caches.
#include <halfscope/io/detail/elements.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <halfscope/io/detail/parse_error.hpp>

namespace halfscope {
namespace {

constexpr std::size_t step_bytes = 1 << 16;  // bytes of the file at a time: few enough calls to the system
static_assert(step_bytes / sizeof(float) <= 16384, "as TensorFile::read promises");
static_assert(step_bytes % sizeof(double) == 0, "a step ends between elements");

void swap_bytes(std::size_t width, std::span<std::byte> bytes) {
  for (auto element = bytes.begin(); element != bytes.end(); element += static_cast<std::ptrdiff_t>(width)) {
    std::reverse(element, element + static_cast<std::ptrdiff_t>(width));
  }
}

}  // namespace

void read_elements(const ElementEncoding& encoding, std::int64_t count, const ByteSource& source,
                   const StoredSink& sink) {
  const std::size_t width = bytes_per_element(encoding.type);
  alignas(64) std::array<std::byte, step_bytes> buffer;
  for (std::uint64_t left = static_cast<std::uint64_t>(count) * width; left > 0;) {
    const auto step = std::span(buffer).first(std::min<std::uint64_t>(left, step_bytes));
    source(step);
    if (encoding.order == std::endian::big) swap_bytes(width, step);
    sink(step);
    left -= step.size();
  }
}

void check_range(const StoredTensor& tensor, std::int64_t first, std::int64_t count) {
  if (first < 0 || count < 0 || first > tensor.elements || count > tensor.elements - first) {
    refuse(fmt::format("tensor {}", excerpt(tensor.name)),
           fmt::format("{} elements from {} on are not within its {}", count, first, tensor.elements));
  }
}

}  // namespace halfscope
