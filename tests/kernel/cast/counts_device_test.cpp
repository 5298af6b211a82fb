// Device parity of counts: casts, histograms, updates and norms equal the CPU's exactly.
#include <halfscope/device/array.hpp>
#include <halfscope/device/readback.hpp>
#include <halfscope/kernel/cast/detail/counted_round.hpp>
#include <halfscope/kernel/reduce/sum_of_squares.hpp>
#include <halfscope/kernel/update/update_effect.hpp>
#include <halfscope/stats/cast_counts.hpp>
#include <halfscope/stats/lost_updates.hpp>

#include "tests/support/device_parity.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::counts_device_test {
namespace {

/// Any floats, those at which `format` rounds in another way among them, and many that it flushes.
std::vector<float> any_floats(const FloatFormat& format, std::size_t size) {
  std::vector<float> values = boundary_floats(format);
  values.resize(std::min(values.size(), size));
  const std::vector<float> random = random_floats(size - values.size());
  values.insert(values.end(), random.begin(), random.end());
  return values;
}

/// Compares the results of `count` on the CPU and on the device, and the arrays that it leaves behind.
template <typename Count>
void check_counts(const std::vector<std::vector<float>>& arrays, Count&& count) {
  if (!can_use_device()) return;
  using Result = decltype(count(Spans{}));
  std::vector<Result> results;
  check_device_parity(arrays, [&](const Spans& s) { results.push_back(count(s)); });
  REQUIRE(results.size() == 2);
  CHECK((results[0] == results[1]));
}

TEST_CASE("casts are counted alike on the device", "[stats][cuda]") {
  const RandomStream stream{.seed = 0x123456789ABCDEF, .step = 17, .site = 4};
  for (const FloatFormat& format : formats_under_test()) {
    for (const Quantizer& quantizer : quantizers_of(format)) {
      INFO(to_string(quantizer));
      const std::vector<float> values = any_floats(format, 5003);
      for (const CastDetail detail : {CastDetail::counters, CastDetail::histogram}) {
        check_counts({values}, [&](const Spans& s) {
          const CastCounts counts = round_and_count(s[0], quantizer, detail, stream);
          return std::tuple(counts.elements, counts.counters, counts.before);
        });
      }
    }
  }
  for (const std::size_t size : parity_sizes) {
    for (const Quantizer& quantizer : {Quantizer{}, Quantizer{fp16}, Quantizer{fp16, Rounding::stochastic}}) {
      check_counts({any_floats(fp16, size)}, [&](const Spans& s) {
        const CastCounts counts = round_and_count(s[0], quantizer, CastDetail::histogram, stream);
        return std::tuple(counts.elements, counts.counters, counts.before);
      });
    }
  }
}

TEST_CASE("the device refuses roundings that a counter has no kernel for", "[stats][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const DeviceScope scope(Device::cuda);
  const auto refusal = [](const auto& count) { return message_of<InvalidArgument>(count); };
  check_says(refusal([] {
               cuda::round_with_histogram({}, {fp16, Rounding::to_odd}, binade_edges(fp16), {});
             }),
             {"to_odd", "count and round apart"});
  check_says(refusal([] { cuda::round_with_counters({}, {fp16, Rounding::up}, {}, {}); }), {"'up'"});
  check_says(refusal([] { cuda::round_and_compare({}, {fp16}, {}, {}); }), {"nearest_even"});
}

TEST_CASE("histograms are counted alike on the device", "[stats][cuda]") {
  for (const FloatFormat& format : formats_under_test()) {
    INFO(to_string(format));
    std::vector<float> values = any_floats(format, 20000);
    for (std::uint32_t i = 0; i < 3000; ++i)
      values.push_back(from_bits(i * 2791 % (1u << 23)));  // subnormals
    check_counts({values}, [&](const Spans& s) {
      ExponentHistogram histogram(format);
      histogram.add(s[0]);
      histogram.add(s[0].first(100));
      return histogram;
    });
    const CastLimits limits{.nonzero = 1 << 20, .normal = 1 << 26, .infinite = 0x47000000};
    check_counts({values}, [&](const Spans& s) {
      CastCounters counters;
      count_cast(s[0], limits, counters);
      return counters;
    });
  }
}

TEST_CASE("lost updates and update ratios are counted alike on the device", "[stats][cuda]") {
  for (const std::size_t size : parity_sizes) {
    const std::vector<float> weights = uniform_floats(size, -1, 1, 1);
    std::vector<float> updates = uniform_floats(size, -1, 1, 2);
    for (std::size_t i = 0; i < size; ++i) updates[i] *= i % 5 == 0 ? 0.0f : i % 3 == 0 ? 1e-4f : 1e5f;
    for (const Quantizer& quantizer :
         {Quantizer{}, Quantizer{FloatFormat{8, 21}}, Quantizer{fp16}, Quantizer{bf16, Rounding::stochastic},
          Quantizer{fp8_e4m3, Rounding::nearest_even, Overflow::saturate}}) {
      INFO(to_string(quantizer) << ", " << size);
      check_counts({weights, updates}, [&](const Spans& s) {
        const UpdateCounters c = count_lost_updates({.step = 3, .tensor = "w"}, quantizer, s[0], s[1]);
        return std::tuple(c.elements, c.nonzero, c.lost, c.applied_over_intended);
      });
    }
    check_counts({weights, updates}, [](const Spans& s) { return update_ratios(s[0], s[1]); });
    check_counts({any_floats(fp16, size), any_floats(bf16, size)},
                 [](const Spans& s) { return update_ratios(s[0], s[1]); });
  }
}

TEST_CASE("the effect of updates is added up in lanes and tiles", "[stats]") {
  const std::size_t size = 5000;
  const std::vector<float> weights = uniform_floats(size, -1, 1, 1), updates = uniform_floats(size, -1, 1, 2);
  UpdateEffect expected;
  for (std::size_t tile = 0; tile < size; tile += 1024) {
    double applied = 0, intended = 0;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      double lane_applied = 0, lane_intended = 0;
      for (std::size_t i = tile + lane; i < std::min(size, tile + 1024); i += 32) {
        const float after = weights[i] + updates[i];
        lane_applied += std::abs(static_cast<double>(after) - static_cast<double>(weights[i]));
        lane_intended += std::abs(static_cast<double>(updates[i]));
      }
      applied += lane_applied;
      intended += lane_intended;
    }
    expected.applied += applied;
    expected.intended += intended;
  }
  expected.nonzero = size;
  CHECK(update_effect(weights, updates, {}) == expected);
}

TEST_CASE("sums of squares are the same on the device", "[kernel][cuda]") {
  for (const std::size_t size : std::array<std::size_t, 8>{0, 1, 7, 8, 31, 128, 1000, 257 * 259}) {
    check_counts({uniform_floats(size, -3, 3, 1), uniform_floats(40, -3, 3, 2)}, [](const Spans& s) {
      const std::array<std::span<const float>, 2> arrays{s[0], s[1]};
      Readback readback;
      const auto sums = readback.take<double>(arrays.size() * sum_of_squares_lanes);
      sums_of_squares(arrays, 0.7f, readback.device_values(sums));
      readback.read();
      const std::span<const double> read = readback.values(sums);
      return std::vector<double>(read.begin(), read.end());
    });
  }
}

}  // namespace
}  // namespace halfscope::counts_device_test
