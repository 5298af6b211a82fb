// Mutants of a module's text, found line by line: nvcc writes each instruction and declaration on one of its
// own.
#include "tests/ptx/mutants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <halfscope/core/error.hpp>

#include "tests/ptx/contraction.hpp"
#include "tests/ptx/lexer.hpp"
#include "tests/ptx/loaded_registers.hpp"

namespace halfscope::ptx {
namespace {

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view trimmed(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first == std::string_view::npos ? "" : line.substr(first);
}

std::string replaced(std::string_view line, std::string_view before, std::string_view after) {
  std::string text(line);
  return text.replace(text.find(before), before.size(), after);
}

/// The name between ".entry" and the parenthesis, empty where the line begins no entry.
std::string_view entry_begun_by(std::string_view line) {
  constexpr std::string_view directive = ".entry ";
  const std::size_t begin = line.find(directive);
  if (begin == std::string_view::npos) return "";
  line.remove_prefix(begin + directive.size());
  return line.substr(0, line.find('('));
}

/// `wait_group 1` becomes `wait_group 2`.
std::string with_one_more(std::string_view line) {
  for (const Token& token : tokens_of(line)) {
    if (token.kind != TokenKind::number) continue;
    return replaced(line, token.text, std::to_string(std::stoi(std::string(token.text)) + 1));
  }
  throw InvalidArgument(fmt::format("mutants: '{}' has no number of groups", trimmed(line)));
}

std::optional<std::string> with_other_comparison(std::string_view line) {
  using Pair = std::pair<std::string_view, std::string_view>;
  constexpr std::array pairs{Pair{"setp.lt.", "setp.le."}, Pair{"setp.le.", "setp.lt."},
                             Pair{"setp.gt.", "setp.ge."}, Pair{"setp.ge.", "setp.gt."}};
  if (contains(line, ".f32") || contains(line, ".f64")) return std::nullopt;
  for (const auto& [before, after] : pairs) {
    if (contains(line, before)) return replaced(line, before, after);
  }
  return std::nullopt;
}

/// Lacks `elements`, each of 4 bytes, or of the array's alignment where that is less.
std::string shortened(std::string_view line, std::size_t elements) {
  std::size_t alignment = 1;
  std::string_view before, digits;
  for (const Token& token : tokens_of(line)) {
    if (token.kind == TokenKind::number) digits = token.text;
    if (before == ".align") alignment = std::stoul(std::string(token.text));
    before = token.text;
  }
  const std::size_t bytes = std::stoul(std::string(digits));
  const std::size_t less = std::min(elements * std::min(alignment, std::size_t{4}), bytes);
  return replaced(line, fmt::format("[{}]", bytes), fmt::format("[{}]", bytes - less));
}

/// Collects the mutants of one entry, whose first line is number `first` of the text.
class EntryMutants {
 public:
  EntryMutants(std::string_view entry, std::size_t first, std::span<const std::string_view> lines)
      : entry_(entry), first_(first), lines_(lines) {
    for (const std::string_view line : lines) words_.push_back(words_of(line));
    loaded_ = loaded_registers(words_);
  }

  std::vector<ListedMutant> take(std::span<const std::string_view> dynamic_arrays) {
    add_contraction();
    for (std::size_t i = 0; i < lines_.size(); ++i) add_of_line(i);
    add_shared_arrays();
    add_dynamic(dynamic_arrays);
    return std::move(found_);
  }

 private:
  void add(MutantKind kind, std::string_view changed, std::vector<Edit> edits) {
    const auto same = [&](const ListedMutant& other) { return other.mutant.kind == kind; };
    const auto before = static_cast<std::size_t>(std::count_if(found_.begin(), found_.end(), same));
    found_.push_back({{kind, before + 1, std::string(entry_)}, std::string(changed), std::move(edits)});
  }
  void add_edit(MutantKind kind, std::size_t line, std::string text) {
    add(kind, trimmed(lines_[line]), {{first_ + line, std::move(text)}});
  }

  void add_contraction() {
    std::vector<Edit> edits;
    for (auto& [line, text] : contractions(words_)) edits.push_back({first_ + line, std::move(text)});
    if (edits.empty()) return;
    const std::string changed = fmt::format("{} products", edits.size());
    add(MutantKind::contraction, changed, std::move(edits));
  }

  void add_of_line(std::size_t i) {
    const std::string_view line = lines_[i];
    if (contains(line, "bar.sync")) add_edit(MutantKind::barrier, i, "");
    if (contains(line, "cp.async.commit_group")) add_edit(MutantKind::commit, i, "");
    if (contains(line, "cp.async.wait_group")) add_edit(MutantKind::wait, i, with_one_more(line));
    if (!is_of_indices(words_[i])) return;
    if (auto other = with_other_comparison(line)) add_edit(MutantKind::comparison, i, std::move(*other));
  }

