// Comparisons against the relations that they are true of: less, equal, greater, unordered.
#include <array>
#include <set>

#include "tests/ptx/opcode.hpp"
#include "tests/ptx/opcode_cases.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::ptx::compare_test {
namespace {

enum Relation : unsigned { less = 1, equal = 2, greater = 4, unordered = 8 };

struct Comparison {
  std::string_view name;
  unsigned relations;
};
constexpr std::array comparisons{
    Comparison{"eq", equal},
    Comparison{"ne", less | greater},
    Comparison{"lt", less},
    Comparison{"le", less | equal},
    Comparison{"gt", greater},
    Comparison{"ge", greater | equal},
    Comparison{"equ", equal | unordered},
    Comparison{"neu", less | greater | unordered},
    Comparison{"ltu", less | unordered},
    Comparison{"leu", less | equal | unordered},
    Comparison{"gtu", greater | unordered},
    Comparison{"geu", greater | equal | unordered},
    Comparison{"num", less | equal | greater},
    Comparison{"nan", unordered},
};

struct Pair {
  std::uint64_t a, b;
  unsigned relation;
};
struct TypedPairs {
  std::string_view type;
  std::vector<Pair> pairs;
};

const std::vector<TypedPairs>& typed_pairs() {
  static const std::vector<TypedPairs> all{
      {"s16", {{0xFFFF, 1, less}, {1, 1, equal}, {1, 0x8000, greater}}},
      {"u16", {{1, 0xFFFF, less}, {0x8000, 0x8000, equal}, {0x8000, 1, greater}}},
      {"b16", {{1, 0xFFFF, less}, {0x8000, 0x8000, equal}}},
      {"s32", {{0xFFFF'FFFF, 1, less}, {1, 1, equal}, {1, 0x8000'0000, greater}}},
      {"u32", {{1, 0xFFFF'FFFF, less}, {5, 5, equal}, {0x8000'0000, 1, greater}}},
      {"b32", {{1, 0xFFFF'FFFF, less}, {5, 5, equal}}},
      {"s64",
       {{~std::uint64_t{0}, 1, less}, {1, 1, equal}, {0x1'0000'0000, 1, greater}, {1, 1ull << 63, greater}}},
      {"u64", {{1, ~std::uint64_t{0}, less}, {5, 5, equal}, {1ull << 63, 1, greater}}},
      {"b64", {{1, 0x1'0000'0001, less}, {5, 5, equal}}},
      {"f32",
       {{0xBF80'0000, 0x3F80'0000, less},
        {0, 0x8000'0000, equal},
        {0x8000'0000, 0, equal},
        {1, 0, greater},
        {0x7F80'0000, 0x7F7F'FFFF, greater},
        {0x7FC0'0000, 0x3F80'0000, unordered},
        {0x3F80'0000, 0xFFC0'0000, unordered},
        {0x7FC0'0000, 0x7FC0'0000, unordered}}},
      {"f64",
       {{0xBFF0'0000'0000'0000, 0x3FF0'0000'0000'0000, less},
        {0, 1ull << 63, equal},
        {1, 0, greater},
        {0x7FF8'0000'0000'0000, 0, unordered},
        {0, 0x7FF8'0000'0000'0000, unordered}}},
  };
  return all;
}

const std::vector<Pair>& pairs_of(std::string_view type) {
  for (const TypedPairs& typed : typed_pairs()) {
    if (typed.type == type) return typed.pairs;
  }
  FAIL("no pairs of the type " << type);
  return typed_pairs().front().pairs;
}

unsigned relations_of(std::string_view name) {
  for (const Comparison& comparison : comparisons) {
    if (comparison.name == name) return comparison.relations;
  }
  FAIL("no relations of the comparison " << name);
  return 0;
}

/// The parts of a name between its dots.
std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  for (std::size_t dot = 0; dot != std::string_view::npos;) {
    dot = name.find('.');
    parts.push_back(name.substr(0, dot));
    name.remove_prefix(dot == std::string_view::npos ? 0 : dot + 1);
  }
  return parts;
}

bool joined(std::string_view how, bool a, bool b) {
  if (how == "and") return a && b;
  return how == "or" ? a || b : a != b;
}

TEST_CASE("comparisons are true of their relations, and of NaN where they say so", "[ptx]") {
  for (const Opcode& opcode : compare_opcodes()) {
    const std::vector<std::string_view> parts = parts_of(opcode.name);  // setp.eq.and.s32
    const unsigned relations = relations_of(parts[1]);
    for (const Pair& pair : pairs_of(parts.back())) {
      for (const bool third : {false, true}) {
        INFO(opcode.name << std::hex << " of 0x" << pair.a << " 0x" << pair.b << " " << third);
        const bool alone = (relations & pair.relation) != 0;
        const bool expected = parts.size() == 3 ? alone : joined(parts[2], alone, third);
        const std::array<std::uint64_t, 3> sources{pair.a, pair.b, third ? 1u : 0u};
        CHECK(result_of(opcode.name, sources) == (expected ? 1u : 0u));
      }
    }
  }
}

}  // namespace
}  // namespace halfscope::ptx::compare_test
