// GGUF: tensors of floating-point types among metadata, quantized ones by their type, and damaged files.
#include <fmt/format.h>

#include <halfscope/io/tensor_file.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/gguf_bytes.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/read_tensors.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::gguf_file_test {
namespace {

const std::vector<float> six{0, 1, 2, 3, 4, 5};

std::string two_tensors() {
  return gguf_bytes(
      {gguf_tensor("w", {3, 2}, 0, 0), gguf_tensor("q", {32}, 2, 32), gguf_tensor("b", {2}, 30, 64),
       gguf_tensor("n", {1}, 99, 64)},
      bytes_of(six) + std::string(8 + 32, '\0') + little_endian(0xC0A0, 2) + little_endian(0x3F80, 2));
}

TEST_CASE("tensors of GGUF have the shape of rows first, quantized ones are named", "[gguf]") {
  const TemporaryFolder folder;
  for (const char* name : {"m.gguf", "renamed.safetensors", "renamed.bin"}) {
    const auto file = open_tensor_file(folder.put(name, two_tensors()));
    REQUIRE(file->tensors().size() == 2);
    CHECK(file->tensors()[0].name == "w");
    CHECK(file->tensors()[0].shape == std::vector<std::int64_t>{2, 3});
    CHECK(elements_of(*file, 0) == six);
    CHECK(elements_of(*file, 1) == std::vector<float>{-5, 1});
    REQUIRE(file->skipped().size() == 2);
    CHECK(file->skipped()[0].reason == "GGUF's type Q4_0");
    CHECK(file->skipped()[1].reason == "GGUF's type 99");
  }
}

TEST_CASE("damaged GGUF files are refused", "[gguf]") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& bytes) {
    const auto path = folder.put("m.gguf", bytes);
    std::string message = message_of<InvalidArgument>([&] { (void)open_tensor_file(path); });
    check_says(message, {path.string()});
    return message;
  };
  const std::string whole = two_tensors();
  for (const unsigned size : {4u, 7u, 8u, 24u, 40u, 100u, 200u}) {
    INFO(size);
    check_says(refusal(whole.substr(0, size)), {"truncated"});
  }
  check_says(refusal(whole.substr(0, whole.size() - 4)), {"\"b\"", "truncated"});
  // Behind the magic number each byte counts, those of quantized blocks too.
  const std::string quantized =
      gguf_bytes({gguf_tensor("norm", {8}, 0, 0), gguf_tensor("w", {32}, 8, 32)}, std::string(32 + 34, '\1'));
  for (std::size_t size = 4; size < quantized.size(); ++size) {
    INFO(size);
    check_says(refusal(quantized.substr(0, size)), {"truncated"});
  }
  check_says(refusal("GGUF" + little_endian(1, 4) + whole.substr(8)), {"version 1"});
  check_says(
      refusal("GGUF" + little_endian(3, 4) + little_endian(std::uint64_t{1} << 60, 8) + whole.substr(16)),
      {"too many"});
  check_says(refusal(gguf_bytes({gguf_tensor("w", {1u << 31, 1u << 31, 1u << 31}, 0, 0)}, "")),
             {"more elements than memory"});
  for (const std::vector<std::uint64_t>& shape : {std::vector<std::uint64_t>{0, 1u << 31, 1u << 31, 4},
                                                  {1u << 31, 0, 1u << 31, 4},
                                                  {4, 1u << 31, 1u << 31, 0}}) {
    check_says(refusal(gguf_bytes({gguf_tensor("w", shape, 0, 0)}, "")), {"more elements than memory"});
  }
  check_says(refusal(gguf_bytes({gguf_tensor("w", {~std::uint64_t{0}}, 0, 0)}, "")), {"negative"});
  check_says(refusal(gguf_bytes({gguf_tensor("w", {1}, 0, std::uint64_t{1} << 63)}, "")), {"truncated"});
}

}  // namespace
}  // namespace halfscope::gguf_file_test
