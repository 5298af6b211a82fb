// Array rounding on the device: the scalar reference, one thread per element.
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/launch.cuh>
#include <halfscope/kernel/round.hpp>

namespace halfscope::cuda {
namespace {

template <Rounding rounding>
struct RoundElement {
  const float* in;
  float* out;
  RoundingGrid grid;
  RandomStream stream;

  HALFSCOPE_HD void operator()(std::int64_t i) const {
    std::uint32_t random_bits = 0;
    if constexpr (rounding == Rounding::stochastic)
      random_bits = rounding_bits(stream, static_cast<std::uint64_t>(i));
    out[i] = round_on_grid<rounding>(in[i], grid, random_bits);
  }
};

template <Rounding rounding>
void launch(std::span<const float> in, std::span<float> out, const Quantizer& q, const RandomStream& stream) {
  for_each(static_cast<std::int64_t>(in.size()),
           RoundElement<rounding>{on_device(in), on_device(out), rounding_grid(q), stream}, "round");
}

}  // namespace

void round(std::span<const float> in, std::span<float> out, const Quantizer& q, const RandomStream& stream) {
  switch (q.rounding) {
    case Rounding::nearest_even:
      return launch<Rounding::nearest_even>(in, out, q, stream);
    case Rounding::nearest_away:
      return launch<Rounding::nearest_away>(in, out, q, stream);
    case Rounding::toward_zero:
      return launch<Rounding::toward_zero>(in, out, q, stream);
    case Rounding::up:
      return launch<Rounding::up>(in, out, q, stream);
    case Rounding::down:
      return launch<Rounding::down>(in, out, q, stream);
    case Rounding::to_odd:
      return launch<Rounding::to_odd>(in, out, q, stream);
    case Rounding::stochastic:
      return launch<Rounding::stochastic>(in, out, q, stream);
  }
}

}  // namespace halfscope::cuda
