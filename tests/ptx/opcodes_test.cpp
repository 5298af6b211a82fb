// Every typed opcode against its definition: tables of bits, and each line of the table in one of them.
#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "tests/ptx/fault.hpp"
#include "tests/ptx/opcode.hpp"
#include "tests/ptx/opcode_cases.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::ptx::opcodes_test {
namespace {

void check_cases(std::span<const OpcodeCase> cases) {
  for (const OpcodeCase& c : cases) {
    INFO(c.opcode << std::hex << " of 0x" << c.sources[0] << " 0x" << c.sources[1] << " 0x" << c.sources[2]
                  << " 0x" << c.sources[3] << " should be 0x" << c.result);
    CHECK(result_of(c.opcode, c.sources) == c.result);
  }
}

/// Each line of `opcodes` needs a case.
void check_complete(std::span<const Opcode> opcodes,
                    std::initializer_list<std::span<const OpcodeCase>> tables) {
  std::set<std::string_view> tested;
  for (const auto& table : tables) {
    for (const OpcodeCase& c : table) tested.insert(c.opcode);
  }
  for (const Opcode& opcode : opcodes) {
    INFO(opcode.name);
    CHECK(tested.contains(opcode.name));
  }
}

TEST_CASE("integer opcodes wrap, divide toward zero and keep their signs apart", "[ptx]") {
  check_cases(integer_cases());
  check_complete(integer_opcodes(), {integer_cases()});
}

TEST_CASE("opcodes on bits clamp their amounts at the width", "[ptx]") {
  check_cases(bit_cases());
  check_complete(bit_opcodes(), {bit_cases()});
}

TEST_CASE("floating-point opcodes round once, keep subnormals and return the GPU's NaN", "[ptx]") {
  check_cases(float_cases());
  check_cases(double_cases());
  check_complete(float_opcodes(), {float_cases(), double_cases()});
}

TEST_CASE("conversions round ties to even and saturate integers", "[ptx]") {
  check_cases(convert_cases());
  check_complete(convert_opcodes(), {convert_cases()});
}

TEST_CASE("a quotient or remainder by zero is a fault", "[ptx]") {
  std::size_t tested = 0;
  for (const Opcode& opcode : integer_opcodes()) {
    if (!opcode.name.starts_with("div") && !opcode.name.starts_with("rem")) continue;
    const std::array<std::uint64_t, 2> sources{7, 0};
    const std::string message = message_of<Fault>([&] { (void)result_of(opcode.name, sources); });
    check_says(message, {"k, block 0, thread 0", std::string(opcode.name), "division by zero"});
    ++tested;
  }
  CHECK(tested >= 6);
}

TEST_CASE("an address in another space's window is a fault", "[ptx]") {
  for (const std::string_view opcode : {"cvta.to.shared.u64", "cvta.to.local.u64"}) {
    const std::array<std::uint64_t, 1> sources{0x1234};
    check_says(message_of<Fault>([&] { (void)result_of(opcode, sources); }), {"does not lie in"});
  }
}

TEST_CASE("lines of one name differ in their operands", "[ptx]") {
  const auto shape = [](const Opcode& opcode) {
    std::string text(opcode.name);
    const Signature& signature = opcode.action.signature;
    for (std::size_t i = 0; i < signature.size; ++i) {
      const Item& item = signature.items[i];
      text += " " + std::to_string(item.kind == ItemKind::address) + std::to_string(item.count);
    }
    return text;
  };
  std::set<std::string> shapes;
  for (const Opcode* opcode : all_opcodes()) {
    INFO(opcode->name);
    CHECK(shapes.insert(shape(*opcode)).second);
  }
}

}  // namespace
}  // namespace halfscope::ptx::opcodes_test
