// Where two files have different orders, those that are not in the order of the shape are brought into it.
#include <halfscope/io/detail/file_pair.hpp>

#include <fmt/format.h>

#include <halfscope/core/error.hpp>
#include <halfscope/core/escape.hpp>

namespace halfscope {

TensorPair::TensorPair(const TensorInFile& one, const TensorInFile& other) : one_(one), other_(other) {
  if (one_.tensor().axes == other_.tensor().axes) return;
  for (Side* side : {&one_, &other_}) {
    if (!side->tensor().axes.empty()) side->reorder();
  }
}

std::vector<TensorPart> TensorPair::parts() const {
  constexpr std::int64_t elements = 16 * pair_block;
  const bool anywhere = one_.is_read_anywhere() && other_.is_read_anywhere();
  StoredTensor tensor = one_.tensor();
  tensor.access = Access::random;
  std::vector<TensorPart> parts;
  append_parts(0, tensor, anywhere ? elements : std::max(elements, tensor.elements), parts);
  return parts;
}

void TensorPair::Side::reorder() {
  if (tensor().elements > most_reordered) {
    throw InvalidArgument(fmt::format(
        "{}: tensor '{}' has {} elements in another order than its partner, more than the {} that are "
        "reordered in memory; save both in one order (numpy.ascontiguousarray)",
        from_.file_name, escaped(tensor().name), tensor().elements, most_reordered));
  }
  in_order_.resize(static_cast<std::size_t>(tensor().elements));
  from_.file.read_row_major(from_.index, in_order_);
}

std::span<const float> TensorPair::Side::range(std::int64_t first, std::int64_t count,
                                               std::vector<float>& buffer) const {
  if (!in_order_.empty())
    return std::span(in_order_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  buffer.clear();
  from_.file.read(from_.index, first, count, [&](std::span<const float> piece) {
    buffer.insert(buffer.end(), piece.begin(), piece.end());
  });
  return buffer;
}

}  // namespace halfscope
