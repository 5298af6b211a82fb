// Planted faults: each is found and named with its kernel, block, thread, line and instruction.
#include "tests/ptx/run_kernel.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::ptx::fault_test {
namespace {

struct FaultCase {
  InOut run;
  std::vector<std::string> says;
};

void check_faults(const std::vector<FaultCase>& cases) {
  for (const FaultCase& c : cases) {
    INFO(c.run.body);
    std::vector<std::string> says = c.says;
    says.insert(says.begin(), {"k, block ", ", thread ", ", line "});
    check_says(message_of<Fault>([&] { (void)run_in_out(c.run); }), says);
  }
}

// %r1 is the thread, %rd3 its place in the input, %rd4 in the output, %r2 in dynamic shared memory.
constexpr std::string_view prologue = R"(
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd5, %r1, 4;
	add.s64 	%rd3, %rd1, %rd5;
	add.s64 	%rd4, %rd2, %rd5;
	shl.b32 	%r3, %r1, 2;
	mov.u32 	%r2, dynamic;
	add.s32 	%r2, %r2, %r3;
)";

std::string after_prologue(std::string_view body) {
  return std::string(prologue) + std::string(body);
}

TEST_CASE("accesses of global memory out of bounds, misaligned or uninitialised are faults", "[ptx]") {
  const std::vector<std::uint32_t> in{1, 2, 3, 4};
  check_faults({
      {{"\tld.global.u32 \t%r1, [%rd1+16];", in},
       {"block 0, thread 0, line 18", "'ld.global.u32 \t%r1, [%rd1+16]'", "offset 16 is out of bounds",
        "16 bytes"}},
      {{"\tld.global.u32 \t%r1, [%rd1+-4];", in}, {"offset -4 is out of bounds"}},
      {{"\tld.global.u64 \t%rd3, [%rd1+12];", in}, {"misaligned"}},
      {{"\tld.global.v4.u32 \t{%r1, %r2, %r3, %r4}, [%rd1+4];", in}, {"an access of 16 bytes is misaligned"}},
      {{"\tld.global.u64 \t%rd3, [%rd1+4];", in}, {"an access of 8 bytes is misaligned"}},
      {{"\tst.global.u32 \t[%rd2+4], %r1;", in, 1}, {"register %r1 is read before it is written"}},
      {{"\tmov.u32 \t%r1, 1;\n\tst.global.u32 \t[%rd2+4], %r1;", in, 1},
       {"line 19", "offset 4 is out of bounds"}},
      {{"\tld.global.u32 \t%r1, [%rd2];", in, 1}, {"byte 0 of allocation", "read uninitialised"}},
      {{"\tmov.u64 \t%rd3, 16;\n\tld.global.u32 \t%r1, [%rd3];", in}, {"address 0x10 lies in no allocation"}},
      {{"\tadd.s64 \t%rd3, %rd1, 0x1000000000;\n\tld.global.u32 \t%r1, [%rd3];", in},
       {"lies in no allocation"}},
      {{"\tatom.global.add.u64 \t%rd3, [%rd1+4], 1;", in}, {"misaligned"}},
      {{"\tatom.global.add.u32 \t%r1, [%rd2], 1;", in, 1}, {"read uninitialised"}},
  });
}

TEST_CASE("accesses of local, shared and parameter memory are checked too", "[ptx]") {
  check_faults({
      {{"\t.local .align 4 .b8 own[8];\n\tld.local.u32 \t%r1, [own+4];", {}},
       {"byte 4 of local memory is read unin"}},
      {{"\t.local .align 4 .b8 own[8];\n\tld.local.u32 \t%r1, [own+8];", {}}, {"local memory has 8 bytes"}},
      {{"\tld.shared.u32 \t%r1, [dynamic];", {}, 0, 1, 1, 8},
       {"byte 0 of shared memory is read uninitialised"}},
      {{"\tld.shared.u32 \t%r1, [dynamic+8];", {}, 0, 1, 1, 8}, {"shared memory has 8 bytes"}},
      {{"\tmov.u32 \t%r1, 1;\n\tst.shared.u32 \t[dynamic+2], %r1;", {}, 0, 1, 1, 8},
       {"address 0x2", "misaligned"}},
      {{"\tmov.u32 \t%r1, -4;\n\tld.shared.u32 \t%r2, [%r1];", {}, 0, 1, 1, 8}, {"out of bounds"}},
      {{"\tatom.shared.add.u32 \t%r1, [dynamic], 1;", {}, 0, 1, 1, 8}, {"read uninitialised"}},
      {{"\tld.param.u64 \t%rd3, [out+8];", {}}, {"the parameters has 16 bytes"}},
  });
}

