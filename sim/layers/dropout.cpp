// Masks from counter-based random bits.
#include "sim/layers/dropout.hpp"

#include <fmt/format.h>

#include <memory>

#include <halfscope/core/parallel.hpp>
#include <halfscope/core/random.hpp>

namespace halfscope {
namespace {

/// Random blocks, of four elements each, per task.
constexpr std::int64_t grain = 1024;

/// `keep` where an element survives, else 0.
Array draw_factors(const Shape& shape, const RandomStream& stream, float probability) {
  Array factors(shape);
  const float keep = 1.0f / (1.0f - probability);
  const auto threshold = static_cast<std::uint32_t>(probability * 0x1p24f);
  const auto size = static_cast<std::int64_t>(factors.size());
  parallel_for_ranges((size + 3) / 4, grain, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t block = first; block < first + count; ++block) {
      const RandomBlock bits = stream.block(static_cast<std::uint64_t>(block));
      for (std::int64_t i = 4 * block; i < std::min(size, 4 * block + 4); ++i) {
        const auto lane = static_cast<std::size_t>(i - 4 * block);
        factors[static_cast<std::size_t>(i)] = bits[lane] >> 8 < threshold ? 0.0f : keep;
      }
    }
  });
  return factors;
}

void multiply(const Array& factors, Array& values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factors[i];
}

}  // namespace

TensorRef dropout(Tape& tape, const std::string& name, TensorRef x, float probability) {
  if (!(probability >= 0 && probability < 1)) {
    throw RequestError(fmt::format("layer {}: dropout probability {}: give 0 or more, below 1", name,
                                   static_cast<double>(probability)));
  }
  if (probability == 0 || tape.phase() == Phase::evaluation) return x;
  auto factors = std::make_shared<Array>(
      draw_factors(tape.value(x).shape(), tape.caster().random_stream(name + ".mask"), probability));
  Array y = tape.value(x).clone();
  multiply(*factors, y);
  const auto backward = [x, factors](Tape& t, Array gradient) {
    multiply(*factors, gradient);
    t.add_gradient(x, std::move(gradient));
  };
  return tape.record({.name = name, .value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
