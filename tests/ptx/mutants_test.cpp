// Mutants of small texts: which there are, and what the text is with each in it.
#include "tests/ptx/mutants.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "tests/ptx/run_kernel.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::ptx::mutants_test {
namespace {

std::vector<std::string> names_of(const std::vector<ListedMutant>& mutants) {
  std::vector<std::string> names;
  names.reserve(mutants.size());
  for (const ListedMutant& listed : mutants) names.push_back(name_of(listed.mutant) + ": " + listed.changed);
  return names;
}

TEST_CASE("every kind of mutant is found, and its text can be parsed", "[ptx][mutants]") {
  const std::string text = kernel_text(
      "\t.param .u64 in",
      "\t.shared .align 4 .b8 first[64];\n\t.shared .align 2 .b8 second[32];\n"
      "\tmul.rn.f32 \t%r1, %r2, %r3;\n\tadd.rn.f32 \t%r4, %r1, %r5;\n\tsetp.lt.u32 \t%p1, %r7, %r8;\n"
      "\tcp.async.commit_group;\n\tcp.async.wait_group \t1;\n\tbar.sync \t0;\n\tmov.u32 \t%r9, dynamic;");
  const std::vector<ListedMutant> all = mutants_of(text);
  CHECK(names_of(all) == std::vector<std::string>{
                             "contraction 1 k: 1 products",
                             "comparison 1 k: setp.lt.u32 \t%p1, %r7, %r8;",
                             "commit 1 k: cp.async.commit_group;",
                             "wait 1 k: cp.async.wait_group \t1;",
                             "barrier 1 k: bar.sync \t0;",
                             "shared_array 1 k: .shared .align 4 .b8 first[64];",
                             "shared_array 2 k: .shared .align 4 .b8 first[64];",
                             "shared_array 3 k: .shared .align 2 .b8 second[32];",
                             "shared_array 4 k: .shared .align 2 .b8 second[32];",
                             "dynamic_shared 1 k: dynamic",
                             "dynamic_shared 2 k: dynamic",
                         });
  for (const ListedMutant& listed : all) {
    CHECK_NOTHROW(parse(mutated(text, listed.mutant)));
    CHECK((mutated(text, listed.mutant) == text) == (listed.mutant.kind == MutantKind::dynamic_shared));
  }
}

/// The body with the mutant in it, which stands between the declarations and `ret`.
std::string mutated_body(std::string_view body, std::string_view mutant) {
  const std::string text = mutated(kernel_text("", body), mutant_called(mutant));
  const std::size_t begin = text.find("%rd<17>;\n") + 9;
  return text.substr(begin, text.find("\n\tret;") - begin);
}

TEST_CASE("a mutant changes the lines that are its own", "[ptx][mutants]") {
  CHECK(mutated_body("\tbar.sync \t0;\n\tbar.sync \t0;", "barrier 2 k") == "\tbar.sync \t0;\n");
  CHECK(mutated_body("\tcp.async.commit_group;", "commit 1 k").empty());
  CHECK(mutated_body("\tcp.async.wait_group \t9;", "wait 1 k") == "\tcp.async.wait_group \t10;");
  using Pair = std::pair<const char*, const char*>;
  for (const auto& [before, after] :
       std::array{Pair{"lt", "le"}, Pair{"le", "lt"}, Pair{"gt", "ge"}, Pair{"ge", "gt"}}) {
    const auto line = [](const char* comparison) {
      return fmt::format("\tsetp.{}.s32 \t%p1, %r1, 5;", comparison);
    };
    CHECK(mutated_body(line(before), "comparison 1 k") == line(after));
  }
  CHECK(mutated_body("\t.shared .align 8 .b8 a[16];\n\t.shared .align 2 .b8 b[8];", "shared_array 1 k") ==
        "\n\t.shared .align 2 .b8 b[8];\n\t.shared .align 8 .b8 a[12];");
  CHECK(mutated_body("\t.shared .align 2 .b8 b[8];", "shared_array 1 k") == "\t.shared .align 2 .b8 b[6];");
  CHECK(mutated_body("\t.shared .align 4 .b8 b[8];", "shared_array 2 k") == "\t.shared .align 4 .b8 b[0];");
}

TEST_CASE("launches of a mutant have less dynamic shared memory", "[ptx][mutants]") {
  CHECK(dynamic_bytes_with(mutant_called("dynamic_shared 1 k"), 100) == 84);
  CHECK(dynamic_bytes_with(mutant_called("dynamic_shared 2 k"), 100) == 68);
  CHECK(dynamic_bytes_with(mutant_called("dynamic_shared 2 k"), 20) == 0);
  CHECK(dynamic_bytes_with(mutant_called("barrier 2 k"), 100) == 100);
}

TEST_CASE("only comparisons of indices have mutants", "[ptx][mutants]") {
  const auto count = [](std::string_view body) { return mutants_of(kernel_text("", body)).size(); };
  CHECK(count("\tmov.u32 \t%r1, %tid.x;\n\tadd.s32 \t%r2, %r1, 1;\n\tsetp.gt.s32 \t%p1, %r2, 4;") == 1);
  CHECK(count("\tld.param.u32 \t%r1, [in];\n\tsetp.gt.s32 \t%p1, %r1, 4;") == 1);
  CHECK(count("\tsetp.eq.s32 \t%p1, %r1, 4;\n\tsetp.gt.f32 \t%p1, %r1, %r2;") == 0);
  CHECK(count("\tld.global.u32 \t%r1, [%rd1];\n\tadd.s32 \t%r2, %r1, 1;\n\tsetp.gt.s32 \t%p1, %r2, 4;") == 0);
  CHECK(count("\tsetp.gt.s32 \t%p1, %r2, 4;\n\tadd.s32 \t%r2, %r1, 1;\n"
              "\tld.shared.v2.u32 \t{%r3, %r1}, [%rd1];") == 0);
  CHECK(count("\tld.global.u32 \t%r1, [%r9];\n\tst.global.u32 \t[%r2], %r1;\n"
              "\tsetp.gt.s32 \t%p1, %r2, 4;") == 1);
}

TEST_CASE("products are contracted within their basic block", "[ptx][mutants]") {
  const std::string product = "\tmul.rn.f32 \t%r1, %r2, %r3;\n";
  const auto contracted = [&](const std::string& rest) {
    return mutated_body(product + rest, "contraction 1 k").substr(product.size());
  };
  CHECK(contracted("\tadd.rn.f32 \t%r4, %r1, %r5;") == "\tfma.rn.f32 %r4, %r2, %r3, %r5;");
  CHECK(contracted("\tadd.rn.f32 \t%r4, %r5, %r1;") == "\tfma.rn.f32 %r4, %r2, %r3, %r5;");
  CHECK(contracted("\tsub.rn.f32 \t%r4, %r1, %r5;") ==
        "\t{ .reg .b32 %negated; neg.f32 %negated, %r5; fma.rn.f32 %r4, %r2, %r3, %negated; }");
  CHECK(contracted("\tsub.rn.f32 \t%r4, %r5, %r1;") ==
        "\t{ .reg .b32 %negated; neg.f32 %negated, %r2; fma.rn.f32 %r4, %negated, %r3, %r5; }");
  const std::string sum = "\tadd.rn.f32 \t%r4, %r1, %r5;";
  const auto count = [&](const std::string& rest) {
    return mutants_of(kernel_text("", product + rest)).size();
  };
  CHECK(count("\tmov.b32 \t%r6, 1;\n" + sum) == 1);
  CHECK(count("\tmov.b32 \t%r1, 1;\n" + sum) == 0);
  CHECK(count("\tld.global.v2.f32 \t{%r6, %r3}, [%rd1];\n" + sum) == 0);
  CHECK(count("$L__BB0_1:\n" + sum) == 0);
  CHECK(count("\t@%p1 bra \t$L__BB0_1;\n" + sum) == 0);
  CHECK(count("\t@!%p1 add.rn.f32 \t%r4, %r1, %r5;") == 0);
}

/// The result of a body whose registers %r1 to %r4 hold numbers that no rounding keeps apart from an fma's.
std::uint32_t result_with(std::string_view body, const MutantKind* mutant) {
  const std::string text = in_out_kernel(fmt::format(
      "\tld.global.v4.u32 \t{{%r1, %r2, %r3, %r4}}, [%rd1];\n{}\n\tst.global.u32 \t[%rd2], %r5;", body));
  const Module module = parse(mutant == nullptr ? text : mutated(text, {*mutant, 1, "k"}));
  Machine machine({});
  const std::uint64_t in = to_device<float>(machine, {1.1f, 1.3f, 1.7f, -1.43f});
  const std::uint64_t out = machine.memory().allocate(4);
  machine.launch(module, {"k", 1, 1, 0, parameters_of({in, out})});
  return to_host<std::uint32_t>(machine, out, 1).front();
}

TEST_CASE("a contracted difference is the exact one, rounded once", "[ptx][mutants]") {
  constexpr MutantKind kind = MutantKind::contraction;
  const std::string product = "\tmul.rn.f32 \t%r6, %r1, %r2;\n";
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  CHECK(result_with(product + "\tadd.rn.f32 \t%r5, %r6, %r4;", &kind) == bits(std::fma(1.1f, 1.3f, -1.43f)));
  CHECK(result_with(product + "\tsub.rn.f32 \t%r5, %r6, %r3;", &kind) == bits(std::fma(1.1f, 1.3f, -1.7f)));
  CHECK(result_with(product + "\tsub.rn.f32 \t%r5, %r3, %r6;", &kind) == bits(std::fma(-1.1f, 1.3f, 1.7f)));
  CHECK(result_with(product + "\tadd.rn.f32 \t%r5, %r6, %r4;", nullptr) !=
        bits(std::fma(1.1f, 1.3f, -1.43f)));
}

TEST_CASE("a mutant's name says all of it, and others are refused", "[ptx][mutants]") {
  const Mutant mutant{MutantKind::shared_array, 12, "_Z4fillPfi"};
  CHECK(name_of(mutant) == "shared_array 12 _Z4fillPfi");
  CHECK(mutant_called(name_of(mutant)) == mutant);
  const auto refusal = [](std::string_view name) {
    return message_of<InvalidArgument>([&] { (void)mutant_called(name); });
  };
  check_says(refusal("barrier 1"), {"'barrier 1'", "KIND NUMBER ENTRY"});
  check_says(refusal("barrier 1 "), {"KIND NUMBER ENTRY"});
  check_says(refusal("barrier x k"), {"the number 'x'"});
  check_says(refusal("barrier  k"), {"the number ''"});
  check_says(refusal("bar 1 k"), {"kind of mutant", "bar"});
  const auto missing = [](const Mutant& wanted) {
    return message_of<InvalidArgument>([&] { (void)mutated(kernel_text("", "\tbar.sync \t0;"), wanted); });
  };
  check_says(missing({MutantKind::barrier, 2, "k"}), {"no mutant is called 'barrier 2 k'"});
  check_says(missing({MutantKind::barrier, 1, "j"}), {"no mutant is called 'barrier 1 j'"});
}

}  // namespace
}  // namespace halfscope::ptx::mutants_test
