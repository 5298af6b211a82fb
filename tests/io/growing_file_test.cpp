// Files that grow: appended whole or not at all, read by whole lines, cut back.
#include <halfscope/io/growing_file.hpp>

#include <string>
#include <vector>

#include <halfscope/io/file.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::growing_file_test {
namespace {

std::vector<std::string> lines_of(const std::filesystem::path& path,
                                  std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
  std::vector<std::string> lines;
  read_lines(
      path,
      [&](std::string_view line, std::size_t number) {
        lines.emplace_back(line);
        CHECK(number == lines.size());
      },
      most);
  return lines;
}

TEST_CASE("what is appended comes after what was there", "[growing]") {
  const TemporaryFolder folder;
  append_to_file(folder / "records", "");
  CHECK(read_file(folder / "records").empty());
  std::string expected;
  for (const std::size_t size : {1u, 31u, 65537u}) {
    append_to_file(folder / "records", std::string(size, 'x') + "\n");
    expected += std::string(size, 'x') + "\n";
    CHECK(read_file(folder / "records") == expected);
  }
  cut_file(folder / "records", 5);
  CHECK(read_file(folder / "records") == expected.substr(0, 5));
  cut_file(folder / "none", 0);
  CHECK_FALSE(std::filesystem::exists(folder / "none"));
}

TEST_CASE("appending leaves nothing of what does not fit", "[growing]") {
  const TemporaryFolder folder;
  append_to_file(folder / "records", "a line\n");
  {
    const FileSizeLimit limit(1000);
    check_says(
        message_of<RuntimeFailure>([&] { append_to_file(folder / "records", std::string(2000, 'x')); }),
        {"records", "File too large"});
  }
  CHECK(read_file(folder / "records") == "a line\n");
}

TEST_CASE("files that cannot grow are refused with path and reason", "[growing]") {
  const TemporaryFolder folder;
  create_folder(folder / "folder");
  check_says(message_of<RuntimeFailure>([&] { append_to_file(folder / "folder", "x"); }), {"folder"});
  check_says(message_of<RuntimeFailure>([&] { append_to_file(folder / "none/file", "x"); }), {"none/file"});
  check_says(message_of<RuntimeFailure>([&] { append_to_file("/dev/null", "x"); }), {"/dev/null"});
  check_says(message_of<RuntimeFailure>([&] { cut_file(folder / "none", 1); }), {"none"});
  check_says(message_of<InvalidArgument>([&] { lines_of(folder / "none"); }), {"none"});
}

TEST_CASE("lines are handed over whole, whatever pieces the file is read in", "[growing]") {
  const TemporaryFolder folder;
  for (const std::size_t size : {0u, 1u, 262'143u, 262'144u, 262'145u, 800'000u}) {
    const std::vector<std::string> expected{"", std::string(size, 'a'), "b", "", std::string(size, 'c')};
    std::string text;
    for (const std::string& line : expected) text += line + "\n";
    folder.put("records", text + "half a li");
    CHECK((lines_of(folder / "records") == expected));
  }
}

TEST_CASE("only the first bytes are read, and their checksum is that of zip", "[growing]") {
  const TemporaryFolder folder;
  folder.put("records", "1234\n6789\nrest\n");
  CHECK(lines_of(folder / "records", 0).empty());
  CHECK(lines_of(folder / "records", 4).empty());
  CHECK(lines_of(folder / "records", 7) == std::vector<std::string>{"1234"});
  CHECK(lines_of(folder / "records", 10) == std::vector<std::string>{"1234", "6789"});
  folder.put("check", "123456789");
  const auto nothing = [](std::string_view, std::size_t) {};
  CHECK(read_lines(folder / "check", nothing) == FileExtent{9, 0xcbf43926});
  FileExtent extent;
  extent.add("1234");
  extent.add("");
  extent.add("56789");
  CHECK(extent == FileExtent{9, 0xcbf43926});
}

}  // namespace
}  // namespace halfscope::growing_file_test
