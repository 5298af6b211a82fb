// .npz archives: stored and deflated members, whole and in ranges, one reader or several; damage is named.
#include <zlib.h>

#include <algorithm>
#include <thread>

#include <halfscope/io/tensor_file.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/read_tensors.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/zip_bytes.hpp"

namespace halfscope::npz_test {
namespace {

/// Numbers that deflate packs a little but not away.
std::vector<float> some_floats(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * i) % 8191) / 64;
  return values;
}

std::string array_of(const std::vector<float>& values) {
  return npy_bytes("<f4", "(" + std::to_string(values.size()) + ",)", bytes_of(values));
}

std::unique_ptr<TensorFile> opened(const TemporaryFolder& folder, const std::vector<ZipPart>& parts,
                                   ZipNumbers numbers = ZipNumbers::narrow) {
  return open_tensor_file(folder.put("a.npz", zip_bytes(parts, numbers)));
}

TEST_CASE("arrays of an archive are read, stored or deflated, with short or long numbers", "[npz]") {
  const TemporaryFolder folder;
  const std::vector<float> values = some_floats(100'000);
  for (const ZipNumbers numbers : {ZipNumbers::narrow, ZipNumbers::zip64}) {
    const auto file =
        opened(folder,
               {stored_part("conv.weight.npy", array_of(values)),
                deflated_part("conv.bias.npy", array_of(values)), deflated_part("e.npy", array_of({}))},
               numbers);
    REQUIRE(file->tensors().size() == 3);
    CHECK(file->tensors()[0].name == "conv.weight");
    CHECK(file->tensors()[0].access == Access::random);
    CHECK(file->tensors()[1].name == "conv.bias");
    CHECK(file->tensors()[1].access == Access::sequential);
    CHECK(elements_of(*file, 0) == values);
    CHECK(elements_of(*file, 1) == values);
    CHECK(elements_of(*file, 2).empty());
  }
}

TEST_CASE("an archive may be empty or end with a comment", "[npz]") {
  const TemporaryFolder folder;
  CHECK(opened(folder, {})->tensors().empty());
  std::string bytes = zip_bytes({stored_part("a.npy", array_of({1}))});
  bytes.replace(bytes.size() - 2, 2, little_endian(26, 2));
  const auto file = open_tensor_file(folder.put("a.npz", bytes + "PK\5\6, says this comment..."));
  CHECK(file->tensors().size() == 1);
}

TEST_CASE("members that hold no floating-point numbers are listed with the reason", "[npz]") {
  const TemporaryFolder folder;
  const auto file =
      opened(folder, {deflated_part("step.npy", npy_bytes("<i8", "()", std::string(8, '\0'))),
                      stored_part("notes.txt", "text"), stored_part("w.npy", array_of({1})),
                      stored_part("rows.npy", npy_bytes("x", "(1,)", "")
                                                  .replace(0, std::string::npos,
                                                           npy_with_header("{'descr': [('a', '<f4')], "
                                                                           "'fortran_order': False, "
                                                                           "'shape': (1,)}",
                                                                           "1234")))});
  CHECK(file->tensors().size() == 1);
  REQUIRE(file->skipped().size() == 3);
  CHECK(file->skipped()[0].name == "step");
  CHECK(file->skipped()[0].reason.find("\"<i8\"") != std::string::npos);
  CHECK(file->skipped()[1].name == "notes.txt");
  CHECK(file->skipped()[1].reason.find("not an .npy array") != std::string::npos);
  CHECK(file->skipped()[2].name == "rows");
}

TEST_CASE("a deflated array is read in any ranges and by several readers at once", "[npz]") {
  const TemporaryFolder folder;
  const std::vector<float> values = some_floats(300'000);
  const auto file = opened(folder, {deflated_part("a.npy", array_of(values))});
  const auto check = [&](std::int64_t first, std::int64_t count) {
    return elements_of(*file, 0, first, count) ==
           std::vector<float>(values.begin() + first, values.begin() + first + count);
  };
  CHECK(check(299'999, 1));
  CHECK(check(0, 1));
  CHECK(check(0, 10));
  CHECK(check(5, 10));  // a little before the place where the last reader stopped
  CHECK(check(100'000, 65'536));
  CHECK(check(50'000, 250'000));
  CHECK(check(165'536, 100));

  constexpr std::int64_t block = 10'000;
  std::atomic<std::int64_t> next{0}, wrong{0};
  const auto reader = [&] {
    for (std::int64_t i = next++; i < 30; i = next++) wrong += check(i * block, block) ? 0 : 1;
  };
  std::thread other(reader);
  reader();
  other.join();
  CHECK(wrong == 0);
}

/// Message of the error from opening the archive, or from reading all of it.
std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  const auto path = folder.put("a.npz", bytes);
  std::string message = message_of<InvalidArgument>([&] {
    const auto file = open_tensor_file(path);
    for (std::size_t i = 0; i < file->tensors().size(); ++i) static_cast<void>(elements_of(*file, i));
  });
  check_says(message, {path.string()});
  CHECK(message.size() < 500 + path.string().size());
  return message;
}

/// The refusal of an archive whose only member is `part` after `change`.
std::string refusal_of(ZipPart part, const std::function<void(ZipPart&)>& change) {
  change(part);
  return refusal(zip_bytes({part}));
}

TEST_CASE("a member that is not what it declares is refused by name", "[npz]") {
  const ZipPart packed = deflated_part("w.npy", array_of(some_floats(10'000)));
  const ZipPart plain = stored_part("w.npy", array_of(some_floats(10'000)));
  const std::string member = "member \"w.npy\"";
  check_says(refusal_of(packed, [](ZipPart& p) { p.size -= 4; }), {member, "truncated", "40000", "39996"});
  check_says(refusal_of(packed, [](ZipPart& p) { p.size += 4; }), {member, "too long", "40000", "40004"});
  check_says(refusal_of(packed, [](ZipPart& p) { p.crc ^= 1; }), {member, "checksum", "byte"});
  check_says(refusal_of(packed, [](ZipPart& p) { p.packed.resize(p.packed.size() / 2); }),
             {member, "byte", "end before the member does"});
  check_says(refusal_of(packed, [](ZipPart& p) { p.packed += "xyz"; }),
             {member, "go on after the member's end"});
  check_says(refusal_of(packed, [](ZipPart& p) { p.packed = "\xff" + p.packed; }),
             {member, "byte 3", "damaged"});
  check_says(refusal_of(packed, [](ZipPart& p) { p.size = 1u << 31; }), {member, "2147483648", "more than"});
  check_says(refusal_of(plain, [](ZipPart& p) { p.size += 4; }), {member, "declared as"});
  check_says(refusal_of(plain, [](ZipPart& p) { p.method = 12; }), {member, "method 12", "stored (0)"});
  check_says(refusal_of(plain, [](ZipPart& p) { p.flags = 1; }), {member, "encrypted"});
  check_says(refusal_of(plain, [](ZipPart& p) { p.packed[0] = 'x'; }), {member, "\\x93NUMPY"});
}

TEST_CASE("an array that goes on after its declared end is found out at its end", "[npz]") {
  ZipPart part = deflated_part("w.npy", array_of(some_floats(1000)) + "more");
  part.size -= 4;
  check_says(refusal(zip_bytes({part})), {"member \"w.npy\"", "unpacks to more than"});
  part = deflated_part("w.npy", array_of(some_floats(1000)).substr(0, 3000));
  part.size = array_of(some_floats(1000)).size();
  check_says(refusal(zip_bytes({part})), {"member \"w.npy\"", "unpacks to 3000 bytes"});
}

TEST_CASE("a bomb is unpacked without holding it, and only as far as it declares", "[npz]") {
  const TemporaryFolder folder;
  std::string zeros;
  zeros.resize(40'000'000);
  ZipPart bomb = deflated_part("z.npy", npy_bytes("<f4", "(10000000,)", zeros));
  REQUIRE(bomb.packed.size() < 100'000);
  const auto file = opened(folder, {bomb});
  std::int64_t seen = 0;
  file->read(0, 0, 10'000'000,
             [&](std::span<const float> piece) { seen += static_cast<std::int64_t>(piece.size()); });
  CHECK(seen == 10'000'000);
  bomb = deflated_part("z.npy", npy_bytes("<f4", "(1,)", zeros));
  bomb.size -= zeros.size() - 4;  // declares one element, unpacks to millions
  check_says(refusal(zip_bytes({bomb})), {"member \"z.npy\"", "unpacks to more than"});
}

TEST_CASE("objects are skipped: reading them would run what the file says", "[npz]") {
  for (const char* descr : {"|O", "O", "<O"}) {
    const TemporaryFolder folder;
    const auto file = opened(folder, {stored_part("o.npy", npy_bytes(descr, "(1,)", "pickle")),
                                      stored_part("w.npy", array_of({1}))});
    REQUIRE(file->skipped().size() == 1);
    CHECK(file->skipped()[0].name == "o");
    CHECK(file->skipped()[0].reason.find("pickled Python objects") != std::string::npos);
    CHECK(elements_of(*file) == std::vector{1.0f});
  }
}

TEST_CASE("members that nobody wants may be damaged", "[npz]") {
  const TemporaryFolder folder;
  const auto path = folder.put("a.npz", zip_bytes({stored_part("bad.npy", "no array at all"),
                                                   stored_part("w.npy", array_of({1, 2}))}));
  CHECK_THROWS_AS(open_tensor_file(path), InvalidArgument);
  const auto file = open_tensor_file(path, std::nullopt, [](std::string_view name) { return name != "bad"; });
  CHECK(file->tensors().size() == 1);
  CHECK(elements_of(*file) == std::vector{1.0f, 2.0f});
}

TEST_CASE("a stored member's checksum is checked once all of it was read, in any order", "[npz]") {
  const TemporaryFolder folder;
  const std::vector<float> values = some_floats(100'000);
  ZipPart part = stored_part("w.npy", array_of(values));
  const auto read_parts = [&](const ZipPart& stored, const std::vector<std::int64_t>& order) {
    const auto file = opened(folder, {stored});
    for (const std::int64_t block : order) static_cast<void>(elements_of(*file, 0, block * 25'000, 25'000));
  };
  for (const std::vector<std::int64_t>& order :
       {std::vector<std::int64_t>{0, 1, 2, 3}, {3, 1, 0, 2}, {2, 2, 0, 3, 1}}) {
    CHECK_NOTHROW(read_parts(part, order));
  }
  part.packed[200'003] = static_cast<char>(part.packed[200'003] ^ 0x7f);
  for (const std::vector<std::int64_t>& order :
       {std::vector<std::int64_t>{0, 1, 2, 3}, {3, 1, 0, 2}, {2, 2, 0, 3, 1}}) {
    check_says(message_of<InvalidArgument>([&] { read_parts(part, order); }),
               {"member \"w.npy\"", "damaged: the checksum is"});
  }
  CHECK_NOTHROW(read_parts(part, {0, 1, 3}));  // not all of it
}

TEST_CASE("an array without elements has a checksum too", "[npz]") {
  const TemporaryFolder folder;
  ZipPart part = stored_part("w.npy", array_of({}));
  CHECK(opened(folder, {part})->tensors()[0].elements == 0);
  part.crc ^= 1;
  check_says(refusal(zip_bytes({part})), {"member \"w.npy\"", "damaged: the checksum is"});
}

TEST_CASE("a directory that lies is refused", "[npz]") {
  const ZipPart one = stored_part("1.npy", array_of({1})), two = stored_part("2.npy", array_of({2}));
  const std::string valid = zip_bytes({one, two});
  check_says(refusal(zip_bytes({one, one})), {"two members are named \"1.npy\""});
  check_says(refusal(""), {"byte 0", "truncated or is no .npz"});
  check_says(refusal(valid.substr(0, valid.size() - 1)), {"truncated or is no .npz"});
  check_says(refusal(valid.substr(1)), {"directory: 102 bytes from byte 214 on reach past byte 315"});

  const std::size_t end = valid.size() - 22, directory = valid.find("PK\1\2");
  const auto with = [&](std::size_t at, std::uint64_t value, std::size_t width) {
    return refusal(std::string(valid).replace(at, width, little_endian(value, width)));
  };
  check_says(with(end + 4, 1, 2), {"split archive"});
  check_says(with(end + 10, 3, 2), {"2 entries", "says 3"});
  check_says(with(end + 12, 5, 4), {"not an entry"});
  check_says(with(end + 12, 1'000'000, 4), {"directory: 1000000 bytes"});
  check_says(with(end + 16, 0xFFFF'FFF0, 4), {"the zip directory: "});
  check_says(with(directory, 0, 4), {"not an entry", "byte " + std::to_string(directory)});
  check_says(with(directory + 42, 1, 4), {"member \"1.npy\"", "byte 1", "no member"});
  check_says(with(directory + 42, 0x7FFF'FFFF, 4), {"member \"1.npy\"", "2147483647"});
  check_says(with(directory + 46 + 5 + 42, 0, 4), {"overlaps the member before it"});
  check_says(with(28, 0xFFFF, 2), {"member \"1.npy\""});  // the local header's extra field
}

TEST_CASE("long numbers that lie are refused", "[npz]") {
  const std::string valid = zip_bytes({stored_part("1.npy", array_of({1}))}, ZipNumbers::zip64);
  const std::size_t locator = valid.find("PK\6\7"), record = valid.find("PK\6\6"),
                    entry = valid.find("PK\1\2");
  const auto with = [&](std::size_t at, std::uint64_t value, std::size_t width) {
    return refusal(std::string(valid).replace(at, width, little_endian(value, width)));
  };
  for (const std::uint64_t huge : {std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    check_says(with(locator + 8, huge, 8), {"zip64 end record"});
    check_says(with(record + 40, huge, 8), {"the zip directory: "});
    check_says(with(record + 48, huge, 8), {"the zip directory: "});
    for (const std::size_t field : {4u, 12u, 20u})
      check_says(with(entry + 46 + 5 + field, huge, 8), {"1.npy"});
  }
  check_says(with(locator + 8, 0, 8), {"byte 0", "not a zip64 end record"});
  check_says(with(entry + 46 + 5 + 2, 8, 2), {"zip64 field is too short"});
}

TEST_CASE("every flipped or cut byte of an archive is read or refused, never more", "[npz]") {
  const TemporaryFolder folder;
  const auto survives = [&](const std::string& bytes) {
    try {
      const auto file = open_tensor_file(folder.put("a.npz", bytes));
      for (std::size_t i = 0; i < file->tensors().size(); ++i) {
        if (file->tensors()[i].elements < 1'000'000) static_cast<void>(elements_of(*file, i));
      }
    } catch (const InvalidArgument&) {  // refused, as most are
    }
  };
  const std::string valid = zip_bytes(
      {stored_part("a.npy", array_of(some_floats(3))), deflated_part("b.npy", array_of(some_floats(50)))},
      ZipNumbers::zip64);
  for (std::size_t at = 0; at < valid.size(); ++at) {
    survives(valid.substr(0, at));
    survives(valid.substr(0, at) + valid.substr(at + 1));
    for (const int flip : {0x01, 0x08, 0x80, 0xff}) {
      std::string changed = valid;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      survives(changed);
    }
  }
}

}  // namespace
}  // namespace halfscope::npz_test
