// Contraction of products and sums: which registers hold products at each line of a basic block.
#include "tests/ptx/contraction.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

namespace halfscope::ptx {
namespace {

struct Product {
  std::string_view a, b;
};
using Products = std::map<std::string_view, Product>;

/// Forgets products that `result` is, or is a factor of.
void forget(Products& products, std::string_view result) {
  std::erase_if(products, [&](const auto& entry) {
    return entry.first == result || entry.second.a == result || entry.second.b == result;
  });
}

std::string negated_then(std::string_view number, std::string_view rest) {
  return fmt::format("\t{{ .reg .b32 %negated; neg.f32 %negated, {}; fma.rn.f32 {} }}", number, rest);
}

std::optional<std::string> fused(const InstructionWords& words, const Products& products) {
  if (words.guarded) return std::nullopt;
  const bool sum = words.opcode == "add.rn.f32";
  if ((!sum && words.opcode != "sub.rn.f32") || words.operands.size() != 3) return std::nullopt;
  const std::string_view to = words.operands[0], x = words.operands[1], y = words.operands[2];
  if (const auto found = products.find(x); found != products.end()) {
    const auto& [a, b] = found->second;
    if (sum) return fmt::format("\tfma.rn.f32 {}, {}, {}, {};", to, a, b, y);
    return negated_then(y, fmt::format("{}, {}, {}, %negated;", to, a, b));
  }
  if (const auto found = products.find(y); found != products.end()) {
    const auto& [a, b] = found->second;
    if (sum) return fmt::format("\tfma.rn.f32 {}, {}, {}, {};", to, a, b, x);
    return negated_then(a, fmt::format("{}, %negated, {}, {};", to, b, x));
  }
  return std::nullopt;
}

void note(Products& products, const InstructionWords& words) {
  for (std::size_t i = 0; i < words.results; ++i) forget(products, words.operands[i]);
  if (words.guarded || words.opcode != "mul.rn.f32" || words.operands.size() != 3) return;
  const std::string_view to = words.operands[0], a = words.operands[1], b = words.operands[2];
  if (to != a && to != b) products[to] = {a, b};
}

}  // namespace

std::vector<std::pair<std::size_t, std::string>> contractions(std::span<const InstructionWords> lines) {
  std::vector<std::pair<std::size_t, std::string>> all;
  Products products;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].ends_block) products.clear();
    if (auto text = fused(lines[i], products)) all.emplace_back(i, std::move(*text));
    note(products, lines[i]);
  }
  return all;
}

}  // namespace halfscope::ptx
