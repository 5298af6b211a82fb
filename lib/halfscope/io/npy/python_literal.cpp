// A scanner without recursion, so that no nesting is too deep for it.
#include <halfscope/io/npy/detail/python_literal.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include <halfscope/io/detail/parse_error.hpp>

namespace halfscope {

void PythonLiteral::skip_blanks() {
  at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
}

bool PythonLiteral::accept(char token) {
  skip_blanks();
  if (at_ == text_.size() || text_[at_] != token) return false;
  ++at_;
  return true;
}

void PythonLiteral::expect(char token) {
  if (!accept(token)) fail(fmt::format("expected '{}'", token));
}

void PythonLiteral::expect_end() {
  skip_blanks();
  if (at_ != text_.size()) fail("expected nothing after the dictionary");
}

std::string PythonLiteral::string() {
  const char quote = accept('"') ? '"' : '\'';
  if (quote == '\'') expect('\'');
  const std::size_t end = text_.find(quote, at_);
  if (end == std::string_view::npos) fail("a string that does not end");
  std::string value(text_.substr(at_, end - at_));
  at_ = end + 1;
  return value;
}

std::string PythonLiteral::list() {
  const std::size_t start = at_;
  std::int64_t depth = 0;
  do {
    skip_blanks();
    if (at_ == text_.size()) fail("a list that does not end");
    const char next = text_[at_];
    if (next == '\'' || next == '"') {
      static_cast<void>(string());
    } else {
      depth += next == '[' ? 1 : next == ']' ? -1 : 0;
      ++at_;
    }
  } while (depth > 0);
  return std::string(text_.substr(start, at_ - start));
}

std::string PythonLiteral::string_or_list() {
  skip_blanks();
  return at_ < text_.size() && text_[at_] == '[' ? list() : string();
}

bool PythonLiteral::boolean() {
  skip_blanks();
  for (const std::string_view word : {"True", "False"}) {
    if (text_.substr(at_).starts_with(word)) {
      at_ += word.size();
      return word == "True";
    }
  }
  fail("expected True or False");
}

std::int64_t PythonLiteral::extent() {
  skip_blanks();
  std::int64_t value = 0;
  const char* const first = text_.data() + at_;
  const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
  if (error != std::errc() || value < 0) fail("shape: not an extent; expected a whole number from 0");
  at_ += static_cast<std::size_t>(end - first);
  static_cast<void>(accept('L'));
  return value;
}

Shape PythonLiteral::extents() {
  Shape shape;
  expect('(');
  while (!accept(')')) {
    shape.push_back(extent());
    if (!accept(',')) {
      expect(')');
      break;
    }
  }
  return shape;
}

void PythonLiteral::fail(std::string_view problem) const {
  refuse(where_, fmt::format("byte {}: the .npy header: {}", begin_ + at_, problem));
}

}  // namespace halfscope
