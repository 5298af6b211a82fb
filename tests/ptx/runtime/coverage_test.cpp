// Coverage as a line of JSON, and its file.
#include <fstream>
#include <sstream>

#include "tests/ptx/run_kernel.hpp"
#include "tests/ptx/runtime/coverage.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::ptx::coverage_test {
namespace {

TEST_CASE("a line of coverage has what was not reached too", "[ptx][coverage]") {
  Module module = parse(kernel_text("",
                                    "\tmov.u32 \t%r1, %tid.x;\n\tsetp.gt.u32 \t%p1, %r1, 2;\n"
                                    "\t@%p1 bra \t$L__BB0_1;\n\tadd.s32 \t%r2, %r1, 1;\n"
                                    "\tadd.s32 \t%r2, %r1, 2;\n$L__BB0_1:\n"
                                    "\tsetp.gt.u32 \t%p2, %r1, 9;\n\t@%p2 add.s64 \t%rd1, %rd1, 1;"));
  Entry never = module.entry("k");
  never.name = "never";
  Machine machine({});
  machine.launch(module, {"k", 1, 4, 0, {}});
  machine.launch(module, {"k", 1, 1, 0, {}});
  CHECK(coverage_line(machine.coverage(), {&module.entry("k"), &never}) ==
        "{\"entries\": {\"k\": 2, \"never\": 0}, \"opcodes\": {\"add.s32\": 8, \"add.s64\": 0, \"bra\": 1, "
        "\"mov.u32\": 5, \"ret\": 5, \"setp.gt.u32\": 10}}\n");
}

TEST_CASE("lines of coverage are appended to a file", "[ptx][coverage]") {
  const TemporaryFolder folder;
  const std::string file = folder / "lines.jsonl";
  append_line(file, "{}\n");
  append_line(file, "[]\n");
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  CHECK(text.str() == "{}\n[]\n");
  check_says(message_of<RuntimeFailure>([&] { append_line(folder / "no/file", "{}\n"); }),
             {"no/file", "No such file"});
}

}  // namespace
}  // namespace halfscope::ptx::coverage_test
