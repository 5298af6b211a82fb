// Takes rows of positions in the order of heads, and back.
#include "sim/models/parts/heads.hpp"

#include "sim/layers/layers.hpp"

namespace halfscope {
namespace {

/// Extents of positions, of which each head has a part.
struct HeadExtents {
  std::int64_t batch, time, heads, part;
};

}  // namespace

TensorRef split_heads(Tape& tape, const std::string& name, TensorRef x, std::int64_t heads) {
  const Shape shape = tape.value(x).shape();
  const HeadExtents e{shape[0], shape[1], heads, shape[2] / heads};
  std::vector<std::int32_t> rows;
  for (std::int64_t b = 0; b < e.batch; ++b)
    for (std::int64_t h = 0; h < e.heads; ++h)
      for (std::int64_t t = 0; t < e.time; ++t)
        rows.push_back(static_cast<std::int32_t>((b * e.time + t) * e.heads + h));
  return take_rows(tape, name, x, {rows, e.part, {e.batch, e.heads, e.time, e.part}});
}

TensorRef join_heads(Tape& tape, const std::string& name, TensorRef x) {
  const Shape shape = tape.value(x).shape();
  const HeadExtents e{shape[0], shape[2], shape[1], shape[3]};
  std::vector<std::int32_t> rows;
  for (std::int64_t b = 0; b < e.batch; ++b)
    for (std::int64_t t = 0; t < e.time; ++t)
      for (std::int64_t h = 0; h < e.heads; ++h)
        rows.push_back(static_cast<std::int32_t>((b * e.heads + h) * e.time + t));
  return take_rows(tape, name, x, {rows, e.part, {e.batch, e.time, e.heads * e.part}});
}

TensorRef repeat_heads(Tape& tape, const std::string& name, TensorRef x, std::int64_t heads) {
  const Shape shape = tape.value(x).shape();
  const std::int64_t copies = heads / shape[1];
  std::vector<std::int32_t> rows;
  for (std::int64_t head = 0; head < shape[0] * heads; ++head)
    rows.push_back(static_cast<std::int32_t>(head / copies));
  return take_rows(tape, name, x, {rows, shape[2] * shape[3], {shape[0], heads, shape[2], shape[3]}});
}

}  // namespace halfscope
