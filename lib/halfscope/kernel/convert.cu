// Storage conversions on the device, one thread per element.
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/convert.hpp>
#include <halfscope/kernel/launch.cuh>
#include <halfscope/kernel/round.hpp>

namespace halfscope::cuda {
namespace {

struct ConvertElement {
  ElementReader from;
  ElementWriter to;
  HALFSCOPE_HD void operator()(std::int64_t i) const { to.set(i, from[i]); }
};

template <Rounding rounding>
struct RoundElement {
  ElementReader from;
  ElementWriter to;
  RoundingGrid grid;
  RandomStream stream;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    std::uint32_t random_bits = 0;
    if constexpr (rounding == Rounding::stochastic)
      random_bits = rounding_bits(stream, static_cast<std::uint64_t>(i));
    to.set(i, round_on_grid<rounding>(from[i], grid, random_bits));
  }
};

template <Rounding rounding>
void launch(std::span<const float> from, const Values& to, const Quantizer& q, const RandomStream& stream) {
  for_each(std::ssize(from), RoundElement<rounding>{on_device(from), on_device(to), rounding_grid(q), stream},
           "round_into");
}

}  // namespace

void convert(const ConstValues& from, const Values& to) {
  for_each(static_cast<std::int64_t>(from.size()), ConvertElement{on_device(from), on_device(to)}, "convert");
}

void round_into(std::span<const float> from, const Values& to, const Quantizer& q,
                const RandomStream& stream) {
  switch (q.rounding) {
    case Rounding::nearest_even:
      return launch<Rounding::nearest_even>(from, to, q, stream);
    case Rounding::nearest_away:
      return launch<Rounding::nearest_away>(from, to, q, stream);
    case Rounding::toward_zero:
      return launch<Rounding::toward_zero>(from, to, q, stream);
    case Rounding::up:
      return launch<Rounding::up>(from, to, q, stream);
    case Rounding::down:
      return launch<Rounding::down>(from, to, q, stream);
    case Rounding::to_odd:
      return launch<Rounding::to_odd>(from, to, q, stream);
    case Rounding::stochastic:
      return launch<Rounding::stochastic>(from, to, q, stream);
  }
}

}  // namespace halfscope::cuda
