// Array rounding on the device: the scalar reference, one thread per element.
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/cast/detail/with_rounding.cuh>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/kernel/detail/launch.cuh>

namespace halfscope::cuda {
namespace {

/// An ElementWriter of floats that need not ask what it writes.
struct FloatWriter {
  float* values;
  HALFSCOPE_HD void set(std::int64_t i, float x) const { values[i] = x; }
};

template <Rounding rounding, typename Writer>
struct RoundElement {
  const float* from;
  Writer to;
  RoundingGrid grid;
  RandomStream stream;

  HALFSCOPE_HD void operator()(std::int64_t i) const {
    std::uint32_t random_bits = 0;
    if constexpr (rounding == Rounding::stochastic)
      random_bits = rounding_bits(stream, static_cast<std::uint64_t>(i));
    to.set(i, round_on_grid<rounding>(from[i], grid, random_bits));
  }
};

template <typename Writer>
void launch(std::span<const float> from, const Writer& to, const Quantizer& q, const RandomStream& stream) {
  with_rounding(q.rounding, [&]<Rounding rounding>() {
    for_each(std::ssize(from), RoundElement<rounding, Writer>{on_device(from), to, rounding_grid(q), stream},
             "round");
  });
}

}  // namespace

void round(std::span<const float> in, std::span<float> out, const Quantizer& q, const RandomStream& stream) {
  launch(in, FloatWriter{on_device(out)}, q, stream);
}

void round_into(std::span<const float> from, const ArrayView& to, const Quantizer& q,
                const RandomStream& stream) {
  launch(from, ElementWriter{on_device(to)}, q, stream);
}

}  // namespace halfscope::cuda
