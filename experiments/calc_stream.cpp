// Lines out of blocks that were read whole; answers are written in blocks too.
#include "experiments/calc_stream.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include <halfscope/core/error.hpp>

#include "experiments/calc_number.hpp"

namespace halfscope {
namespace {

constexpr std::size_t block_bytes = 1 << 18;
constexpr std::size_t longest_line = 4096;

/// All of `text`, or RunError.
void write_out(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      throw RunError(fmt::format("standard output cannot be written: {}", std::strerror(errno)));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// The number of bytes read into `block`, 0 at the end of the input.
std::size_t read_block(std::vector<char>& block) {
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, block.data(), block.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) {
      throw RunError(fmt::format("standard input cannot be read: {}", std::strerror(errno)));
    }
  }
}

/// Splits at blanks; a carriage return before the end of the line is one.
class LineWords {
 public:
  explicit LineWords(std::string_view line) {
    constexpr std::string_view blanks = " \t\r";
    std::size_t end = 0;
    for (;;) {
      const std::size_t begin = line.find_first_not_of(blanks, end);
      if (begin == std::string_view::npos) return;
      end = std::min(line.find_first_of(blanks, begin), line.size());
      if (count_ < words_.size()) words_[count_] = line.substr(begin, end - begin);
      ++count_;
    }
  }
  /// At most one more than any operation takes.
  [[nodiscard]] Words words() const { return {words_.data(), std::min(count_, words_.size())}; }

 private:
  std::array<std::string_view, 4> words_;
  std::size_t count_ = 0;
};

class LineAnswers {
 public:
  explicit LineAnswers(const CalcRequest& request) : request_(request) {}

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
    throw RequestError(
        fmt::format("{} of {} lines {} malformed", malformed_, lines_, malformed_ == 1 ? "is" : "are"));
  }

 private:
  /// Of a line that is too long, no more is kept than shows it.
  void keep(std::string_view bytes) {
    begun_ += bytes.substr(0, longest_line + 1 - std::min(begun_.size(), longest_line + 1));
  }

  void answer(std::string_view line) {
    ++lines_;
    try {
      answer_words(line);
    } catch (const RequestError& error) {
      ++malformed_;
      out_ += "error\n";
      fmt::print(stderr, "halfscope: line {}: {}\n", lines_, error.what());
    }
  }

  void answer_words(std::string_view line) {
    if (line.size() > longest_line) {
      throw RequestError(fmt::format("longer than {} bytes", longest_line));
    }
    if (line.find('\0') != std::string_view::npos) throw RequestError("holds a NUL byte");
    const LineWords words(line);
    if (words.words().empty()) throw RequestError("is empty");
    append_answer(out_, request_, words.words(), lines_ - 1);
  }

  void flush() {
    write_out(out_);
    out_.clear();
  }

  const CalcRequest& request_;
  std::string begun_;  ///< the start of a line whose end has not been read yet
  std::string out_;
  std::uint64_t lines_ = 0;
  std::uint64_t malformed_ = 0;
};

}  // namespace

void answer_standard_input(const CalcRequest& request) {
  std::vector<char> block(block_bytes);
  LineAnswers answers(request);
  while (const std::size_t count = read_block(block)) answers.take({block.data(), count});
  answers.finish();
}

}  // namespace halfscope
