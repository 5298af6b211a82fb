// Kernels of one feature each, in every schedule: branches, barriers, shared memory, atomic operations.
#include <algorithm>
#include <array>
#include <numeric>

#include "tests/ptx/run_kernel.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::ptx::machine_test {
namespace {

constexpr std::array schedules{
    MachineOptions{Schedule::forward, 0, {8, 0}},
    MachineOptions{Schedule::backward, 0, {8, 0}},
    MachineOptions{Schedule::shuffled, 1, {8, 0}},
    MachineOptions{Schedule::shuffled, 2, {8, 0}},
};

std::vector<std::uint32_t> numbers_from(std::uint32_t first, std::size_t count) {
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

struct FeatureCase {
  std::string_view name;
  InOut run;
  std::vector<std::uint32_t> expected;
};

// %r1 is the number of the thread in the grid.
constexpr std::string_view collatz = R"(
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd3, %r1, 4;
	add.s64 	%rd4, %rd1, %rd3;
	ld.global.u32 	%r2, [%rd4];
	mov.b32 	%r3, 0;
$L__BB0_1:
	setp.eq.s32 	%p1, %r2, 1;
	@%p1 bra 	$L__BB0_4;
	and.b32  	%r4, %r2, 1;
	setp.eq.b32 	%p2, %r4, 1;
	not.pred 	%p3, %p2;
	@%p3 bra 	$L__BB0_3;
	mad.lo.s32 	%r2, %r2, 3, 1;
	bra.uni 	$L__BB0_2;
$L__BB0_3:
	shr.u32 	%r2, %r2, 1;
$L__BB0_2:
	add.s32 	%r3, %r3, 1;
	bra 	$L__BB0_1;
$L__BB0_4:
	add.s64 	%rd5, %rd2, %rd3;
	st.global.u32 	[%rd5], %r3;)";

// Each thread reads what its opposite wrote.
constexpr std::string_view reverse_block = R"(
	.shared .align 4 .b8 tile[256];
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r2, %ctaid.x;
	mov.u32 	%r3, %ntid.x;
	mad.lo.s32 	%r4, %r2, %r3, %r1;
	mul.wide.u32 	%rd3, %r4, 4;
	add.s64 	%rd4, %rd1, %rd3;
	ld.global.u32 	%r5, [%rd4];
	shl.b32 	%r6, %r1, 2;
	mov.u32 	%r7, tile;
	add.s32 	%r8, %r7, %r6;
	st.shared.u32 	[%r8], %r5;
	bar.sync 	0;
	sub.s32 	%r9, %r7, %r6;
	ld.shared.u32 	%r10, [%r9+252];
	add.s64 	%rd5, %rd2, %rd3;
	st.global.u32 	[%rd5], %r10;)";

// The sum of a block, halved again and again in dynamic shared memory.
constexpr std::string_view sum_block = R"(
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd3, %r1, 4;
	add.s64 	%rd4, %rd1, %rd3;
	ld.global.u32 	%r2, [%rd4];
	shl.b32 	%r3, %r1, 2;
	mov.u32 	%r4, dynamic;
	add.s32 	%r5, %r4, %r3;
	st.shared.u32 	[%r5], %r2;
	mov.u32 	%r6, 32;
$L__BB0_1:
	bar.sync 	0;
	setp.ge.u32 	%p1, %r1, %r6;
	@%p1 bra 	$L__BB0_3;
	shl.b32 	%r7, %r6, 2;
	add.s32 	%r8, %r5, %r7;
	ld.shared.u32 	%r9, [%r8];
	ld.shared.u32 	%r10, [%r5];
	add.s32 	%r11, %r9, %r10;
	st.shared.u32 	[%r5], %r11;
$L__BB0_3:
	shr.u32 	%r6, %r6, 1;
	setp.ne.s32 	%p2, %r6, 0;
	@%p2 bra 	$L__BB0_1;
	setp.ne.s32 	%p3, %r1, 0;
	@%p3 bra 	$L__BB0_4;
	ld.shared.u32 	%r12, [dynamic];
	st.global.u32 	[%rd2], %r12;
$L__BB0_4:)";

// Counts of values below 4, first of the block, then of all.
constexpr std::string_view count_values = R"(
	.shared .align 4 .b8 bins[16];
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r2, %ctaid.x;
	mov.u32 	%r3, %ntid.x;
	mad.lo.s32 	%r4, %r2, %r3, %r1;
	shl.b32 	%r5, %r1, 2;
	mov.u32 	%r6, bins;
	setp.gt.u32 	%p1, %r1, 3;
	add.s32 	%r7, %r6, %r5;
	mov.b32 	%r8, 0;
	@!%p1 st.shared.u32 	[%r7], %r8;
	bar.sync 	0;
	mul.wide.u32 	%rd3, %r4, 4;
	add.s64 	%rd4, %rd1, %rd3;
	ld.global.u32 	%r9, [%rd4];
	shl.b32 	%r10, %r9, 2;
	add.s32 	%r11, %r6, %r10;
	atom.shared.add.u32 	%r12, [%r11], 1;
	bar.sync 	0;
	@%p1 bra 	$L__BB0_1;
	ld.shared.u32 	%r13, [%r7];
	mul.wide.u32 	%rd5, %r1, 8;
	cvt.u64.u32 	%rd6, %r13;
	add.s64 	%rd7, %rd2, %rd5;
	atom.global.add.u64 	%rd8, [%rd7], %rd6;
	atom.global.max.u32 	%r14, [%rd2+32], %r13;
	atom.global.add.u32 	%r15, [%rd2+36], 1;
$L__BB0_1:)";

