// Sentences of a verdict: texts that name arms, with what has to hold for them to be said.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/definition/claim.hpp"

namespace halfscope {

/// A text with placeholders in braces, or a list. A placeholder is
///   {ARM | BASELINE}    how ARM ends beside BASELINE, in words
///   {ARM / BASELINE}    the ratio of their metrics
///   {ARM - BASELINE}    how far ARM ends below BASELINE, in the metric's unit
///   {ARM % BASELINE}    the share of BASELINE that ARM falls short of it, in percent
///   {ARM.COLUMN}        a column of the table of arms; {ARM.COLUMN:0} with so many digits
///   {ANALYSIS}          the sentence of an analysis; {ANALYSIS: ARM} the one on ARM
/// A text that names an arm without a result is left out, and so is a list without items.
struct Sentence {
  std::string text;                 ///< sentence, or the words before a list's items
  std::vector<Expectation> when{};  ///< all have to hold
  std::string otherwise{};          ///< said where they do not; empty: nothing
  std::vector<Sentence> items{};    ///< empty: no list
  std::string join = "; ";          ///< stands between items
  std::string closing = ".";        ///< ends a list

  bool operator==(const Sentence&) const = default;
};

/// The text between each pair of braces, in order. Throws InvalidArgument for a brace without its other half.
[[nodiscard]] std::vector<std::string_view> placeholders(std::string_view text);

/// A placeholder taken apart. `subject` is an arm, but an analysis where the kind is `finding`; `other` is
/// the arm's baseline, its column, or the arm that the finding is on (empty: on all).
struct Placeholder {
  enum class Kind : std::uint8_t { words, ratio, difference, shortfall, column, finding };

  Kind kind{};
  std::string_view subject;
  std::string_view other{};
  int digits = -1;  ///< digits of a column; -1: its own
};
/// Throws InvalidArgument where the digits are none.
[[nodiscard]] Placeholder parse_placeholder(std::string_view text);

}  // namespace halfscope