TEST_CASE("registers never written may be copied, not used", "[ptx]") {
  const std::string copies = "\tmov.u32 \t%r2, %r1;\n\tselp.b32 \t%r3, %r2, %r2, %p2;\n";
  const std::string set = "\tmov.u32 \t%r5, 0;\n\tsetp.eq.s32 \t%p2, %r5, 0;\n";
  check_faults({
      {{"\tadd.s32 \t%r2, %r1, 1;", {}}, {"register %r1 is read before"}},
      {{"\t@%p1 ret;", {}}, {"'@%p1 ret'", "register %p1 is read before"}},
      {{set + copies + "\tadd.s32 \t%r4, %r3, 1;", {}}, {"line 22", "register %r3 is read before"}},
  });
  CHECK(run_in_out({set + copies + "\tst.global.u32 \t[%rd2], %r5;", {}, 1}).front() == 0);
}

TEST_CASE("a trap is a fault", "[ptx]") {
  check_faults({{{"\ttrap;", {}}, {"'trap'", "the kernel traps"}}});
}

TEST_CASE("a barrier that some threads do not reach is a fault", "[ptx]") {
  const std::string some = after_prologue("\tsetp.eq.s32 \t%p1, %r1, 5;\n");
  check_faults({
      {{some + "\t@%p1 bra \t$L__BB0_1;\n\tbar.sync \t0;\n$L__BB0_1:", {}, 1, 1, 32},
       {"'bar.sync \t0'", "not all threads of the block arrive", "thread 5 has ended"}},
      {{some +
            "\t@%p1 bra \t$L__BB0_1;\n\tbar.sync \t0;\n\tbra.uni \t$L__BB0_2;\n$L__BB0_1:\n\tbar.sync \t0;\n"
            "$L__BB0_2:",
        {},
        1,
        1,
        32},
       {"not all threads of the block arrive", "thread 5 is at line 31"}},
      {{some + "\t@%p1 ret;\n\tbar.sync \t0;", {}, 1, 1, 64}, {"thread 5 has ended"}},
  });
}

TEST_CASE("a warp-wide operation needs the whole warp at one instruction", "[ptx]") {
  constexpr std::string_view load =
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 \t{%r4, %r5, %r6, %r7}, [dynamic];\n";
  const std::string some =
      after_prologue("\tst.shared.u32 \t[%r2], %r1;\n\tbar.sync \t0;\n\tsetp.eq.s32 \t%p1, %r1, 37;\n");
  check_faults({
      {{some + "\t@!%p1 " + std::string(load), {}, 0, 1, 64, 512},
       {"not all threads of the warp arrive", "thread 37 has ended"}},
      {{some + "\t@%p1 bra \t$L__BB0_1;\n\t" + std::string(load) + "$L__BB0_1:\n\tbar.sync \t0;",
        {},
        0,
        1,
        64,
        512},
       {"not all threads of the warp arrive", "thread 37 is at line"}},
      {{after_prologue("\tst.shared.u32 \t[dynamic], 7;\n\t") + std::string(load), {}, 0, 1, 32, 512},
       {"race", "is read, written by several threads"}},
      {{"\t" + std::string(load), {}, 0, 1, 16, 512}, {"the warp has 16 threads, the operation needs 32"}},
  });
}

