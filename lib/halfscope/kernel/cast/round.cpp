// Rounding of an array on the active device, with the instruction set in use.
#include <halfscope/kernel/cast/round.hpp>

#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/cast/detail/round_simd.hpp>
#include <halfscope/kernel/cast/detail/round_stochastic.hpp>

namespace halfscope {

void round(std::span<const float> in, std::span<float> out, const Quantizer& q, RandomStream stream) {
  detail::check_equal_sizes("round", in.size(), out.size());
  if (active_device() == Device::cuda) return cuda::round(in, out, q, stream);
  dispatch_isa([&]<Isa isa>() { round_isa<isa>(in.data(), out.data(), in.size(), q, stream); });
}

void round_stochastic_part(std::span<const float> in, std::span<float> out, const Quantizer& q,
                           const RandomStream& stream, std::uint64_t first) {
  detail::check_equal_sizes("round_stochastic_part", in.size(), out.size());
  dispatch_isa([&]<Isa isa>() {
    round_stochastic_isa<isa>(in.data(), out.data(), in.size(), q, {stream, first});
  });
}

void round_in_threads(std::span<float> values, const Quantizer& q, const RandomStream& stream) {
  constexpr std::int64_t grain = 16384;  // 64 KiB
  if (active_device() == Device::cuda) return round(values, values, q, stream);
  parallel_for_ranges(static_cast<std::int64_t>(values.size()), grain,
                      [&](std::int64_t first, std::int64_t count) {
                        const auto begin = static_cast<std::size_t>(first);
                        const auto range = values.subspan(begin, static_cast<std::size_t>(count));
                        if (q.rounding != Rounding::stochastic) return round(range, range, q);
                        round_stochastic_part(range, range, q, stream, begin);
                      });
}

}  // namespace halfscope
