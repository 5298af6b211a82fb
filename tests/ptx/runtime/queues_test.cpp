// Order in which queued work is carried out: as late as it may be, and never later.
#include <stdexcept>

#include "tests/ptx/fault.hpp"
#include "tests/ptx/runtime/queues.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::ptx::queues_test {
namespace {

/// Queues whose operations write their names into a text.
struct Written {
  Queues queues;
  std::string text;
  cudaStream_t legacy = nullptr, blocking = reinterpret_cast<cudaStream_t>(0x10),
               other = reinterpret_cast<cudaStream_t>(0x20), free = reinterpret_cast<cudaStream_t>(0x30);

  Written() {
    queues.add(blocking, StreamKind::blocking);
    queues.add(other, StreamKind::blocking);
    queues.add(free, StreamKind::nonblocking);
  }
  std::uint64_t push(cudaStream_t stream, const std::string& name) {
    return queues.push(stream, {OperationKind::other, name, [this, name] { text += name; }});
  }
};

TEST_CASE("a stream's work is carried out in its order when the stream is waited for", "[ptx][queues]") {
  Written w;
  w.push(w.free, "a");
  w.push(w.blocking, "x");
  w.push(w.free, "b");
  CHECK(w.text.empty());
  w.queues.run_stream(w.free);
  CHECK(w.text == "ab");
}

TEST_CASE("work after an event is not forced by it", "[ptx][queues]") {
  Written w;
  w.push(w.free, "a");
  const std::uint64_t event = w.push(w.free, "e");
  w.push(w.free, "b");
  CHECK_FALSE(w.queues.is_done(w.free, event));
  w.queues.run_through(w.free, event);
  CHECK(w.text == "ae");
  CHECK(w.queues.is_done(w.free, event));
}

TEST_CASE("the legacy stream waits for blocking streams alone", "[ptx][queues]") {
  Written w;
  w.push(w.free, "f");
  w.push(w.blocking, "a");
  w.push(w.other, "b");
  w.push(w.legacy, "L");
  w.push(w.blocking, "c");
  w.queues.run_through(w.legacy, 4);
  CHECK(w.text == "baL");  // streams that nothing orders: the last one made is first
  w.queues.run_stream(w.legacy);
  CHECK(w.text == "baLc");
}

TEST_CASE("a blocking stream waits for the legacy one, and through it for others", "[ptx][queues]") {
  Written w;
  w.push(w.other, "a");
  w.push(w.legacy, "L");
  w.push(w.other, "b");
  w.push(w.blocking, "c");
  w.push(w.legacy, "M");
  w.queues.run_stream(w.blocking);
  CHECK(w.text == "aLc");
  w.queues.run_stream(w.free);
  CHECK(w.text == "aLc");
  w.queues.run_all();
  CHECK(w.text == "aLcbM");
}

TEST_CASE("streams that nothing orders run in reverse", "[ptx][queues]") {
  Written w;
  w.push(w.blocking, "a");
  w.push(w.other, "b");
  w.push(w.free, "c");
  w.queues.run_all();
  CHECK(w.text == "cba");
}

TEST_CASE("work of a removed stream is still carried out", "[ptx][queues]") {
  Written w;
  const std::uint64_t number = w.push(w.free, "a");
  w.queues.remove(w.free);
  CHECK_FALSE(w.queues.has(w.free));
  CHECK_FALSE(w.queues.is_done(w.free, number));
  w.queues.run_all();
  CHECK(w.text == "a");
  CHECK(w.queues.is_done(w.free, number));
  w.queues.run_through(w.free, number);
}

TEST_CASE("an operation that fails is named, and the rest is dropped", "[ptx][queues]") {
  Written w;
  w.queues.push(w.free, {OperationKind::copy, "copy", [] { throw std::runtime_error("too long"); }});
  w.push(w.free, "a");
  w.push(w.legacy, "b");
  CHECK(message_of<Fault>([&] { w.queues.run_stream(w.free); }) == "copy: too long");
  w.queues.run_all();
  CHECK(w.text.empty());
}

}  // namespace
}  // namespace halfscope::ptx::queues_test
