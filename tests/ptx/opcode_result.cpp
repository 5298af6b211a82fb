// Kernels of one opcode, made from its signature: sources from parameters, the result to global memory.
#include <map>

#include "tests/ptx/opcode_cases.hpp"
#include "tests/ptx/run_kernel.hpp"

namespace halfscope::ptx {
namespace {

std::string register_of(Width width, std::size_t number) {
  if (width == Width::predicate) return fmt::format("%p{}", number);
  if (width == Width::bits64) return fmt::format("%rd{}", number);
  return fmt::format("%r{}{}", width == Width::bits32 ? "" : "s", number);
}

/// From 64 bits to the register.
std::string narrowed(Width width, std::size_t number) {
  const std::string to = register_of(width, number);
  if (width == Width::predicate) return fmt::format("\tsetp.ne.s64 \t{}, %rd16, 0;\n", to);
  if (width == Width::bits64) return fmt::format("\tmov.u64 \t{}, %rd16;\n", to);
  return fmt::format("\tcvt.u{}.u64 \t{}, %rd16;\n", width == Width::bits32 ? 32 : 16, to);
}

/// From the register to 64 bits.
std::string widened(Width width, std::size_t number) {
  const std::string from = register_of(width, number);
  if (width == Width::predicate) return fmt::format("\tselp.u64 \t%rd16, 1, 0, {};\n", from);
  if (width == Width::bits64) return fmt::format("\tmov.u64 \t%rd16, {};\n", from);
  return fmt::format("\tcvt.u64.u{} \t%rd16, {};\n", width == Width::bits32 ? 32 : 16, from);
}

Module module_of(std::string_view name) {
  const Signature& signature = all_opcodes()[opcodes_called(name).front()]->action.signature;
  std::string parameters = "\t.param .u64 out";
  std::string body;
  std::string operands;
  for (std::size_t i = 0; i < signature.size; ++i) {
    const Width width = signature.items[i].width;
    operands += (i == 0 ? "" : ", ") + register_of(width, i);
    if (i == 0) continue;
    parameters += fmt::format(",\n\t.param .u64 source{}", i);
    body += fmt::format("\tld.param.u64 \t%rd16, [source{}];\n", i) + narrowed(width, i);
  }
  body += fmt::format("\t{} \t{};\n", name, operands) + widened(signature.items[0].width, 0);
  body += "\tld.param.u64 \t%rd15, [out];\n\tst.global.u64 \t[%rd15], %rd16;";
  return parse(kernel_text(parameters, body, 75));
}

}  // namespace

std::uint64_t result_of(std::string_view opcode, std::span<const std::uint64_t> sources) {
  static std::map<std::string, Module, std::less<>> modules;
  auto found = modules.find(opcode);
  if (found == modules.end()) found = modules.emplace(opcode, module_of(opcode)).first;
  const Module& module = found->second;
  Machine machine({});
  const std::uint64_t out = machine.memory().allocate(sizeof(std::uint64_t));
  std::vector<std::uint64_t> values{out};
  for (std::size_t i = 1; i < module.entries.front().parameters.size(); ++i) values.push_back(sources[i - 1]);
  const std::vector<std::byte> parameters = parameters_of(values);
  machine.launch(module, {"k", 1, 1, 0, parameters});
  return to_host<std::uint64_t>(machine, out, 1).front();
}

}  // namespace halfscope::ptx
