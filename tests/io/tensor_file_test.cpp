// Tensor files of every format: what they hold is read, in pieces, whatever the type and the order.
#include <halfscope/io/tensor_file.hpp>

#include <fmt/format.h>
#include <sys/stat.h>

#include <limits>
#include <set>
#include <string>

#include <halfscope/kernel/cast/convert.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/read_tensors.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tensor_bytes.hpp"

namespace halfscope::tensor_file_test {
namespace {

const std::vector<float> numbers{1.5f, -2, 0, -0.0f, 6e-8f, 65504};

/// Message of the error from opening `contents` under the file name `name`; it names the file.
std::string refusal(std::string_view name, std::string_view contents, std::optional<DType> raw = {}) {
  const TemporaryFolder folder;
  const auto path = folder.put(name, contents);
  std::string message = message_of<InvalidArgument>([&] { static_cast<void>(open_tensor_file(path, raw)); });
  check_says(message, {path.string()});
  CHECK(message.size() < 500 + path.string().size());
  return message;
}

TEST_CASE("a safetensors file gives its tensors in the order of their data", "[tensor_file]") {
  const TemporaryFolder folder;
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("b":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},)"
                             R"("steps":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                             R"("e":{"dtype":"F64","shape":[0,4],"data_offsets":[32,32]},)"
                             R"("h":{"dtype":"BF16","shape":[1],"data_offsets":[32,34]}})";
  const auto path = folder.put(
      "g.safetensors",
      safetensors_bytes(header, little_endian(1, 8) + bytes_of(numbers) + little_endian(0xC0A0, 2)));
  const auto file = open_tensor_file(path);
  REQUIRE(file->tensors().size() == 3);
  const StoredTensor& first = file->tensors()[0];
  CHECK(first.name == "b");
  CHECK(first.type == DType::f32);
  CHECK(first.shape == std::vector<std::int64_t>{2, 3});
  CHECK(first.elements == 6);
  CHECK(first.access == Access::random);
  CHECK(bytes_of(elements_of(*file, 0)) == bytes_of(numbers));
  CHECK(file->tensors()[1].name == "e");
  CHECK(elements_of(*file, 1).empty());
  CHECK(elements_of(*file, 2) == std::vector{-5.0f});
  REQUIRE(file->skipped().size() == 1);
  CHECK(file->skipped()[0].name == "steps");
  CHECK(file->skipped()[0].reason == "dtype I64");
}

TEST_CASE("every dtype of safetensors is read, or skipped by its name", "[tensor_file]") {
  const TemporaryFolder folder;
  const std::vector<std::tuple<std::string, std::size_t, bool>> dtypes{
      {"F16", 2, true},      {"BF16", 2, true},         {"F32", 4, true},         {"F64", 8, true},
      {"F8_E4M3", 1, true},  {"F8_E5M2", 1, true},      {"BOOL", 1, false},       {"I8", 1, false},
      {"U8", 1, false},      {"I16", 2, false},         {"U16", 2, false},        {"I32", 4, false},
      {"U32", 4, false},     {"I64", 8, false},         {"U64", 8, false},        {"C64", 8, false},
      {"F8_E8M0", 1, false}, {"F8_E4M3FNUZ", 1, false}, {"F8_E5M2FNUZ", 1, false}};
  for (const auto& [dtype, width, is_read] : dtypes) {
    INFO(dtype);
    const std::string header =
        fmt::format(R"({{"t":{{"dtype":"{}","shape":[2],"data_offsets":[0,{}]}}}})", dtype, 2 * width);
    const auto path = folder.put("t.safetensors", safetensors_bytes(header, std::string(2 * width, '\0')));
    const auto file = open_tensor_file(path);
    CHECK(file->tensors().size() == (is_read ? 1 : 0));
    CHECK(file->skipped().size() == (is_read ? 0 : 1));
    const std::set<std::string> codes{"U8",  "I8",  "I16", "U16",
                                      "I32", "U32", "I64"};  // packed by quantization
    const bool has_codes = codes.contains(dtype) || (!is_read && dtype.starts_with("F8"));
    CHECK(file->codes().size() == (has_codes ? 1 : 0));
    if (is_read) CHECK(elements_of(*file) == std::vector<float>{0, 0});
  }
}

TEST_CASE("hostile safetensors files are refused", "[tensor_file]") {
  const auto refused = [](std::string_view header, std::string_view data = "12345678") {
    return refusal("t.safetensors", safetensors_bytes(header, data));
  };
  const std::string tensor = R"("t":{"dtype":"F32","shape":[2],"data_offsets":)";
  for (const std::uint64_t length : {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{100'000'001}}) {
    check_says(refusal("t.safetensors", little_endian(length, 8) + "{}"), {"byte 0", std::to_string(length)});
  }
  check_says(refusal("t.safetensors", little_endian(9, 8) + "{}"),
             {"truncated", "byte 17", "the file at 10"});
  check_says(refused("{" + tensor + "[0,8]}}", "1234567"), {"truncated"});
  check_says(refused("{" + tensor + "[0,8]}}", "123456789"), {"1 bytes follow"});
  check_says(refused("{" + tensor + "[8,16]}}"), {"\"t\"", "gap"});
  check_says(refused("{" + tensor + R"([0,8]},"u":{"dtype":"F16","shape":[2],"data_offsets":[4,8]}})"),
             {"\"u\"", "overlap"});
  check_says(refused("{" + tensor + "[0,8]}," + tensor + "[0,8]}}"), {"\"t\" is given twice"});
  check_says(refused(R"({"t":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})"),
             {"tensor \"t\"", "dtype \"F33\" is unknown"});
  check_says(refused(R"({"t":{"dtype":"F4","shape":[15],"data_offsets":[0,8]}})"),
             {"do not span the 8 bytes of F4"});
  check_says(refused(R"({"t":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,8]}})"),
             {"\"t\"", "more elements than memory"});
  check_says(refused("{\"t\":" + std::string(100'000, '[')), {"deeper than 64"});
  check_says(refused("{\"t\":" + std::string(70, '{')), {"header"});
}

TEST_CASE("an .npy file gives its array under the file's name", "[tensor_file]") {
  const TemporaryFolder folder;
  const auto file = open_tensor_file(folder.put("grad.w.npy", npy_bytes("<f4", "(2, 3)", bytes_of(numbers))));
  REQUIRE(file->tensors().size() == 1);
  CHECK(file->tensors()[0].name == "grad.w");
  CHECK(file->tensors()[0].shape == std::vector<std::int64_t>{2, 3});
  CHECK(bytes_of(elements_of(*file)) == bytes_of(numbers));
  CHECK(file->skipped().empty());
}

TEST_CASE("headers that NumPy writes or has written are read", "[tensor_file][npy]") {
  const TemporaryFolder folder;
  for (const char major : {'\1', '\2', '\3'}) {
    for (const char* dictionary : {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }          \n",
                                   "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2)}\n",
                                   "{\"shape\":(6L,),'fortran_order':False,'descr':\"<f4\"}",
                                   "{ 'shape' : ( 1 , 6 , ) , 'fortran_order' : True, 'descr': '<f4' , }"}) {
      INFO(dictionary);
      const auto file =
          open_tensor_file(folder.put("a.npy", npy_with_header(dictionary, bytes_of(numbers), major)));
      CHECK(bytes_of(elements_of(*file)) == bytes_of(numbers));
    }
  }
  CHECK(open_tensor_file(folder.put("s.npy", npy_bytes("<f8", "()", std::string(8, '\0'))))
            ->tensors()[0]
            .elements == 1);
}

TEST_CASE("big-endian arrays are read right", "[tensor_file][npy]") {
  const TemporaryFolder folder;
  const auto read = [&](const char* descr, const std::string& data) {
    return elements_of(*open_tensor_file(folder.put("a.npy", npy_bytes(descr, "(2,)", data))));
  };
  const std::vector<float> expected{-2, 1.5f};
  CHECK(read(">f2", std::string("\xc0\x00\x3e\x00", 4)) == expected);
  CHECK(read(">f4", std::string("\xc0\x00\x00\x00\x3f\xc0\x00\x00", 8)) == expected);
  CHECK(read(">f8", std::string("\xc0\0\0\0\0\0\0\0\x3f\xf8\0\0\0\0\0\0", 16)) == expected);
}

TEST_CASE("raw bytes of .npy have the type that the caller names", "[tensor_file][npy]") {
  const TemporaryFolder folder;
  const auto path = folder.put("a.npy", npy_bytes("<V2", "(1,)", little_endian(0xC0A0, 2)));
  CHECK(elements_of(*open_tensor_file(path, DType::bf16)) == std::vector{-5.0f});
  check_says(message_of<InvalidArgument>([&] { static_cast<void>(open_tensor_file(path)); }),
             {path.string(), "\"<V2\"", "bfloat16", "--dtype"});
  CHECK_THROWS_AS(open_tensor_file(path, DType::f8_e4m3), InvalidArgument);
}

TEST_CASE("types that NumPy lacks are read by the letters and names of ml_dtypes", "[tensor_file][npy]") {
  const TemporaryFolder folder;
  const auto read = [&](const char* descr, std::size_t width, std::optional<DType> type = {}) {
    const auto path =
        folder.put("a.npy", npy_bytes(descr, "(1,)", little_endian(width == 1 ? 0xC4 : 0xC0A0, width)));
    return elements_of(*open_tensor_file(path, type)).front();
  };
  CHECK(read("<f1", 1) == -4);
  CHECK(read("|f1", 1) == -4);
  CHECK(read("<f1", 1, DType::f8_e4m3) == -3);
  CHECK(read("bfloat16", 2) == -5);
  CHECK(read("float8_e5m2", 1) == -4);
  CHECK(read("float8_e4m3fn", 1) == -3);
  CHECK(read("<g2", 2, DType::bf16) == -5);
  CHECK(read("<f2", 2, DType::bf16) != -5);  // NumPy's own types are what they are
  check_says(refusal("a.npy", npy_bytes("<g2", "(1,)", "12")), {"\"<g2\"", "--dtype"});
  check_says(refusal("a.npy", npy_bytes("<i2", "(1,)", "12"), DType::bf16),
             {"\"<i2\"", "only f2, f4 and f8"});
}

TEST_CASE("metadata may be null", "[tensor_file]") {
  const TemporaryFolder folder;
  const auto file = open_tensor_file(folder.put(
      "n.safetensors",
      safetensors_bytes(R"({"__metadata__":null,"g":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                        bytes_of(std::vector{2.0f}))));
  CHECK(elements_of(*file) == std::vector{2.0f});
}

TEST_CASE("raw files are elements of the given type", "[tensor_file]") {
  const TemporaryFolder folder;
  const auto path = folder.put("grads.bin", bytes_of(numbers));
  const auto file = open_tensor_file(path, DType::f32);
  REQUIRE(file->tensors().size() == 1);
  CHECK(file->tensors()[0].name == "grads");
  CHECK(bytes_of(elements_of(*file)) == bytes_of(numbers));
  CHECK(open_tensor_file(path, DType::f8_e5m2)->tensors()[0].elements == 24);
  check_says(refusal("odd.bin", "1234567", DType::f16), {"7 bytes", "f16"});
  check_says(refusal("empty.bin", "", DType::f16), {"is empty"});
  check_says(refusal("grads.bin", "1234"), {".npy", ".npz", ".safetensors", "--dtype"});
}

/// 40,000 numbers in 80,000 bytes.
std::vector<std::uint16_t> many_halves() {
  std::vector<std::uint16_t> codes(40'000);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i % 31'000);
  return codes;
}

TEST_CASE("any range of any type is those elements of the file", "[tensor_file]") {
  const TemporaryFolder folder;
  for (std::size_t t = 0; t < enum_names<DType>.size(); ++t) {
    const auto type = static_cast<DType>(t);
    INFO(name_of(type));
    const std::string bytes = bytes_of(uniform_floats(17'500 * bytes_per_element(type), -1, 1, 3));
    std::vector<float> whole(70'000);  // more than a step of any type holds
    widen(type, reinterpret_cast<const std::byte*>(bytes.data()), whole);
    const auto file = open_tensor_file(folder.put("any.raw", bytes), type);
    REQUIRE(file->tensors()[0].elements == 70'000);
    for (const std::int64_t first : {0, 1, 4095, 4096, 16'383, 65'536, 69'999, 70'000}) {
      for (const std::int64_t count : {0, 1, 4097, 16'384, 70'000}) {
        if (first + count > 70'000) continue;
        const std::vector<float> part = elements_of(*file, 0, first, count);
        REQUIRE(bytes_of(part) == bytes_of(whole).substr(4 * static_cast<std::size_t>(first),
                                                         4 * static_cast<std::size_t>(count)));
      }
    }
  }
}

TEST_CASE("a range outside the tensor is refused", "[tensor_file]") {
  const TemporaryFolder folder;
  const auto file = open_tensor_file(folder.put("h.raw", bytes_of(many_halves())), DType::f16);
  for (const auto& [first, count] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {-1, 1}, {0, 40'001}, {40'000, 1}, {1, -1}, {1, std::numeric_limits<std::int64_t>::max()}}) {
    INFO(first << " " << count);
    CHECK_THROWS_AS(file->read(0, first, count, [](std::span<const float>) {}), InvalidArgument);
  }
}

TEST_CASE("what is no file is refused at once", "[tensor_file]") {
  const TemporaryFolder folder;
  for (const char* name : {"missing.npy", "missing.safetensors", "missing.bin"}) {
    check_says(message_of<InvalidArgument>([&] { static_cast<void>(open_tensor_file(folder / name)); }),
               {name, "No such file"});
  }
  std::filesystem::create_directory(folder / "folder.npy");
  check_says(message_of<InvalidArgument>([&] { static_cast<void>(open_tensor_file(folder / "folder.npy")); }),
             {"folder.npy", "is a folder"});
  REQUIRE(::mkfifo((folder / "pipe.npy").c_str(), 0600) == 0);
  check_says(message_of<InvalidArgument>([&] { static_cast<void>(open_tensor_file(folder / "pipe.npy")); }),
             {"pipe.npy", "not a regular file"});
  for (const char* name : {"empty.npy", "empty.safetensors"}) check_says(refusal(name, ""), {name});
}

TEST_CASE("a file that is cut while it is read is an error with the byte", "[tensor_file]") {
  const TemporaryFolder folder;
  const auto path = folder.put("h.raw", bytes_of(many_halves()));
  const auto file = open_tensor_file(path, DType::f16);
  std::filesystem::resize_file(path, 50'000);
  CHECK(elements_of(*file, 0, 0, 25'000).size() == 25'000);
  check_says(message_of<InvalidArgument>([&] { static_cast<void>(elements_of(*file)); }),
             {path.string(), "byte 50000", "80000"});
}

}  // namespace
}  // namespace halfscope::tensor_file_test
