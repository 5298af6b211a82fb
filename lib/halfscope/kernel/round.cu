// Array rounding on the device: the scalar reference, one thread per element.
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/launch.cuh>
#include <halfscope/kernel/round.hpp>

namespace halfscope {
namespace {

template <Rounding rounding>
struct RoundElement {
  const float* in;
  float* out;
  RoundingGrid grid;
  RandomStream stream;

  __device__ void operator()(std::int64_t i) const {
    std::uint32_t random_bits = 0;
    if constexpr (rounding == Rounding::stochastic)
      random_bits = rounding_bits(stream, static_cast<std::uint64_t>(i));
    out[i] = round_on_grid<rounding>(in[i], grid, random_bits);
  }
};

}  // namespace

void round_cuda(const float* in, float* out, std::size_t count, const Quantizer& q, RandomStream stream,
                CUstream_st* cuda_stream) {
  const auto launch = [&]<Rounding rounding>() {
    const RoundElement<rounding> body{in, out, rounding_grid(q), stream};
    cuda::for_each(static_cast<std::int64_t>(count), body, cuda_stream, "round_cuda");
  };
  switch (q.rounding) {
    case Rounding::nearest_even:
      return launch.operator()<Rounding::nearest_even>();
    case Rounding::nearest_away:
      return launch.operator()<Rounding::nearest_away>();
    case Rounding::toward_zero:
      return launch.operator()<Rounding::toward_zero>();
    case Rounding::up:
      return launch.operator()<Rounding::up>();
    case Rounding::down:
      return launch.operator()<Rounding::down>();
    case Rounding::to_odd:
      return launch.operator()<Rounding::to_odd>();
    case Rounding::stochastic:
      return launch.operator()<Rounding::stochastic>();
  }
}

}  // namespace halfscope
