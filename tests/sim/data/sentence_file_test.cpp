// Sentence pairs that a user gives: a file of lines, or a folder of message catalogues.
#include <fmt/format.h>

#include "sim/data/catalogue_pairs.hpp"
#include "sim/data/datasets.hpp"
#include "tests/sim/data/mo_files.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::sentence_file_test {
namespace {

std::string lines_of_pairs(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("the {} cats\tles {} chats\n", i, i);
  return text;
}

SentencePairs pairs_in(const std::string& text) {
  const TemporaryFolder folder;
  return read_sentence_pairs(folder.put("pairs.tsv", text));
}

std::string file_error(const std::string& text) {
  return message_of<InvalidArgument>([&] { (void)pairs_in(text); });
}

TEST_CASE("every tenth line of a file is a test pair", "[translation]") {
  const SentencePairs pairs = pairs_in(lines_of_pairs(25));
  REQUIRE(pairs.test.size() == 3);
  CHECK(pairs.train.size() == 22);
  CHECK(pairs.test[1].source == std::vector<std::string>{"the", "10", "cats"});
  CHECK(pairs.test[1].target == std::vector<std::string>{"les", "10", "chats"});
  CHECK(pairs.train[0].source[1] == "1");
  for (const char* text : {"a\tb\nc\td",
                           "\xEF\xBB\xBF"
                           "a\tb\r\nc\td\r\n"}) {
    const SentencePairs two = pairs_in(text);
    CHECK(two.test.at(0).source == std::vector<std::string>{"a"});
    CHECK(two.train.at(0).target == std::vector<std::string>{"d"});
  }
}

TEST_CASE("lines that are no pairs are named", "[translation]") {
  check_says(file_error("a\tb\nno tab\n"), {"pairs.tsv", "line 2", "0 tabs", "SOURCE<tab>TARGET"});
  check_says(file_error("a\tb\nc\td\te\n"), {"line 2", "2 tabs"});
  check_says(file_error("a\tb\n\nc\td\n"), {"line 2", "0 tabs"});
  check_says(file_error("\tb\n"), {"line 1", "empty source"});
  check_says(file_error("a\t \r\n"), {"line 1", "empty target"});
  check_says(file_error("a\tb\nc\tcaf\xE9\n"), {"line 2", "0xe9", "not UTF-8"});
  check_says(file_error(std::string("a\tb\nc\td\0\n", 9)), {"line 2", "NUL"});
  std::string words;
  for (int i = 0; i < 1001; ++i) words += "a ";
  check_says(file_error("a\t" + words), {"line 1", "a target of 1001 tokens", "at most 1000"});
  check_says(file_error(""), {"pairs.tsv", "0 sentence pairs", "two or more"});
  check_says(file_error("a\tb\n"), {"1 sentence pairs"});
  const TemporaryFolder folder;
  for (const char* name : {"numbers_to_words", "gettext_en_fr"}) {
    check_says(message_of<InvalidArgument>([&] { (void)open_dataset(name, {.data = folder / "none.tsv"}); }),
               {name, "none.tsv"});
    check_says(message_of<InvalidArgument>([&] { (void)open_dataset(name, {.data = folder.path()}); }),
               {name, "0 sentence pairs"});
  }
}

TEST_CASE("pairs of a file are counted where one repeats another", "[translation]") {
  const TemporaryFolder folder;
  const auto data = open_dataset(
      "gettext_en_fr", {.data = folder.put("pairs.tsv", "The cat.\tLe chat.\nthe cat .\tun chat\n")});
  check_says(data->summary(), {"pairs.tsv: 1 + 1 sentence pairs", "which 1 test pairs"});
}

const std::vector<MessagePair> sentences{
    utf8_header,
    {"Open the file", "Ouvrir le fichier"},
    {"Open the  file!", "Ouvrir le fichier !"},
    {"cannot open %s\n", "impossible d'ouvrir %s\n"},
    {"cannot open the %s\n", "impossible d'ouvrir le %s\n"},
    {"no more memory", "no more memory"},
    {"one two three\nfour", "un deux trois quatre"},
    {"one two three four", "un deux trois\nquatre"},
    {"two words", "deux mots"},
    {"three short words", "deux mots"},
    {"a b c d e f g h i j k l m n o p", "a b c d e f g h i j k l m n o p q r"},
    {"a b c d e f g h i j k l m n o p q", "a b c"},
    {"a b d", "a b c d e f g h i j k l m n o p q r s"}};

TEST_CASE("messages of one line and of some words are sentence pairs", "[translation]") {
  const TemporaryFolder folder;
  folder.put("b.mo", mo_bytes({utf8_header, {"open the file", "ouvrez le fichier"}, {"x y z", "u v w"}}));
  folder.put("a.mo", mo_bytes(sentences));
  folder.put("c.mo", "damaged");
  folder.put("d.mo", mo_bytes({{"", "Content-Type: text/plain; charset=KOI8-R"}, {"q r s", "t u v"}}));
  folder.put("e.txt", "no catalogue");
  const CataloguePairs read = read_catalogues(folder.path());
  CHECK(read.catalogues == 2);
  CHECK(read.unreadable == 2);
  check_says(read.first_error, {"c.mo", "no message catalogue"});
  std::vector<std::string> firsts;
  for (const SentencePair& pair : read.pairs)
    firsts.push_back(fmt::format("{} {}", pair.source[0], pair.source.size()));
  CHECK(firsts == std::vector<std::string>{"open 3", "open 4", "cannot 4", "a 16", "x 3"});
  CHECK(read.pairs[2].target == std::vector<std::string>{"impossible", "d'", "ouvrir", "le", "X"});
  const SentencePairs split = read_sentence_pairs(folder.path());
  CHECK(split.test.size() == 1);
  CHECK(split.train.size() == 4);
  check_says(split.origin, {"4 message catalogues (2 unreadable) in ", folder.path().string()});
}

TEST_CASE("the first folder with enough messages is taken", "[translation]") {
  const TemporaryFolder folder;
  std::vector<MessagePair> many{utf8_header};
  for (int i = 0; i < 10'000; ++i)
    many.emplace_back(fmt::format("the big cats, {}", i), fmt::format("les gros chats, {}", i));
  folder.put("few/a.mo", mo_bytes(sentences));
  folder.put("many/a.mo", mo_bytes(many));
  const std::vector<std::filesystem::path> few{folder / "none", folder / "few"};
  check_says(message_of<InvalidArgument>([&] { (void)read_first_catalogues(few); }),
             {"gettext_en_fr", "0 sentence pairs in 0 message catalogues in ",
              "4 sentence pairs in 1 message catalogues", "10000 are needed", "Debian's packages",
              "tools/translations", "--data FILE.tsv"});
  const SentencePairs pairs = read_first_catalogues({folder / "few", folder / "many"});
  CHECK(pairs.test.size() == 1000);
  CHECK(pairs.train.size() == 9000);
  check_says(pairs.origin, {"1 message catalogues in ", "many"});
}

TEST_CASE("installed messages are a data set of sentences", "[translation]") {
  const auto data = open_dataset("gettext_en_fr", {.options = {{"vocabulary", 3000}}});
  CHECK(data->size(Split::test) == 1000);
  CHECK(data->size(Split::train) >= 9000);
  CHECK(data->example_shape() == Shape{16, 19});
  CHECK(data->token_count() == 3000);
  CHECK(data->class_count() == 3000);
  CHECK(open_dataset("gettext_en_fr", {})->summary() == data->summary());
}

}  // namespace
}  // namespace halfscope::sentence_file_test
