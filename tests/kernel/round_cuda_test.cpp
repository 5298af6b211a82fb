// Array rounding on the device gives the bits of the scalar rounding on the host.
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/round.hpp>

#include "tests/kernel/run_on_device.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"

namespace halfscope {
namespace {

TEST_CASE("the device rounds as the host does", "[kernel][round][cuda][long]") {
  if (!has_device()) {
    WARN("skipped: this machine has no CUDA device");
    return;
  }
  const RandomStream stream{.seed = 0x123456789ABCDEF, .step = 17, .site = 4};
  for (const FloatFormat& format : formats_under_test()) {
    std::vector<float> values = boundary_floats(format);
    const std::vector<float> random = random_floats(257 * 259);
    values.insert(values.end(), random.begin(), random.end());
    for (const Quantizer& q : quantizers_of(format)) {
      for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{31}, values.size()}) {
        const std::vector<float> in(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(size));
        const std::vector<float> out = run_on_device(
            in, [&](const float* from, float* to) { round_cuda(from, to, size, q, stream, nullptr); });
        std::size_t i = 0;
        while (i < size && same_bits(out[i], round(in[i], q, rounding_bits(stream, i)))) ++i;
        INFO(to_string(q) << " at " << i);
        CHECK(i == size);
      }
    }
  }
}

}  // namespace
}  // namespace halfscope
