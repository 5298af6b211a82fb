// Recordings of the device's work: whole, cut short, and abandoned; the numbers are always the same.
#include <halfscope/device/step_graph.hpp>

#include <stdexcept>

#include <halfscope/device/array.hpp>
#include <halfscope/device/readback.hpp>

#include "lib/nn/elementwise.hpp"
#include "tests/support/device_parity.hpp"

namespace halfscope::step_graph_device_test {
namespace {

/// Work that a run queues.
enum class Work : std::uint8_t { sums, waits, leaves, grows, fails };

/// Waits for another stream.
void leave() {
  constexpr std::uintptr_t legacy_stream = 1;
  const StreamScope stream(0, legacy_stream);
  (void)Array::from({1}, {1}).to(Device::cpu);
}

/// Adds 1 to `total` twice, by way of memory that is taken and released.
void queue(Array& total, Work work) {
  const Array one = Array::from({3}, {1, 1, 1});
  add(one.values(), total.values());
  if (work == Work::waits) (void)total.to(Device::cpu);
  if (work == Work::leaves) leave();
  if (work == Work::grows) (void)Array(Shape{1000});
  if (work == Work::fails) throw std::runtime_error("as asked");
  const Array other = one.clone();
  add(other.values(), total.values());
}

std::vector<float> host_values(const Array& array) {
  const Array here = array.to(Device::cpu);
  return {here.values().begin(), here.values().end()};
}

TEST_CASE("a recorded run does what it does unrecorded", "[step_graph][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const DeviceScope scope(Device::cuda);
  StepGraph graph;
  Array total = Array::zeros({3});
  const auto run = [&](Work work) {
    graph.run([&] { queue(total, work); });
    return std::tuple(graph.counts().whole, graph.counts().cut);
  };
  CHECK(run(Work::sums) == std::tuple(0, 0));  // before the recording begins
  CHECK(run(Work::sums) == std::tuple(0, 0));
  CHECK(run(Work::sums) == std::tuple(1, 0));
  CHECK(run(Work::sums) == std::tuple(2, 0));
  CHECK(graph.counts().updated == 1);
  CHECK(host_values(total) == std::vector<float>(3, 8.0f));
  CHECK(run(Work::waits) == std::tuple(2, 1));
  CHECK(run(Work::grows) == std::tuple(2, 2));
  CHECK(run(Work::grows) == std::tuple(3, 2));  // that memory is there now
  CHECK(host_values(total) == std::vector<float>(3, 14.0f));
  CHECK_THROWS_AS(run(Work::fails), std::runtime_error);
  total = Array::zeros({3});
  CHECK(run(Work::sums) == std::tuple(4, 2));
  CHECK(host_values(total) == std::vector<float>(3, 2.0f));
  CHECK(run(Work::leaves) == std::tuple(4, 3));
  CHECK(host_values(total) == std::vector<float>(3, 4.0f));
}

}  // namespace
}  // namespace halfscope::step_graph_device_test
