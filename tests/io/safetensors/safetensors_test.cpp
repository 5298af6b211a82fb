// safetensors: what is written reads back bit for bit, and no hostile file does harm.
#include <halfscope/io/safetensors/safetensors.hpp>

#include <cstring>
#include <limits>
#include <utility>

#include <halfscope/format/bits.hpp>
#include <halfscope/io/file.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::safetensors_test {
namespace {

std::string length_prefix(std::uint64_t length) {
  return {reinterpret_cast<const char*>(&length), sizeof length};
}

std::string file_bytes(std::string_view header, std::size_t data_size) {
  return length_prefix(header.size()) + std::string(header) + std::string(data_size, '\x3f');
}

std::string refusal(std::string_view bytes) {
  return message_of<InvalidArgument>([&] { static_cast<void>(parse_safetensors(bytes, "w.safetensors")); });
}

SafetensorsFile example() {
  SafetensorsFile file;
  file.metadata = {{"format", "pt"}, {"step", "600"}};
  file.tensors.push_back({"z.weight", Array::from({2, 3}, {1, -0.0f, 0x1p-149f, 65504, 1e38f, -3})});
  file.tensors.push_back({"a \"quoted\"\n\u00e9", Array::from({}, {std::numeric_limits<float>::infinity()})});
  file.tensors.push_back({"none", Array({4, 0, 2})});
  file.tensors.push_back({"nan", Array::from({1}, {std::numeric_limits<float>::quiet_NaN()})});
  return file;
}

std::string example_bytes() {
  const TemporaryFolder folder;
  write_safetensors(folder / "w", example());
  return read_file(folder / "w");
}

/// Bits of the elements of the first tensor.
std::vector<std::uint32_t> bits_of(const SafetensorsFile& file) {
  std::vector<std::uint32_t> bits;
  for (const float x : file.tensors.at(0).array.values()) bits.push_back(to_bits(x));
  return bits;
}

TEST_CASE("tensors and metadata read back bit for bit", "[safetensors]") {
  const TemporaryFolder folder;
  const SafetensorsFile written = example();
  write_safetensors(folder / "w.safetensors", written);
  const SafetensorsFile read = read_safetensors(folder / "w.safetensors");
  CHECK(folder.entry_count() == 1);
  CHECK(read.metadata == written.metadata);
  REQUIRE(read.tensors.size() == written.tensors.size());
  for (std::size_t i = 0; i < read.tensors.size(); ++i) {
    const auto& [name, array] = read.tensors[i];
    INFO(name);
    // The order among tensors at one place in the data is not kept: "none" takes no bytes, and "nan" follows
    // it.
    CHECK(name == written.tensors[i].name);
    CHECK(array.shape() == written.tensors[i].array.shape());
    CHECK((array.empty() ||
           std::memcmp(array.data(), written.tensors[i].array.data(), array.size() * sizeof(float)) == 0));
  }
}

TEST_CASE("every NaN is written as the one NaN, and read as it is", "[safetensors]") {
  const TemporaryFolder folder;
  const std::vector<std::uint32_t> made{0x7F800001, 0x7FFFFFFF, 0xFFC00000, 0xFFFFFFFF, infinity_bits};
  SafetensorsFile file;
  Array& array = file.tensors.emplace_back(NamedArray{"w", Array({5})}).array;
  std::memcpy(array.data(), made.data(), made.size() * sizeof(float));
  write_safetensors(folder / "w", file);
  std::string bytes = read_file(folder / "w");
  const std::vector<std::uint32_t> one{quiet_nan_bits, quiet_nan_bits, quiet_nan_bits, quiet_nan_bits,
                                       infinity_bits};
  CHECK(bits_of(parse_safetensors(bytes, "w")) == one);
  bytes.replace(bytes.size() - 20, 20, reinterpret_cast<const char*>(made.data()), 20);
  CHECK(bits_of(parse_safetensors(bytes, "another's file")) == made);
}

TEST_CASE("the bytes are those of the published layout", "[safetensors]") {
  const TemporaryFolder folder;
  SafetensorsFile file;
  file.tensors.push_back({"w", Array::from({1, 2}, {1.0f, -2.0f})});
  write_safetensors(folder / "w", file);
  const std::string header = R"({"w":{"data_offsets":[0,8],"dtype":"F32","shape":[1,2]}})";
  REQUIRE(header.size() == 56);  // already a multiple of 8: the data is aligned without padding
  CHECK((read_file(folder / "w") == length_prefix(56) + header + std::string("\0\0\x80\x3f\0\0\0\xc0", 8)));
}

TEST_CASE("the data starts at a multiple of 8 bytes, whatever the names", "[safetensors]") {
  const TemporaryFolder folder;
  for (std::size_t length = 1; length <= 9; ++length) {
    SafetensorsFile file;
    file.tensors.push_back({std::string(length, 'n'), Array::from({1}, {1})});
    write_safetensors(folder / "w", file);
    CHECK((read_file(folder / "w").size() - sizeof(float)) % 8 == 0);
  }
}

TEST_CASE("a file without tensors is a file", "[safetensors]") {
  CHECK(parse_safetensors(file_bytes("{}", 0), "w").tensors.empty());
  CHECK(parse_safetensors(file_bytes("{}      ", 0), "w").tensors.empty());
}

TEST_CASE("tensors come in the order of their data", "[safetensors]") {
  const auto file = parse_safetensors(file_bytes(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                                                 R"("b":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
                                                 8),
                                      "w");
  REQUIRE(file.tensors.size() == 2);
  CHECK(file.tensors[0].name == "b");
  CHECK(file.tensors[1].name == "a");
}

TEST_CASE("a file that is cut or has no header is refused", "[safetensors]") {
  check_says(refusal(""), {"w.safetensors: 0 bytes"});
  check_says(refusal("1234567"), {"w.safetensors: 7 bytes"});
  check_says(refusal(length_prefix(10) + "{}"), {"w.safetensors", "truncated", "byte 18", "the file at 10"});
  check_says(refusal(length_prefix(100'000'001) + "{}"),
             {"w.safetensors", "100000001", "limit of 100000000"});
  check_says(refusal(length_prefix(~std::uint64_t{0}) + "{}"), {"w.safetensors", "18446744073709551615"});
  check_says(refusal(length_prefix(0)), {"w.safetensors: header: byte 1"});
  check_says(refusal(file_bytes("[]", 0)), {"w.safetensors: byte 8", "not a JSON object"});
  check_says(refusal(file_bytes("{", 0)), {"w.safetensors: header: byte 2: not valid JSON"});
  check_says(refusal(file_bytes(std::string(1'000'000, '['), 0)),
             {"w.safetensors: header", "deeper than 64"});
}

TEST_CASE("data that does not fit the tensors is refused", "[safetensors]") {
  const std::string_view header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  check_says(refusal(file_bytes(header, 7)), {"w.safetensors: truncated", "take 8 bytes", "the file has 7"});
  check_says(refusal(file_bytes(header, 9)), {"w.safetensors: 1 bytes follow the last tensor"});
  check_says(refusal(file_bytes("{}", 3)), {"w.safetensors: 3 bytes follow"});
}

/// One tensor "t" described by `fields`, beside "first", which takes bytes 0 to 8 of the 16.
std::string refusal_of_tensor(const std::string& fields) {
  return refusal(
      file_bytes(R"({"first":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"t":)" + fields + "}", 16));
}

TEST_CASE("a tensor that is described wrongly is refused by name", "[safetensors]") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"(3)", "expected an object"},
      {R"({"shape":[2],"data_offsets":[8,16]})", "dtype is missing"},
      {R"({"dtype":"F32","data_offsets":[8,16]})", "shape is missing"},
      {R"({"dtype":"F32","shape":[2]})", "data_offsets is missing"},
      {R"({"dtype":"BF16","shape":[4],"data_offsets":[8,16]})",
       "dtype \"BF16\" cannot be read; only \"F32\""},
      {R"({"dtype":4,"shape":[2],"data_offsets":[8,16]})", "dtype 4"},
      {R"({"dtype":"F32","shape":2,"data_offsets":[8,16]})", "shape is not an array"},
      {R"({"dtype":"F32","shape":[-2],"data_offsets":[8,16]})", "shape: -2 is not an extent"},
      {R"({"dtype":"F32","shape":[-2,-1],"data_offsets":[8,16]})", "shape: -2 is not an extent"},
      {R"({"dtype":"F32","shape":[2.0],"data_offsets":[8,16]})", "shape: 2.0 is not an extent"},
      {R"({"dtype":"F32","shape":["2"],"data_offsets":[8,16]})", "shape: \"2\" is not an extent"},
      {R"({"dtype":"F32","shape":[9223372036854775808],"data_offsets":[8,16]})", "is not an extent"},
      {R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[8,16]})",
       "more elements than memory"},
      {R"({"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[8,8]})",
       "more elements than memory"},
      {R"({"dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[8,8]})",
       "more elements than memory"},
      {R"({"dtype":"F32","shape":[4611686018427387906],"data_offsets":[8,16]})", "more elements than memory"},
      {R"({"dtype":"F32","shape":[3],"data_offsets":[8,16]})", "do not span the 12 bytes of F32 (3)"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[16,8]})",
       "data_offsets [16, 8] do not span the 8 bytes"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[8]})", "data_offsets is not a pair"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})", "data_offsets is not a pair"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":{"0":8,"1":16}})", "data_offsets is not a pair"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})", "[4, 12] overlap the data before it"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", "[0, 8] overlap the data before it"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[12,16]})",
       "[12, 16] leave a gap after the data before it"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[18446744073709551608,18446744073709551616]})",
       "not a pair"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[18446744073709551611,18446744073709551615]})",
       "leave a gap"},
  };
  for (const auto& [fields, problem] : cases) {
    INFO(fields);
    check_says(refusal_of_tensor(fields), {"w.safetensors: ", "tensor \"t\"", problem});
  }
  CHECK(parse_safetensors(file_bytes(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8), "w")
            .tensors.size() == 1);
}

