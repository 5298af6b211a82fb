// Lines out of blocks that were read whole; answers are written in blocks too.
#include "experiments/cli/calc/calc_stream.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include <halfscope/core/error.hpp>
#include <halfscope/core/stderr_text.hpp>

#include "experiments/cli/calc/calc_explain.hpp"

namespace halfscope {
namespace {

constexpr std::size_t block_bytes = 1 << 18;
/// Room for thousands of operands in a line of `dot` or of a block.
std::size_t longest_line_of(const CalcRequest& request) {
  return request.operation->operands == any_number || request.block ? std::size_t{1} << 20 : 4096;
}

/// All of `text`, or RuntimeFailure.
void write_out(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      throw RuntimeFailure(fmt::format("standard output cannot be written: {}", std::strerror(errno)));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// The number of bytes read into `block`, 0 at the end of the input.
std::size_t read_block(std::vector<char>& block) {
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, block.data(), block.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) {
      throw RuntimeFailure(fmt::format("standard input cannot be read: {}", std::strerror(errno)));
    }
  }
}

/// The words of `line` between blanks; a carriage return before its end is one.
void split(std::string_view line, std::vector<std::string_view>& words) {
  constexpr std::string_view blanks = " \t\r";
  words.clear();
  for (std::size_t end = 0;;) {
    const std::size_t begin = line.find_first_not_of(blanks, end);
    if (begin == std::string_view::npos) return;
    end = std::min(line.find_first_of(blanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
  }
}

class LineAnswers {
 public:
  LineAnswers(const CalcRequest& request, AnswerStyle style)
      : request_(request), style_(style), longest_line_(longest_line_of(request)) {}

  /// Takes the next bytes of the input and answers the lines that end in them.
  void take(std::string_view bytes) {
    for (std::size_t newline = bytes.find('\n'); newline != std::string_view::npos;
         newline = bytes.find('\n')) {
      if (begun_.empty()) {
        answer(bytes.substr(0, newline));
      } else {
        keep(bytes.substr(0, newline));
        answer(begun_);
        begun_.clear();
      }
      bytes.remove_prefix(newline + 1);
    }
    keep(bytes);
    flush();
  }

  /// The last line need not end in a newline.
  void finish() {
    if (!begun_.empty()) answer(begun_);
    flush();
    if (malformed_ == 0) return;
    throw InvalidArgument(
        fmt::format("{} of {} lines {} malformed", malformed_, lines_, malformed_ == 1 ? "is" : "are"));
  }

 private:
  /// Keeps of a line that is too long no more than shows its length.
  void keep(std::string_view bytes) {
    begun_ += bytes.substr(0, longest_line_ + 1 - std::min(begun_.size(), longest_line_ + 1));
  }

  void answer(std::string_view line) {
    ++lines_;
    try {
      answer_words(line);
    } catch (const InvalidArgument& error) {
      ++malformed_;
      out_ += "error\n";
      print_stderr(fmt::format("halfscope: line {}: {}\n", lines_, error.what()));
    }
  }

  void answer_words(std::string_view line) {
    if (line.size() > longest_line_) {
      throw InvalidArgument(fmt::format("longer than {} bytes", longest_line_));
    }
    if (line.find('\0') != std::string_view::npos) throw InvalidArgument("holds a NUL byte");
    split(line, words_);
    if (style_ == AnswerStyle::explained) return explain_words();
    if (words_.empty()) throw InvalidArgument("is empty");
    if (request_.block) return append_block(out_, *request_.block, words_, lines_ - 1);
    append_answer(out_, request_, evaluate(request_, words_, lines_ - 1));
  }

  void explain_words() {
    if (words_.empty() || words_[0].starts_with('#')) return;
    out_ += request_.block ? explained_block(*request_.block, words_, lines_ - 1)
                           : explained(request_, evaluate(request_, words_, lines_ - 1));
  }

  void flush() {
    write_out(out_);
    out_.clear();
  }

  const CalcRequest& request_;
  const AnswerStyle style_;
  const std::size_t longest_line_;
  std::vector<std::string_view> words_;
  std::string begun_;  ///< the start of a line whose end has not been read yet
  std::string out_;
  std::uint64_t lines_ = 0;
  std::uint64_t malformed_ = 0;
};

}  // namespace

void answer_standard_input(const CalcRequest& request, AnswerStyle style) {
  std::vector<char> block(block_bytes);
  LineAnswers answers(request, style);
  while (const std::size_t count = read_block(block)) answers.take({block.data(), count});
  answers.finish();
}

}  // namespace halfscope
