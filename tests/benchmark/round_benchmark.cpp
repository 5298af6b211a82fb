// How fast arrays are rounded: every format of the catalogue, and every rounding of FP16.
#include <halfscope/format/catalogue.hpp>
#include <halfscope/kernel/cast/round.hpp>

#include "tests/benchmark/against_memcpy.hpp"

namespace halfscope {
namespace {

std::vector<Quantizer> benchmarked_quantizers() {
  std::vector<Quantizer> quantizers;
  for (const NamedFormat& entry : format_catalogue) quantizers.push_back({entry.format});
  for (std::size_t r = 1; r < enum_names<Rounding>.size(); ++r)
    quantizers.push_back({fp16, static_cast<Rounding>(r)});
  quantizers.push_back({fp16, Rounding::nearest_even, Overflow::saturate});
  return quantizers;
}

[[maybe_unused]] const bool registered = [] {
  for (const Quantizer& q : benchmarked_quantizers()) {
    register_against_memcpy("round/" + to_string(q), [q](std::span<const float> in, std::span<float> out) {
      round(in, out, q, RandomStream{.seed = 1});
    });
  }
  return true;
}();

}  // namespace
}  // namespace halfscope
