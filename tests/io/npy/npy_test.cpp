// Hostile and foreign .npy files: each is refused with the file and the byte, or what is wrong with the type.
#include <halfscope/io/tensor_file.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/read_tensors.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tensor_bytes.hpp"

namespace halfscope::npy_test {
namespace {

/// Message that refuses `bytes` as .npy: one short line that names the file.
std::string refusal(std::string_view bytes) {
  const TemporaryFolder folder;
  const auto path = folder.put("a.npy", bytes);
  std::string message = message_of<InvalidArgument>([&] { static_cast<void>(open_tensor_file(path)); });
  check_says(message, {path.string() + ": "});
  CHECK(message.size() < 400 + path.string().size());
  return message;
}

const std::string one = npy_bytes("<f4", "(1,)", "1234");

TEST_CASE("an .npy file that is cut or is none is refused", "[npy]") {
  check_says(refusal(""), {"truncated", "the array at 0"});
  check_says(refusal("\x93NUMP"), {"truncated", "byte 8", "the array at 5"});
  check_says(refusal("this is no array of NumPy's"), {"byte 0", "\\x93NUMPY"});
  check_says(refusal("PK\3\4 is a zip archive"), {"no end of a zip archive"});
  check_says(refusal(one.substr(0, 9)), {"truncated", "byte 10", "the array at 9"});
  check_says(refusal(one.substr(0, 30)), {"truncated", "the array at 30"});
  check_says(refusal(one.substr(0, one.size() - 1)), {"truncated", "takes 4 bytes", "there are 3"});
  check_says(refusal(one + "x"), {"too long", "takes 4 bytes", "there are 5"});
  for (const char* version : {"\x00\x00", "\x04\x00", "\x01\x01", "\xff\x00"}) {
    check_says(refusal(std::string(one).replace(6, 2, version, 2)), {"byte 6", "version"});
  }
  check_says(refusal(npy_with_header("", "", '\2').replace(8, 4, "\xff\xff\xff\xff")),
             {"byte 8", "4294967295"});
}

TEST_CASE("a header that says something else is refused with the byte", "[npy]") {
  const auto refused = [](std::string_view dictionary) {
    return refusal(npy_with_header(dictionary, "1234"));
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "byte 10: the .npy header: expected '{'"},
      {"[]", "byte 10: the .npy header: expected '{'"},
      {"{}", "lacks the key 'descr'"},
      {"{'descr': '<f4', 'shape': (1,)}", "lacks the key 'fortran_order'"},
      {"{'descr': '<f4', 'fortran_order': False}", "lacks the key 'shape'"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "\"descr\" is given twice"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", "unknown key \"more\""},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
       "byte 66: the .npy header: expected nothing"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", "expected '}'"},
      {"{'descr' '<f4'}", "byte 19: the .npy header: expected ':'"},
      {"{'descr: <f4}", "a string that does not end"},
      {"{'descr': [('a', '<f4')", "a list that does not end"},
      {"{'descr': 4}", "expected '''"},
      {"{'fortran_order': 0}", "byte 28: the .npy header: expected True or False"},
      {"{'shape': 1}", "expected '('"},
      {"{'shape': (-1,)}", "shape: not an extent"},
      {"{'shape': (1.5,)}", "expected ')'"},
      {"{'shape': (1", "expected ')'"},
      {"{'shape': (9223372036854775808,)}", "shape: not an extent"},
  };
  for (const auto& [dictionary, problem] : cases) {
    INFO(dictionary);
    check_says(refused(dictionary), {problem});
  }
  check_says(refused("{'descr': " + std::string(60'000, '[')), {"a list that does not end"});
  check_says(refused("{'" + std::string(60'000, 'x') + "': 1}"), {"unknown key"});
}

TEST_CASE("shapes whose product overflows are refused, empty ones are not", "[npy]") {
  for (const char* shape :
       {"(4294967296, 4294967296)", "(9223372036854775807,)", "(4611686018427387905,)",
        "(2147483648, 2147483648, 2)", "(0, 4294967296, 4294967296)", "(4294967296, 4294967296, 0)"}) {
    INFO(shape);
    check_says(refusal(npy_bytes("<f4", shape, "1234")), {"more elements than memory can hold"});
  }
  check_says(refusal(npy_bytes("<f4", "(1000000000000,)", "1234")), {"truncated", "4000000000000"});
  const TemporaryFolder folder;
  const auto file = open_tensor_file(folder.put("a.npy", npy_bytes("<f4", "(0, 1000000000000)", "")));
  CHECK(file->tensors()[0].elements == 0);
  CHECK(elements_of(*file).empty());
}

TEST_CASE("types other than floating-point numbers are refused by name", "[npy]") {
  const auto refused = [](const char* descr) { return refusal(npy_bytes(descr, "(1,)", "1234")); };
  for (const char* descr : {"<i4", "|b1", "|u1", "<c8", "<f16", "<U1", "|S4", "<M8[ns]"}) {
    check_says(refused(descr), {std::string("\"") + descr + "\"", "only f2, f4 and f8 are read"});
  }
  for (const char* descr : {"|O", "O8"}) check_says(refused(descr), {"pickled Python objects"});
  for (const char* descr : {"", "<", "<q4", "float32", "<f4x"}) {
    INFO(descr);
    static_cast<void>(refused(descr));
  }
  check_says(
      refusal(npy_with_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234")),
      {"[('a', '<f4')]", "only f2, f4 and f8"});
}

TEST_CASE("every flipped or cut byte of an .npy file is read or refused, never more", "[npy]") {
  const TemporaryFolder folder;
  const auto survives = [&](const std::string& bytes) {
    try {
      const auto file = open_tensor_file(folder.put("a.npy", bytes));
      CHECK(elements_of(*file).size() == static_cast<std::size_t>(file->tensors()[0].elements));
    } catch (const InvalidArgument&) {  // refused, as most are
    }
  };
  for (std::size_t at = 0; at < one.size(); ++at) {
    CHECK_THROWS_AS(open_tensor_file(folder.put("a.npy", one.substr(0, at))), InvalidArgument);
    for (const int flip : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
      std::string changed = one;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      survives(changed);
    }
    survives(one.substr(0, at) + one.substr(at + 1));
  }
}

}  // namespace
}  // namespace halfscope::npy_test
