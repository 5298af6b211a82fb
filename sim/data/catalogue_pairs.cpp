// Chooses the messages of catalogues that are sentences.
#include "sim/data/catalogue_pairs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include <halfscope/core/error.hpp>
#include <halfscope/io/file.hpp>

#include "sim/data/message_catalogue.hpp"
#include "sim/data/sentence_tokens.hpp"

namespace halfscope {
namespace {

constexpr std::int64_t least_pairs = 10'000, most_tests = 1000;
constexpr std::size_t least_tokens = 3, most_source_tokens = 16, most_target_tokens = 18;

std::vector<std::filesystem::path> catalogues_in(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".mo") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

/// Without the ends of line around it.
std::string_view stripped(std::string_view text) {
  constexpr std::string_view spaces = " \t\r\n";
  const std::size_t first = std::min(text.find_first_not_of(spaces), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(spaces) + 1);
}

std::optional<SentencePair> pair_of(const Message& message) {
  const std::string_view source = stripped(message.source), target = stripped(message.target);
  if (source.find('\n') != std::string_view::npos || target.find('\n') != std::string_view::npos) return {};
  SentencePair pair{sentence_tokens(source), sentence_tokens(target)};
  const auto within = [](std::size_t size, std::size_t most) { return size >= least_tokens && size <= most; };
  const bool sentence =
      std::ranges::count_if(pair.source, is_word_token) >= static_cast<std::ptrdiff_t>(least_tokens);
  const bool fits =
      within(pair.source.size(), most_source_tokens) && within(pair.target.size(), most_target_tokens);
  if (!sentence || !fits || pair.source == pair.target) return {};
  return pair;
}

std::string description(const CataloguePairs& read, const std::filesystem::path& folder) {
  const std::string unreadable = read.unreadable > 0 ? fmt::format(" ({} unreadable)", read.unreadable) : "";
  return fmt::format("{} message catalogues{} in {}", read.catalogues + read.unreadable, unreadable,
                     printable(folder));
}

}  // namespace

CataloguePairs read_catalogues(const std::filesystem::path& folder) {
  CataloguePairs result;
  std::unordered_set<std::string> known;
  for (const std::filesystem::path& file : catalogues_in(folder)) {
    try {
      for (const Message& message : parse_catalogue(read_file(file), printable(file))) {
        auto pair = pair_of(message);
        if (pair && known.insert(fmt::format("{}", fmt::join(pair->source, " "))).second)
          result.pairs.push_back(std::move(*pair));
      }
      ++result.catalogues;
    } catch (const InvalidArgument& error) {
      if (result.unreadable++ == 0) result.first_error = error.what();
    }
  }
  return result;
}

SentencePairs split_catalogues(CataloguePairs read, const std::filesystem::path& folder) {
  const std::int64_t tests = std::min(most_tests, (std::ssize(read.pairs) + 9) / 10);
  SentencePairs pairs = split_at_random(std::move(read.pairs), tests);
  pairs.origin = description(read, folder);
  return pairs;
}

SentencePairs read_first_catalogues(const std::vector<std::filesystem::path>& folders) {
  std::string seen;
  for (const std::filesystem::path& folder : folders) {
    CataloguePairs read = read_catalogues(folder);
    if (std::ssize(read.pairs) >= least_pairs) return split_catalogues(std::move(read), folder);
    seen += fmt::format("{} sentence pairs in {}{}, ", read.pairs.size(), description(read, folder),
                        read.unreadable > 0 ? " (" + read.first_error + ")" : "");
  }
  throw InvalidArgument(fmt::format(
      "data set gettext_en_fr: {}but {} are needed. Install Debian's packages binutils-common, git, "
      "gnupg-l10n, iso-codes and libc-l10n, or, where translations are not installed with them, "
      "run tools/translations; or give pairs with --data FILE.tsv",
      seen, least_pairs));
}

}  // namespace halfscope