  /// Whether no number from memory decides.
  [[nodiscard]] bool is_of_indices(const InstructionWords& words) const {
    return std::none_of(words.operands.begin(), words.operands.end(),
                        [&](auto name) { return loaded_.contains(name); });
  }

  void add_shared_arrays() {
    std::vector<std::size_t> arrays;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (trimmed(lines_[i]).starts_with(".shared")) arrays.push_back(i);
    }
    // An array may end in one element that pads its rows; it cannot do without two.
    for (const std::size_t i : arrays) {
      for (const std::size_t elements : {1u, 2u}) add_shared_array(i, arrays.back(), elements);
    }
  }
  void add_shared_array(std::size_t line, std::size_t last, std::size_t elements) {
    const std::string short_one = shortened(lines_[line], elements);
    if (line == last) return add_edit(MutantKind::shared_array, line, short_one);
    const std::string both = fmt::format("{}\n{}", lines_[last], short_one);
    add(MutantKind::shared_array, trimmed(lines_[line]), {{first_ + line, ""}, {first_ + last, both}});
  }

  void add_dynamic(std::span<const std::string_view> arrays) {
    const auto uses = [&](std::string_view array) {
      return std::any_of(lines_.begin(), lines_.end(), [&](auto line) { return contains(line, array); });
    };
    const auto used = std::find_if(arrays.begin(), arrays.end(), uses);
    if (used == arrays.end()) return;
    for (int number = 1; number <= 2; ++number) add(MutantKind::dynamic_shared, *used, {});
  }

  std::string_view entry_;
  std::size_t first_;
  std::span<const std::string_view> lines_;
  std::vector<InstructionWords> words_;
  std::set<std::string_view> loaded_;
  std::vector<ListedMutant> found_;
};

Lines dynamic_arrays_of(const Lines& lines) {
  Lines names;
  for (const std::string_view line : lines) {
    if (!line.starts_with(".extern .shared")) continue;
    const std::string_view head = line.substr(0, line.find('['));
    names.push_back(head.substr(head.rfind(' ') + 1));
  }
  return names;
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string_view line : lines) text.append(line).append("\n");
  return text;
}

}  // namespace

std::size_t dynamic_bytes_with(const Mutant& mutant, std::size_t bytes) {
  return mutant.kind == MutantKind::dynamic_shared ? bytes - std::min(bytes, 16 * mutant.number) : bytes;
}

std::string name_of(const Mutant& mutant) {
  return fmt::format("{} {} {}", halfscope::name_of(mutant.kind), mutant.number, mutant.entry);
}

Mutant mutant_called(std::string_view name) {
  const std::size_t first = name.find(' '), second = name.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos || second + 1 == name.size()) {
    throw InvalidArgument(fmt::format("mutant '{}' is not KIND NUMBER ENTRY", name));
  }
  const std::string digits(name.substr(first + 1, second - first - 1));
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos || digits.size() > 6)
    throw InvalidArgument(fmt::format("mutant '{}' has the number '{}'", name, digits));
  return {parse_enum<MutantKind>("kind of mutant", name.substr(0, first)), std::stoul(digits),
          std::string(name.substr(second + 1))};
}

std::vector<ListedMutant> mutants_of(std::string_view text, std::string_view wanted) {
  const Lines lines = lines_of(text);
  const Lines dynamic_arrays = dynamic_arrays_of(lines);
  std::vector<ListedMutant> all;
  for (std::size_t begin = 0; begin < lines.size(); ++begin) {
    const std::string_view entry = entry_begun_by(lines[begin]);
    if (entry.empty() || (!wanted.empty() && entry != wanted)) continue;
    const auto end = std::find(lines.begin() + static_cast<std::ptrdiff_t>(begin), lines.end(), "}");
    const auto count = static_cast<std::size_t>(end - lines.begin()) - begin;
    std::vector<ListedMutant> of_entry =
        EntryMutants(entry, begin, std::span(lines).subspan(begin, count)).take(dynamic_arrays);
    std::move(of_entry.begin(), of_entry.end(), std::back_inserter(all));
  }
  return all;
}

bool has_entry(std::string_view text, std::string_view entry) {
  return contains(text, fmt::format(".entry {}(", entry));
}

std::string mutated(std::string_view text, const Mutant& mutant) {
  const std::vector<ListedMutant> all = mutants_of(text, mutant.entry);
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const ListedMutant& m) { return m.mutant == mutant; });
  if (found == all.end()) throw InvalidArgument(fmt::format("no mutant is called '{}'", name_of(mutant)));
  Lines lines = lines_of(text);
  for (const Edit& edit : found->edits) lines[edit.line] = edit.text;
  return joined(lines);
}

}  // namespace halfscope::ptx
