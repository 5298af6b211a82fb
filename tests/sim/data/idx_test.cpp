// IDX files, plain and gzip: read exactly, or refused with file and reason.
#include "sim/data/idx.hpp"

#include <string>

#include "tests/sim/data/idx_files.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::idx_test {
namespace {

const std::string valid = idx_bytes({2, 1, 3}, "abcdef");

std::string refusal(std::string_view bytes) {
  const TemporaryFolder folder;
  const auto path = folder.put("images.idx", bytes);
  auto message = message_of<InvalidArgument>([&] { static_cast<void>(read_idx(path, 3)); });
  check_says(message, {path.string() + ": "});
  return message;
}

TEST_CASE("an IDX file reads as shape and bytes, plain or gzip", "[idx]") {
  const TemporaryFolder folder;
  for (const std::string& bytes : {valid, gzip(valid)}) {
    const IdxArray array = read_idx(folder.put("file", bytes), 3);
    CHECK(array.shape == Shape{2, 1, 3});
    CHECK(std::string(array.values.begin(), array.values.end()) == "abcdef");
  }
}

TEST_CASE("an IDX file larger than the pieces it is read in", "[idx]") {
  const TemporaryFolder folder;
  std::string values(3 * 257 * 2048, '\0');
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<char>(i % 251);
  const std::string bytes = idx_bytes({3, 257, 2048}, values);
  for (const std::string& stored : {bytes, gzip(bytes)}) {
    const IdxArray array = read_idx(folder.put("file", stored), 3);
    CHECK((std::string(array.values.begin(), array.values.end()) == values));
  }
}

TEST_CASE("a wrong header is refused", "[idx]") {
  check_says(refusal(""), {"truncated: 0 bytes"});
  check_says(refusal(valid.substr(0, 3)), {"truncated: 3 bytes", "header takes 16"});
  check_says(refusal(valid.substr(0, 15)), {"truncated: 15 bytes"});
  check_says(refusal("\x7f" + valid.substr(1)), {"byte 0: magic number 7f000803; expected 00000803"});
  check_says(refusal(idx_bytes({6}, "abcdef")), {"magic number 00000801; expected 00000803"});
  std::string of_floats = valid;
  of_floats[2] = '\x0d';
  check_says(refusal(of_floats), {"magic number 00000d03"});
  check_says(refusal(idx_bytes({0, 28, 28}, "")), {"byte 4: an extent is 0"});
  check_says(refusal(idx_bytes({2, 28, 0}, "")), {"byte 12: an extent is 0"});
}

TEST_CASE("a header that promises more or less than the file has is refused", "[idx]") {
  for (const bool compressed : {false, true}) {
    const auto stored = [&](const std::string& bytes) { return compressed ? gzip(bytes) : bytes; };
    check_says(refusal(stored(idx_bytes({2, 1, 3}, "abcde"))),
               {"truncated", "(2, 1, 3) = 6 bytes, the file holds 5"});
    check_says(refusal(stored(idx_bytes({2, 1, 3}, "abcdefg"))), {"bytes follow the (2, 1, 3) = 6"});
    // Were the header believed, these would ask for 68 GB and for 2^96 bytes.
    check_says(refusal(stored(idx_bytes({4096, 4096, 4096}, "abc"))), {"truncated", "the file holds 3"});
    const std::uint32_t largest = 0xffffffff;
    check_says(refusal(stored(idx_bytes({largest, largest, largest}, "abc"))), {"byte 4: no file holds"});
  }
}

TEST_CASE("damaged gzip is refused", "[idx]") {
  const std::string good = gzip(valid);
  for (std::size_t size = 2; size < good.size(); ++size) {
    check_says(refusal(good.substr(0, size)), {"the gzip data is truncated"});
  }
  std::string wrong_checksum = good;
  wrong_checksum[good.size() - 8] = static_cast<char>(wrong_checksum[good.size() - 8] ^ 1);
  check_says(refusal(wrong_checksum), {"damaged (incorrect data check)"});
  std::string wrong_length = good;
  wrong_length.back() = static_cast<char>(wrong_length.back() ^ 1);
  check_says(refusal(wrong_length), {"damaged (incorrect length check)"});
  check_says(refusal(good + "garbage"), {"7 bytes follow the end of the gzip data"});
}

TEST_CASE("every flipped byte is read or refused, never more", "[idx]") {
  const TemporaryFolder folder;
  for (const std::string& original : {valid, gzip(valid)}) {
    for (std::size_t at = 0; at < original.size(); ++at) {
      for (const int flip : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
        std::string changed = original;
        changed[at] = static_cast<char>(changed[at] ^ flip);
        try {
          static_cast<void>(read_idx(folder.put("file", changed), 3));
        } catch (const InvalidArgument&) {  // refused, as most are
        }
      }
    }
  }
}

TEST_CASE("a missing file is named", "[idx]") {
  const TemporaryFolder folder;
  check_says(message_of<InvalidArgument>([&] { static_cast<void>(read_idx(folder / "absent", 3)); }),
             {(folder / "absent").string(), "No such file"});
}

}  // namespace
}  // namespace halfscope::idx_test