// Allowed accesses of two threads to shared memory between two barriers.
TEST_CASE("accesses of shared memory that no barrier orders are races", "[ptx]") {
  const std::string zero =
      after_prologue("\tmov.b32 \t%r9, 0;\n\tst.shared.u32 \t[%r2], %r9;\n\tbar.sync \t0;\n");
  const std::string fill = zero + "\tst.shared.u32 \t[%r2], %r1;\n";
  const std::string one_value = zero + "\tst.shared.u32 \t[dynamic], 7;\n";
  const auto in_block = [](std::string body) { return InOut{std::move(body), {}, 1, 1, 4, 64}; };
  check_faults({
      {in_block(fill + "\tld.shared.u32 \t%r4, [dynamic];"), {"race", "is read, written by thread"}},
      {in_block(fill + "\tst.shared.u32 \t[dynamic+4], %r1;"), {"race", "is written, written by thread"}},
      {in_block(zero + "\tld.shared.u32 \t%r4, [dynamic+4];\n\tst.shared.u32 \t[%r2], %r1;"),
       {"race", "is written, read by"}},
      {in_block(zero + "\tatom.shared.add.u32 \t%r4, [dynamic], 1;\n\tld.shared.u32 \t%r5, [dynamic];"),
       {"race", "is read, changed by an atomic operation"}},
      {in_block(fill + "\tatom.shared.add.u32 \t%r4, [dynamic], 1;"),
       {"race", "changed by an atomic operation"}},
      {in_block(one_value + "\tatom.shared.add.u32 \t%r4, [dynamic], 1;"),
       {"race", "changed by an atomic operation, written by several threads"}},
      {in_block(one_value + "\tld.shared.u32 \t%r4, [dynamic];"),
       {"race", "is read, written by several threads"}},
      {in_block(after_prologue("\tst.shared.u8 \t[dynamic+3], 1;\n\tst.shared.u32 \t[dynamic], %r1;")),
       {"race"}},
  });
}

TEST_CASE("accesses that a barrier orders, and writes of one value, are no races", "[ptx]") {
  const std::string fill = after_prologue("\tst.shared.u32 \t[%r2], %r1;\n");
  const std::vector<std::string> bodies{
      fill + "\tbar.sync \t0;\n\tld.shared.u32 \t%r4, [dynamic+4];",
      fill + "\tld.shared.u32 \t%r4, [%r2];\n\tst.shared.u32 \t[%r2], %r3;",
      after_prologue("\tmov.b32 \t%r9, 7;\n\tst.shared.u32 \t[dynamic], %r9;\n\tbar.sync \t0;\n"
                     "\tld.shared.u32 \t%r4, [dynamic];"),
      after_prologue("\tadd.s32 \t%r4, %r1, 0;\n\tmov.u32 \t%r5, dynamic;\n\tadd.s32 \t%r5, %r5, %r1;\n"
                     "\tcvt.u16.u32 \t%rs1, %r1;\n\tst.shared.u8 \t[%r5], %rs1;"),
  };
  for (const std::string& body : bodies) {
    INFO(body);
    CHECK(run_in_out({body + "\n\tst.global.u32 \t[%rd4], %r4;", {}, 4, 1, 4, 64}).size() == 4);
  }
}

TEST_CASE("the host's accesses of global memory are checked", "[ptx]") {
  GlobalMemory memory;
  const std::uint64_t address = memory.allocate(8);
  std::vector<std::byte> bytes(8, std::byte{3});
  check_says(message_of<Violation>([&] { memory.read(bytes, address); }), {"read uninitialised"});
  check_says(message_of<Violation>([&] { memory.write(address + 1, bytes); }), {"out of bounds"});
  check_says(message_of<Violation>([&] { memory.free(address + 1); }), {"lies inside the allocation"});
  memory.fill(address, std::byte{9}, 4);
  const std::uint64_t other = memory.allocate(8);
  memory.copy(other, address, 8);
  memory.read(std::span(bytes).first(4), other);
  CHECK(bytes[3] == std::byte{9});
  check_says(message_of<Violation>([&] { memory.read(bytes, other); }), {"byte 4", "read uninitialised"});
  memory.read_all(bytes, other);
  CHECK(bytes[4] == unwritten);
  memory.free(address);
  check_says(message_of<Violation>([&] { memory.free(address); }), {"after it was freed"});
  check_says(message_of<Violation>([&] { memory.write(address, bytes); }), {"after it was freed"});
  CHECK(memory.allocate(8) != address);
}

}  // namespace
}  // namespace halfscope::ptx::fault_test
