// Mutants of a module's text: small changes after which its code is wrong, for tests that have to notice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/core/names.hpp>

namespace halfscope::ptx {

enum class MutantKind : std::uint8_t {
  contraction,     ///< products that are added in the same basic block become fma, all of an entry at once
  barrier,         ///< a bar.sync is left out
  wait,            ///< a cp.async.wait_group leaves one group more in flight
  commit,          ///< a cp.async.commit_group is left out
  comparison,      ///< an integer setp of indices has lt for le, gt for ge, or the reverse
  shared_array,    ///< a static shared array lies last and is one element shorter, then two
  dynamic_shared,  ///< launches have 16 or 32 bytes less of dynamic shared memory; the text stays
};

struct Mutant {
  MutantKind kind = MutantKind::contraction;
  std::size_t number = 1;  ///< among those of its kind in the entry, from 1
  std::string entry;

  friend bool operator==(const Mutant&, const Mutant&) = default;
};

/// "barrier 2 _Z4fillPfi". The latter throws InvalidArgument for a text that is none.
[[nodiscard]] std::string name_of(const Mutant& mutant);
[[nodiscard]] Mutant mutant_called(std::string_view name);

/// A line of a text, and what stands in its place.
struct Edit {
  std::size_t line = 0;
  std::string text;
};

struct ListedMutant {
  Mutant mutant;
  std::string changed;  ///< the instruction or the declaration, for people
  std::vector<Edit> edits;
};

/// Mutants of the entry `wanted`, without a name those of all entries.
[[nodiscard]] std::vector<ListedMutant> mutants_of(std::string_view text, std::string_view wanted = "");

[[nodiscard]] bool has_entry(std::string_view text, std::string_view entry);

/// The text with `mutant` in it. Throws InvalidArgument where there is no such mutant.
[[nodiscard]] std::string mutated(std::string_view text, const Mutant& mutant);

/// Dynamic shared memory that a launch of the mutant's entry has, of `bytes` that it asked for.
[[nodiscard]] std::size_t dynamic_bytes_with(const Mutant& mutant, std::size_t bytes);

}  // namespace halfscope::ptx

template <>
inline constexpr std::array<std::string_view, 7> halfscope::enum_names<halfscope::ptx::MutantKind>{
    "contraction", "barrier", "wait", "commit", "comparison", "shared_array", "dynamic_shared"};
