// Every typed load and store: the bytes that it moves, in every space and vector size.
#include <algorithm>
#include <numeric>

#include "tests/ptx/run_kernel.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::ptx::memory_test {
namespace {

/// ld.volatile.global.v4.f32 taken apart.
struct Access {
  std::string name;
  std::string space;
  std::string type;
  std::size_t count = 1;
  std::size_t bytes = 0;  ///< bytes of an element
};

Access access_of(std::string_view name) {
  Access access{std::string(name), {}, {}};
  for (const std::string_view space : {"global", "shared", "local", "param"}) {
    if (name.find(fmt::format(".{}.", space)) != std::string_view::npos) access.space = space;
  }
  if (name.find(".v2.") != std::string_view::npos) access.count = 2;
  if (name.find(".v4.") != std::string_view::npos) access.count = 4;
  access.type = name.substr(name.rfind('.') + 1);
  access.bytes = static_cast<std::size_t>(std::stoi(access.type.substr(1))) / 8;
  return access;
}

std::vector<Access> accesses(std::string_view opcode) {
  std::vector<Access> all;
  for (const Opcode& line : memory_opcodes()) {
    if (line.name.starts_with(opcode)) all.push_back(access_of(line.name));
  }
  return all;
}

/// The names of the elements' registers: `reg` at their width.
std::string element(const Access& access, std::size_t i) {
  const std::string_view prefix = access.bytes == 8 ? "%rd" : access.bytes == 4 ? "%r" : "%rs";
  return fmt::format("{}{}", prefix, 4 + i);
}
std::string elements(const Access& access) {
  std::string list = element(access, 0);
  for (std::size_t i = 1; i < access.count; ++i) list += ", " + element(access, i);
  return access.count == 1 ? list : "{" + list + "}";
}

/// Bytes with their upper bits set, so that signs and zeros differ.
std::vector<std::uint8_t> pattern() {
  std::vector<std::uint8_t> bytes(16);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0xF1});
  return bytes;
}

/// The first element of the access, extended to 64 bits as the register has it.
std::uint64_t expected_element(const Access& access, std::size_t i) {
  const std::vector<std::uint8_t> bytes = pattern();
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + i * access.bytes, access.bytes);
  const bool negative = access.type == "s8" && (value >> (8 * access.bytes - 1)) != 0;
  if (!negative) return value;
  return value | (0xFFFF & ~std::uint64_t{0xFF});  // s8 in a register of 16 bits
}

/// 64 bits of element `i` to out + 8 i.
std::string write_out(const Access& access, std::size_t i) {
  const std::string reg = element(access, i);
  if (access.bytes == 8) return fmt::format("\tst.global.u64 \t[%rd2+{}], {};\n", 8 * i, reg);
  return fmt::format("\tcvt.u64.u{} \t%rd3, {};\n\tst.global.u64 \t[%rd2+{}], %rd3;\n",
                     access.bytes == 4 ? 32 : 16, reg, 8 * i);
}

std::string byte_loop(std::string_view body) {
  std::string text;
  for (int i = 0; i < 16; ++i) text += fmt::format(fmt::runtime(body), fmt::arg("i", i));
  return text;
}

std::string module_text(std::string_view body) {
  return kernel_text("\t.param .u64 in,\n\t.param .u64 out,\n\t.param .align 16 .b8 bytes[16]",
                     fmt::format("\t.local .align 16 .b8 local[16];\n\t.shared .align 16 .b8 shared[16];\n"
                                 "\tld.param.u64 \t%rd1, [in];\n\tld.param.u64 \t%rd2, [out];\n{}",
                                 body),
                     75);
}

/// Output of a kernel for `in` and the parameter `bytes`, which both have the pattern.
template <typename T>
std::vector<T> run(const std::string& body, std::size_t count) {
  Machine machine({});
  const std::uint64_t in = to_device(machine, pattern());
  const std::uint64_t out = machine.memory().allocate(count * sizeof(T));
  std::vector<std::byte> parameters = parameters_of({in, out});
  for (const std::uint8_t byte : pattern()) parameters.push_back(std::byte{byte});
  machine.launch(parse(module_text(body)), {"k", 1, 1, 0, parameters});
  return to_host<T>(machine, out, count);
}

std::string address_in(const Access& access) {
  if (access.space == "global") return access.name.starts_with("ld") ? "%rd1" : "%rd2";
  return access.space == "param" ? "bytes" : access.space;
}

TEST_CASE("each typed load brings its bytes, lowest first, and extends them", "[ptx]") {
  const std::vector<Access> loads = accesses("ld.");
  CHECK(loads.size() > 30);
  for (const Access& access : loads) {
    INFO(access.name);
    std::string body;
    if (access.space == "shared" || access.space == "local") {
      body = byte_loop("\tld.global.u8 \t%rs1, [%rd1+{i}];\n\tst." + access.space + ".u8 \t[" + access.space +
                       "+{i}], %rs1;\n");
    }
    body += fmt::format("\t{} \t{}, [{}];\n", access.name, elements(access), address_in(access));
    for (std::size_t i = 0; i < access.count; ++i) body += write_out(access, i);
    const std::vector<std::uint64_t> out = run<std::uint64_t>(body, access.count);
    for (std::size_t i = 0; i < access.count; ++i) CHECK(out[i] == expected_element(access, i));
  }
}

TEST_CASE("each typed store writes its bytes and no others", "[ptx]") {
  const std::vector<Access> stores = accesses("st.");
  CHECK(stores.size() > 20);
  for (const Access& access : stores) {
    INFO(access.name);
    const std::string to = address_in(access);
    std::string body =
        byte_loop("\tmov.u16 \t%rs1, 7;\n\tst." + access.space + ".u8 \t[" + to + "+{i}], %rs1;\n");
    for (std::size_t i = 0; i < access.count; ++i) {
      body += fmt::format("\tld.global.u{} \t{}, [%rd1+{}];\n", 8 * access.bytes, element(access, i),
                          i * access.bytes);
    }
    body += fmt::format("\t{} \t[{}], {};\n", access.name, to, elements(access));
    if (access.space != "global") {
      body += byte_loop("\tld." + access.space + ".u8 \t%rs1, [" + to +
                        "+{i}];\n\tst.global.u8 \t[%rd2+{i}], %rs1;\n");
    }
    std::vector<std::uint8_t> expected(16, 7);
    const std::vector<std::uint8_t> bytes = pattern();
    std::copy_n(bytes.begin(), access.count * access.bytes, expected.begin());
    CHECK(run<std::uint8_t>(body, 16) == expected);
  }
}

TEST_CASE("halves of a register are taken apart and put together, lowest first", "[ptx]") {
  const std::string body =
      "\tld.global.u64 \t%rd4, [%rd1];\n"
      "\tmov.b64 \t{%r1, %r2}, %rd4;\n"
      "\tmov.b32 \t{%rs1, %rs2}, %r1;\n"
      "\tmov.b32 \t%r3, {%rs2, %rs1};\n"
      "\tmov.b64 \t%rd5, {%r2, %r3};\n"
      "\tst.global.u64 \t[%rd2], %rd5;\n";
  CHECK(run<std::uint64_t>(body, 1).front() == 0xF2F1'F4F3'F8F7'F6F5);
}

}  // namespace
}  // namespace halfscope::ptx::memory_test
