// Cuts lines into words and counts them.
#include "sim/data/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include <halfscope/core/error.hpp>

#include "sim/data/unicode.hpp"

namespace halfscope {
namespace {

constexpr std::string_view punctuation = ".,;:?!";
constexpr std::int32_t right_quotation_mark = 0x2019;  // the apostrophe of typeset texts

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Length of a verse label at the start of `line`, "1Sam2:3 " say, or 0.
std::size_t label_length(std::string_view line) {
  std::size_t i = 0;
  const auto skip = [&](bool (*belongs)(char)) {
    const std::size_t first = i;
    while (i < line.size() && belongs(line[i])) ++i;
    return i > first;
  };
  const auto take = [&](char c) { return i < line.size() && line[i] == c ? (++i, true) : false; };
  (void)skip(is_digit);
  if (!skip(is_ascii_letter) || !skip(is_digit) || !take(':') || !skip(is_digit)) return 0;
  return take(' ') ? i : 0;
}

/// Collects the lines that have tokens, one after the other.
class Tokeniser {
 public:
  explicit Tokeniser(const std::string& source) : source_(source) {}

  void add_line(std::string_view line) {
    ++line_;
    const std::size_t label = label_length(line);
    const std::string_view label_text = line.substr(0, label == 0 ? 0 : label - 1);
    for (line.remove_prefix(label); !line.empty();) {
      const CodePoint point = checked(line);
      add(point.value);
      line.remove_prefix(static_cast<std::size_t>(point.bytes));
    }
    end_word();
    if (!tokens_.empty()) lines_.push_back({line_, std::string(label_text), std::exchange(tokens_, {})});
  }

  std::vector<TokenLine> take() { return std::move(lines_); }

 private:
  CodePoint checked(std::string_view line) const {
    if (line[0] == '\0') {
      throw InvalidArgument(
          fmt::format("{}: line {} holds a NUL byte: this is no text; give a UTF-8 text", source_, line_));
    }
    const CodePoint point = first_code_point(line);
    if (point.bytes < 1) {
      throw InvalidArgument(
          fmt::format("{}: line {} holds the byte 0x{:02x}, which is not UTF-8 there; convert "
                      "the text to UTF-8",
                      source_, line_, static_cast<unsigned char>(line[0])));
    }
    return point;
  }

  void add(std::int32_t value) {
    if (is_letter(value)) {
      append_utf8(word_, lower_case(value));
    } else if (value == '\'' || value == right_quotation_mark) {
      word_ += '\'';
    } else {
      end_word();
      const bool ascii = value < 0x80;
      const char mark = static_cast<char>(static_cast<unsigned char>(value & 0x7F));
      if (ascii && punctuation.find(mark) != std::string_view::npos) tokens_.emplace_back(1, mark);
    }
  }

  void end_word() {
    if (!word_.empty()) tokens_.push_back(std::move(word_));
    word_.clear();
  }

  const std::string& source_;
  std::int64_t line_ = 0;
  std::string word_;
  std::vector<std::string> tokens_;
  std::vector<TokenLine> lines_;
};

}  // namespace

std::vector<TokenLine> tokenise_lines(std::string_view text, const std::string& source) {
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  Tokeniser tokeniser(source);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    tokeniser.add_line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return tokeniser.take();
}

std::vector<std::string> tokenise(std::string_view text, const std::string& source) {
  std::vector<std::string> tokens;
  for (TokenLine& line : tokenise_lines(text, source)) {
    std::ranges::move(line.tokens, std::back_inserter(tokens));
    tokens.emplace_back(end_of_line_token);
  }
  return tokens;
}

bool is_word(std::string_view token) {
  const bool mark = token.size() == 1 && punctuation.find(token) != std::string_view::npos;
  return !mark && token != end_of_line_token;
}

Vocabulary number_words(const std::vector<std::string>& words, std::int64_t size) {
  if (size < 2) throw InvalidArgument(fmt::format("vocabulary = {}: give 2 or more", size));
  std::unordered_map<std::string_view, std::int64_t> counts;
  for (const std::string& word : words) ++counts[word];
  std::vector<std::pair<std::string_view, std::int64_t>> ranking(counts.begin(), counts.end());
  std::sort(ranking.begin(), ranking.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  Vocabulary vocabulary{.types = static_cast<std::int64_t>(ranking.size())};
  ranking.resize(std::min(ranking.size(), static_cast<std::size_t>(size - 1)));
  std::unordered_map<std::string_view, std::int32_t> numbers;
  for (const auto& [word, count] : ranking) {
    vocabulary.words.emplace_back(word);
    numbers[word] = static_cast<std::int32_t>(vocabulary.words.size());
  }
  vocabulary.tokens.reserve(words.size());
  for (const std::string& word : words) {
    const auto found = numbers.find(word);
    vocabulary.tokens.push_back(found == numbers.end() ? 0 : found->second);
  }
  return vocabulary;
}

}  // namespace halfscope