std::vector<FeatureCase> feature_cases() {
  return {
      {"branches", {std::string(collatz), {1, 2, 3, 6, 7, 27}, 6, 1, 6}, {0, 1, 7, 8, 16, 111}},
      {"barrier", {std::string(reverse_block), numbers_from(0, 128), 128, 2, 64}, {}},
      {"dynamic shared memory", {std::string(sum_block), numbers_from(1, 64), 1, 1, 64, 256}, {2080}},
  };
}

TEST_CASE("kernels give the same result in every schedule", "[ptx]") {
  for (FeatureCase& c : std::vector<FeatureCase>(feature_cases())) {
    if (c.name == "barrier") {
      c.expected = c.run.in;
      std::reverse(c.expected.begin(), c.expected.begin() + 64);
      std::reverse(c.expected.begin() + 64, c.expected.end());
    }
    for (const MachineOptions& options : schedules) {
      INFO(c.name << ", " << name_of(options.schedule) << " " << options.seed);
      CHECK(run_in_out(c.run, options) == c.expected);
    }
  }
}

TEST_CASE("atomic operations count in every schedule", "[ptx]") {
  std::vector<std::uint32_t> in(96);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint32_t>(i % 7 % 4);
  for (const MachineOptions& options : schedules) {
    INFO(name_of(options.schedule));
    Machine machine(options);
    const std::uint64_t from = to_device(machine, in);
    const std::uint64_t to = to_device(machine, std::vector<std::uint32_t>(10, 0));
    const std::vector<std::byte> parameters = parameters_of({from, to});
    machine.launch(parse(in_out_kernel(count_values)), {"k", 3, 32, 0, parameters});
    const std::vector<std::uint32_t> out = to_host<std::uint32_t>(machine, to, 10);
    for (std::uint32_t value = 0; value < 4; ++value) {
      CHECK(out[2 * value] == static_cast<std::uint32_t>(std::count(in.begin(), in.end(), value)));
    }
    CHECK(out[8] == 10);
    CHECK(out[9] == 12);
  }
}

TEST_CASE("a last writer is another in another schedule", "[ptx]") {
  constexpr std::string_view body = "\tmov.u32 \t%r1, %tid.x;\n\tst.global.u32 \t[%rd2], %r1;\n";
  CHECK(run_in_out({std::string(body), {}, 1, 1, 64}, schedules[0]).front() == 63);
  CHECK(run_in_out({std::string(body), {}, 1, 1, 64}, schedules[1]).front() == 0);
  CHECK(run_in_out({std::string(body), {}, 1, 1, 64}, schedules[2]) ==
        run_in_out({std::string(body), {}, 1, 1, 64}, schedules[2]));
  CHECK(run_in_out({std::string(body), {}, 1, 1, 64}, schedules[2]) !=
        run_in_out({std::string(body), {}, 1, 1, 64}, schedules[3]));
}

TEST_CASE("predicates may be numbers, and advice to the compiler is left out", "[ptx]") {
  const std::string body =
      "\tmov.pred \t%p1, 0;\n\tmov.pred \t%p2, -1;\n\tand.pred \t%p3, %p2, !%p1;\n"
      "\t.pragma \"used_bytes_mask 15\";\n\tld.global.v2.u32 \t{%r1, %r2}, [%rd1];\n"
      "\tselp.u32 \t%r3, %r1, %r2, %p3;\n\tst.global.u32 \t[%rd2], %r3;\n";
  CHECK(run_in_out({body, {5, 6}, 1}).front() == 5);
}

TEST_CASE("coverage counts launches, and instructions whose guard is true", "[ptx]") {
  Machine machine({});
  const Module module = parse(kernel_text("",
                                          "\tmov.u32 \t%r1, %tid.x;\n\tsetp.lt.s32 \t%p1, %r1, 3;\n"
                                          "\t@%p1 add.s32 \t%r2, %r1, 1;\n\tbar.sync \t0;\n"));
  machine.launch(module, {"k", 2, 5, 0, {}});
  machine.launch(module, {"k", 1, 5, 0, {}});
  CHECK(machine.coverage().launches.at("k") == 2);
  CHECK(machine.coverage().executed("mov.u32") == 15);
  CHECK(machine.coverage().executed("add.s32") == 9);
  CHECK(machine.coverage().executed("bar.sync") == 15);
  CHECK(machine.coverage().executed("ret") == 15);
}

TEST_CASE("a launch that does not fit its entry or the device is refused", "[ptx]") {
  std::string text = kernel_text("\t.param .u64 out", "");
  text.insert(text.find("{\n\t.reg"), ".maxntid 128, 1, 1\n");
  const Module module = parse(text);
  const std::vector<std::byte> parameters(8);
  const auto refused = [&](const Launch& launch, ComputeCapability capability = {8, 0}) {
    Machine machine({Schedule::forward, 0, capability});
    return message_of<InvalidArgument>([&] { machine.launch(module, launch); });
  };
  check_says(refused({"j", 1, 1, 0, parameters}), {"'j'"});
  check_says(refused({"k", 0, 1, 0, parameters}), {"launch of k", "no blocks"});
  check_says(refused({"k", 1, 129, 0, parameters}), {"129 threads", "1 to 128"});
  check_says(refused({"k", 1, 0, 0, parameters}), {"0 threads"});
  check_says(refused({"k", 1, 1, 0, {}}), {"0 bytes of parameters", "it has 8"});
  check_says(refused({"k", 1, 1, 170'000, parameters}), {"170000 bytes of shared memory", "166912"});
  check_says(refused({"k", 1, 1, 0, parameters}, {7, 5}), {"for sm_80", "75"});
}

}  // namespace
}  // namespace halfscope::ptx::machine_test
