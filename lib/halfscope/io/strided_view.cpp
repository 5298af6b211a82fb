// Goes through a view with a window of the file, which moves forwards.
#include <halfscope/io/detail/strided_view.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include <halfscope/io/detail/element_order.hpp>

namespace halfscope {
namespace {

constexpr std::size_t window_bytes = 1 << 16;

/// Counts through the axes; the offset of each element from the first, in elements.
class ViewOffsets {
 public:
  ViewOffsets(const std::vector<StrideAxis>& axes, std::int64_t first) {
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      digits_.push_back({axis->extent, axis->stride, first % axis->extent});
      offset_ += digits_.back().at * axis->stride;
      first /= axis->extent;
    }
  }
  [[nodiscard]] std::int64_t next() {
    const std::int64_t here = offset_;
    for (Digit& digit : digits_) {
      offset_ += digit.stride;
      if (++digit.at < digit.extent) break;
      offset_ -= digit.stride * digit.extent;
      digit.at = 0;
    }
    return here;
  }

 private:
  struct Digit {
    std::int64_t extent = 0, stride = 0, at = 0;
  };
  std::vector<Digit> digits_;  ///< the fastest first
  std::int64_t offset_ = 0;
};

/// Bytes that are worth reading at once: over the axes whose elements lie close to each other.
std::uint64_t span_of(const std::vector<StrideAxis>& axes, std::size_t width) {
  constexpr std::uint64_t page = 4096;
  std::uint64_t span = width;
  for (auto axis = axes.rbegin(); axis != axes.rend() && span < window_bytes; ++axis) {
    const std::uint64_t step = static_cast<std::uint64_t>(axis->stride) * width;
    if (step > span + page) break;
    span += std::min<std::uint64_t>(static_cast<std::uint64_t>(axis->extent - 1), window_bytes) * step;
  }
  return std::min<std::uint64_t>(span, window_bytes);
}

/// Some bytes of the file, read again where others are asked for.
class FileWindow {
 public:
  FileWindow(const InputFile& file, std::uint64_t span) : file_(file), span_(span) {}
  [[nodiscard]] const std::byte* at(std::uint64_t byte, std::size_t width) {
    if (byte < begin_ || byte + width > begin_ + size_) {
      begin_ = byte;
      size_ = std::min(span_, std::max<std::uint64_t>(file_.size(), byte + width) - byte);
      file_.read(begin_, std::span(bytes_).first(size_));
    }
    return bytes_.data() + (byte - begin_);
  }

 private:
  const InputFile& file_;
  std::uint64_t span_, begin_ = 0, size_ = 0;
  std::array<std::byte, window_bytes> bytes_;
};

bool lie_side_by_side(const std::vector<StrideAxis>& axes) {
  std::int64_t dense = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (axis->stride != dense) return false;
    dense *= axis->extent;
  }
  return true;
}

}  // namespace

StridedView strided_view(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
  std::vector<std::size_t> sorted(shape.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::ranges::stable_sort(sorted, [&](std::size_t a, std::size_t b) { return strides[a] > strides[b]; });
  StridedView view;
  for (const std::size_t axis : sorted) {
    if (shape[axis] != 1) view.axes.push_back({shape[axis], strides[axis]});
  }
  view.order = order_of_axes(shape, std::move(sorted));
  const bool is_empty = std::ranges::find(shape, 0) != shape.end();
  if (is_empty || lie_side_by_side(view.axes)) view.axes.clear();
  return view;
}

void read_strided(const InputFile& file, std::uint64_t begin, const std::vector<StrideAxis>& axes,
                  const ElementRange& range, const StoredSink& sink) {
  const std::size_t width = bytes_per_element(range.encoding.type);
  ViewOffsets offsets(axes, range.first);
  FileWindow window(file, span_of(axes, width));
  const ByteSource gather = [&](std::span<std::byte> to) {
    for (std::size_t at = 0; at < to.size(); at += width) {
      const std::uint64_t byte = begin + static_cast<std::uint64_t>(offsets.next()) * width;
      std::memcpy(to.data() + at, window.at(byte, width), width);
    }
  };
  read_elements(range.encoding, range.count, gather, sink);
}

}  // namespace halfscope
