// Catalogues put together by hand in either byte order, and damaged ones.
#include "sim/data/message_catalogue.hpp"

#include "tests/sim/data/mo_files.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::message_catalogue_test {
namespace {

std::vector<MessagePair> messages_in(const std::string& bytes) {
  std::vector<MessagePair> messages;
  for (const Message& message : parse_catalogue(bytes, "some.mo"))
    messages.emplace_back(message.source, message.target);
  return messages;
}

std::string parse_failure(const std::string& bytes) {
  return message_of<InvalidArgument>([&] { (void)parse_catalogue(bytes, "some.mo"); });
}

std::string with_charset(const std::string& charset) {
  return mo_bytes({{"", "Content-Type: text/plain; charset=" + charset}, {"yes", "oui"}});
}

/// The number at `place` of a catalogue in the order of little ends is now `value`.
std::string with_number(std::string bytes, std::size_t place, std::uint32_t value) {
  return bytes.replace(place, 4, number_bytes(value));
}

const std::vector<MessagePair> two{{"cat", "chat"}, {"summer", "\xC3\xA9t\xC3\xA9"}};

TEST_CASE("a catalogue of either byte order has its messages", "[translation]") {
  std::vector<MessagePair> all{utf8_header};
  all.insert(all.end(), two.begin(), two.end());
  CHECK(messages_in(mo_bytes(all)) == two);
  CHECK(messages_in(mo_bytes(all, ByteOrder::big)) == two);
  CHECK(messages_in(mo_bytes({utf8_header})).empty());
}

TEST_CASE("plural forms, contexts and empty or huge messages are left out", "[translation]") {
  const std::string zero(1, '\0');
  CHECK(messages_in(mo_bytes({utf8_header,
                              {"%d cat" + zero + "%d cats", "%d chat" + zero + "%d chats"},
                              {"menu\4Open", "Ouvrir"},
                              {"empty", ""},
                              {"odd", "a" + zero + "b"},
                              {std::string(4097, 'a'), "a"},
                              {"a", std::string(4097, 'a')},
                              two[0],
                              {"b", std::string(4096, 'b')}})) ==
        std::vector<MessagePair>{two[0], {"b", std::string(4096, 'b')}});
}

TEST_CASE("charsets other than UTF-8 are refused", "[translation]") {
  for (const char* charset : {"UTF-8", "utf-8\nMore: of it\n", "UTF8"})
    CHECK(messages_in(with_charset(charset)).size() == 1);
  check_says(parse_failure(with_charset("ISO-8859-1")), {"some.mo", "charset 'iso-8859-1'", "only UTF-8"});
  check_says(parse_failure(with_charset("")), {"no charset"});
  check_says(parse_failure(with_charset("a\r\x1b[1m")), {"charset 'a\\r"});
  CHECK(parse_failure(with_charset(std::string(5000, 'a'))).size() < 100);
  check_says(parse_failure(mo_bytes({{"", "Language: fr"}})), {"some.mo", "no charset"});
  check_says(parse_failure(mo_bytes({{"yes", "oui"}})), {"no charset"});
  check_says(parse_failure(mo_bytes({utf8_header, {"caf\xE9", "x"}})), {"some.mo", "message 2 is not UTF-8"});
  check_says(parse_failure(mo_bytes({utf8_header, {"x", "caf\xE9"}})), {"message 2 is not UTF-8"});
}

TEST_CASE("a damaged catalogue is an error wherever it is damaged", "[translation]") {
  const std::string bytes = mo_bytes({utf8_header, two[0], two[1]});
  for (std::size_t size = 0; size < bytes.size() - 1; ++size) {  // the last byte is the zero behind a text
    INFO(size << " of " << bytes.size() << " bytes");
    CHECK(parse_failure(bytes.substr(0, size)).starts_with("some.mo: "));
  }
  check_says(parse_failure(""), {"no message catalogue"});
  check_says(parse_failure("msgid \"cat\"\nmsgstr \"chat\"\n"), {"no message catalogue"});
  check_says(parse_failure(with_number(bytes, 4, 1u << 16)), {"revision 1", "0 is known"});
  CHECK(messages_in(with_number(bytes, 4, 1)) == two);  // a minor revision adds tables behind
  for (const std::uint32_t far : {1000u, 0x7FFFFFFFu, 0xFFFFFFFFu}) {
    INFO("offset or count " << far);
    check_says(parse_failure(with_number(bytes, 8, far)), {"damaged"});
    check_says(parse_failure(with_number(bytes, 12, far)), {"some.mo", "it is damaged"});
    check_says(parse_failure(with_number(bytes, 16, far)), {"it is damaged"});
    for (std::size_t place = 28; place < 28 + 2 * 3 * 8; place += 4)
      check_says(parse_failure(with_number(bytes, place, far)), {"it is damaged"});
  }
}

}  // namespace
}  // namespace halfscope::message_catalogue_test
