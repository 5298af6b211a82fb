// Several tables of 32-bit counts, which are emptied into 64 bits before they can wrap.
#include <halfscope/kernel/code_counts.hpp>

#include <algorithm>
#include <cstring>
#include <limits>

namespace halfscope {
namespace {

constexpr std::size_t step = std::size_t{1} << 24;  // bytes between two looks at how full the tables are

/// Two tables of 65,536 fit the second cache beside each other; those of 256 codes cost nothing.
template <typename Code>
constexpr std::size_t tables = sizeof(Code) == 1 ? 8 : 2;
template <typename Code>
constexpr std::size_t codes = std::size_t{1} << (8 * sizeof(Code));

template <typename Code>
void count_codes(std::span<const std::byte> elements, std::uint32_t* counts) {
  constexpr std::size_t word_codes = sizeof(std::uint64_t) / sizeof(Code);
  std::size_t i = 0;
  for (; i + sizeof(std::uint64_t) <= elements.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word;  // one load for several codes
    std::memcpy(&word, elements.data() + i, sizeof word);
    for (std::size_t j = 0; j < word_codes; ++j) {
      const auto code = static_cast<Code>(word >> (8 * sizeof(Code) * j));
      ++counts[j % tables<Code> * codes<Code> + code];
    }
  }
  for (; i < elements.size(); i += sizeof(Code)) {
    Code code;
    std::memcpy(&code, elements.data() + i, sizeof code);
    ++counts[code];
  }
}

}  // namespace

CodeCounts::CodeCounts(std::size_t bytes) : bytes_(bytes), totals_(std::size_t{1} << (8 * bytes)) {}

void CodeCounts::add(std::span<const std::byte> elements) {
  const std::size_t number = bytes_ == 1 ? tables<std::uint8_t> : tables<std::uint16_t>;
  for (; !elements.empty(); elements = elements.subspan(std::min(step, elements.size()))) {
    const auto here = elements.first(std::min(step, elements.size()));
    if (most_ + here.size() > std::numeric_limits<std::uint32_t>::max()) settle();
    most_ += here.size();
    tables_.resize(number * totals_.size());
    bytes_ == 1 ? count_codes<std::uint8_t>(here, tables_.data())
                : count_codes<std::uint16_t>(here, tables_.data());
  }
}

void CodeCounts::merge(const CodeCounts& other) {
  for (std::size_t code = 0; code < totals_.size(); ++code) totals_[code] += other.totals_[code];
  for (std::size_t i = 0; i < other.tables_.size(); ++i) totals_[i % totals_.size()] += other.tables_[i];
}

void CodeCounts::settle() {
  for (std::size_t i = 0; i < tables_.size(); i += totals_.size()) {
    for (std::size_t code = 0; code < totals_.size(); ++code) totals_[code] += tables_[i + code];
  }
  tables_ = {};
  most_ = 0;
}

}  // namespace halfscope
