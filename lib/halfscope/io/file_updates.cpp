// The two files read block by block beside each other.
#include <halfscope/io/file_updates.hpp>

#include <halfscope/device/array.hpp>
#include <halfscope/io/detail/tensor_parts.hpp>
#include <halfscope/stats/lost_updates.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t block = std::int64_t{1} << 16;

void read_range(const TensorInFile& from, std::int64_t first, std::int64_t count,
                std::vector<float>& values) {
  values.clear();
  from.file.read(from.index, first, count, [&](std::span<const float> piece) {
    values.insert(values.end(), piece.begin(), piece.end());
  });
}

LostUpdates count_part(const TensorInFile& weights, const TensorInFile& updates, const FloatFormat& format,
                       const TensorPart& part) {
  LostUpdates found;
  std::vector<float> before, update;
  for (std::int64_t done = 0; done < part.count; done += block) {
    const std::int64_t count = std::min(block, part.count - done);
    read_range(weights, part.first + done, count, before);
    read_range(updates, part.first + done, count, update);
    const UpdateCounters counters =
        count_lost_updates({.tensor = updates.tensor().name}, {format}, before, update);
    found.elements += counters.elements;
    found.nonzero += counters.nonzero;
    found.lost += counters.lost;
  }
  return found;
}

}  // namespace

LostUpdates count_lost_updates(const TensorInFile& weights, const TensorInFile& updates,
                               const FloatFormat& format) {
  const StoredTensor& tensor = updates.tensor();
  if (weights.tensor().shape != tensor.shape) {
    throw InvalidArgument("tensor '" + tensor.name + "' has weights of shape " +
                          to_string(weights.tensor().shape) + " and updates of shape " +
                          to_string(tensor.shape) + "; give one update for each weight");
  }
  std::vector<TensorPart> parts;
  const bool anywhere = weights.tensor().access == Access::random && tensor.access == Access::random;
  append_parts(updates.index, tensor, anywhere ? 16 * block : std::max(block, tensor.elements), parts);
  LostUpdates found;
  work_through(
      parts, [&](const TensorPart& part) { return count_part(weights, updates, format, part); },
      [&](const TensorPart&, const LostUpdates& part) {
        found.elements += part.elements;
        found.nonzero += part.nonzero;
        found.lost += part.lost;
      });
  return found;
}

}  // namespace halfscope
