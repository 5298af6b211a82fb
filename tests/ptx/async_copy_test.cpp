// cp.async: rows copied in groups, as late as allowed, and the faults of a wait that is too short.
#include "tests/ptx/run_kernel.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::ptx::async_copy_test {
namespace {

// Two chunks of 16 bytes per thread, a group each. %r4 and %r5 are their places, %r6 the source size.
constexpr std::string_view copy_two = R"(
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd5, %r1, 32;
	add.s64 	%rd3, %rd1, %rd5;
	add.s64 	%rd4, %rd2, %rd5;
	shl.b32 	%r2, %r1, 5;
	mov.u32 	%r3, dynamic;
	add.s32 	%r4, %r3, %r2;
	add.s32 	%r5, %r4, 16;
	add.s64 	%rd6, %rd3, 16;
	mov.u32 	%r6, 6;
	cp.async.cg.shared.global 	[%r4], [%rd3], 16;
	cp.async.commit_group;
	cp.async.cg.shared.global 	[%r5], [%rd6], 16, %r6;
	cp.async.commit_group;
)";

// Reads the copies of the neighbour, whose places are %r7 and %r8.
constexpr std::string_view read_neighbour = R"(
	xor.b32  	%r7, %r4, 32;
	xor.b32  	%r8, %r5, 32;
	ld.shared.u32 	%r10, [%r7];
	ld.shared.u32 	%r11, [%r7+12];
	st.global.u32 	[%rd4], %r10;
	st.global.u32 	[%rd4+4], %r11;
)";
constexpr std::string_view read_second = R"(
	ld.shared.u32 	%r12, [%r8];
	ld.shared.u32 	%r13, [%r8+4];
	ld.shared.u32 	%r14, [%r8+12];
	st.global.u32 	[%rd4+8], %r12;
	st.global.u32 	[%rd4+12], %r13;
	st.global.u32 	[%rd4+16], %r14;
)";

std::string join(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

constexpr std::string_view wait_0 = "\tcp.async.wait_group \t0;\n", wait_1 = "\tcp.async.wait_group \t1;\n";
constexpr std::string_view barrier = "\tbar.sync \t0;\n";

/// Words whose halves differ: thread, then place.
std::vector<std::uint32_t> input() {
  std::vector<std::uint32_t> in(8 * 4);
  for (std::uint32_t i = 0; i < in.size(); ++i) in[i] = 0x0101'0000 * (i / 8 + 1) + 0x0101 * (i % 8 + 1);
  return in;
}

InOut run_of(std::initializer_list<std::string_view> parts) {
  return {join(parts), input(), 8 * 4, 1, 4, 128};
}

TEST_CASE("groups that were waited for are there, the rest of a short source is zero", "[ptx]") {
  const std::string body = join({copy_two, wait_0, barrier, read_neighbour, read_second});
  const std::string fill =
      "\tst.global.u32 \t[%rd4+20], %r6;\n\tst.global.u32 \t[%rd4+24], %r6;\n"
      "\tst.global.u32 \t[%rd4+28], %r6;\n";
  const std::vector<std::uint32_t> in = input();
  for (const Schedule schedule : {Schedule::forward, Schedule::backward, Schedule::shuffled}) {
    const std::vector<std::uint32_t> out =
        run_in_out({body + fill, in, 32, 1, 4, 128}, {schedule, 3, {8, 0}});
    for (std::size_t thread = 0; thread < 4; ++thread) {
      const std::uint32_t* from = &in[8 * (thread ^ 1)];
      const std::uint32_t* to = &out[8 * thread];
      INFO("thread " << thread);
      CHECK(to[0] == from[0]);
      CHECK(to[1] == from[3]);
      CHECK(to[2] == from[4]);
      CHECK(to[3] == (from[5] & 0xFFFF));  // six bytes
      CHECK(to[4] == 0);
    }
  }
}

struct CopyFault {
  std::string body;
  std::vector<std::string> says;
};

TEST_CASE("bytes that a copy may still write are not to be touched", "[ptx]") {
  const std::vector<CopyFault> cases{
      {join({copy_two, wait_1, barrier, read_neighbour, read_second}),
       {"is read while cp.async may still write it"}},
      {join({copy_two, barrier, read_neighbour}), {"is read while cp.async may still write it"}},
      {join({copy_two, "\tst.shared.u32 \t[%r5], %r6;\n"}), {"is written while cp.async may still write it"}},
      {join({copy_two, wait_0, read_neighbour}), {"shared memory"}},
      {join({copy_two, "\tadd.s32 \t%r4, %r4, 8;\n\tcp.async.cg.shared.global \t[%r4], [%rd3], 16;\n"}),
       {"misaligned"}},
      {join({copy_two, "\tadd.s64 \t%rd6, %rd3, 8;\n\tcp.async.cg.shared.global \t[%r4], [%rd6], 16;\n"}),
       {"misaligned"}},
      {join({copy_two, "\tcp.async.cg.shared.global \t[%r4], [%rd3], 8;\n"}), {"copies 16 bytes"}},
      {join({copy_two, wait_0,
             "\tmov.u32 \t%r6, 17;\n\tcp.async.cg.shared.global \t[%r4], [%rd3], 16, %r6;\n"}),
       {"its source has 17"}},
      {join({copy_two, wait_0,
             "\tadd.s64 \t%rd6, %rd1, 128;\n\tcp.async.cg.shared.global \t[%r4], [%rd6], 16;\n"
             "\tcp.async.commit_group;\n",
             wait_0}),
       {"'cp.async.wait_group \t0'", "out of bounds"}},
  };
  for (const CopyFault& c : cases) {
    INFO(c.body);
    check_says(message_of<Fault>([&] { (void)run_in_out({c.body, input(), 32, 1, 4, 128}); }), c.says);
  }
}

TEST_CASE("one group may stay pending while the one before it is read", "[ptx]") {
  const InOut run = run_of({copy_two, wait_1, barrier, read_neighbour, "\tst.global.u32 \t[%rd4+8], %r6;\n"});
  const Module module = parse(in_out_kernel(run.body));
  Machine machine({});
  const std::uint64_t in = to_device(machine, run.in);
  const std::uint64_t out = to_device(machine, std::vector<std::uint32_t>(32, 0));
  const std::vector<std::byte> parameters = parameters_of({in, out});
  machine.launch(module, {"k", 1, 4, 128, parameters});
  const std::vector<std::uint32_t> words = to_host<std::uint32_t>(machine, out, 32);
  for (std::size_t thread = 0; thread < 4; ++thread) CHECK(words[8 * thread] == run.in[8 * (thread ^ 1)]);
}

TEST_CASE("a copy of no bytes writes zeros and reads nothing", "[ptx]") {
  const InOut run =
      run_of({"\tmov.u32 \t%r1, 0;\n\tmov.u64 \t%rd3, 0;\n"
              "\tcp.async.cg.shared.global \t[dynamic], [%rd3], 16, %r1;\n\tcp.async.commit_group;\n",
              wait_0, "\tld.shared.u32 \t%r2, [dynamic+12];\n\tst.global.u32 \t[%rd2], %r2;\n"});
  CHECK(run_in_out({run.body, {}, 1, 1, 1, 16}).front() == 0);
}

}  // namespace
}  // namespace halfscope::ptx::async_copy_test