TEST_CASE("keys given twice and metadata that is not text are refused", "[safetensors]") {
  const std::string tensor = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  check_says(refusal(file_bytes(R"({"a":)" + tensor + R"(,"a":)" + tensor + "}", 4)),
             {"w.safetensors: header", "key \"a\" is given twice"});
  check_says(refusal(file_bytes(R"({"__metadata__":3})", 0)), {"w.safetensors", "__metadata__"});
  check_says(refusal(file_bytes(R"({"__metadata__":{"k":[1]}})", 0)),
             {"w.safetensors", "__metadata__", "\"k\""});
}

TEST_CASE("a message stays one short line for a hostile name", "[safetensors]") {
  const std::string message = refusal(file_bytes("{\"a\\n" + std::string(100'000, 'x') + "\":3}", 0));
  CHECK(message.size() < 300);
}

TEST_CASE("every flipped or cut byte is read or refused, never more", "[safetensors]") {
  const std::string valid = example_bytes();
  const auto survives = [](const std::string& bytes) {
    try {
      static_cast<void>(parse_safetensors(bytes, "w"));
    } catch (const InvalidArgument&) {  // refused, as most are
    }
  };
  for (std::size_t at = 0; at < valid.size(); ++at) {
    CHECK_THROWS_AS(parse_safetensors(valid.substr(0, at), "w"), InvalidArgument);
    for (const int flip : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
      std::string changed = valid;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      survives(changed);
    }
    survives(valid.substr(0, at) + valid.substr(at + 1));
  }
}

TEST_CASE("names that no reader could tell apart are not written", "[safetensors]") {
  const TemporaryFolder folder;
  const auto refused = [&](const char* first, const char* second) {
    SafetensorsFile file;
    file.tensors.push_back({first, Array::from({1}, {1})});
    file.tensors.push_back({second, Array::from({1}, {2})});
    return message_of<InvalidArgument>([&] { write_safetensors(folder / "w", file); });
  };
  check_says(refused("same", "same"), {(folder / "w").string(), "\"same\""});
  check_says(refused("a", "__metadata__"), {(folder / "w").string(), "\"__metadata__\""});
  check_says(refused("a", "\xff"), {(folder / "w").string(), "UTF-8"});
  CHECK(folder.entry_count() == 0);
}

TEST_CASE("a path that cannot be written or read is named", "[safetensors]") {
  const TemporaryFolder folder;
  const auto path = folder.put("file", "") / "below";
  check_says(message_of<RuntimeFailure>([&] { write_safetensors(path, example()); }),
             {path.string(), "Not a directory"});
  check_says(message_of<InvalidArgument>([&] { static_cast<void>(read_safetensors(path)); }),
             {path.string()});
}

}  // namespace
}  // namespace halfscope::safetensors_test
