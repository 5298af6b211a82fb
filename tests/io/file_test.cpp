// Files are written whole or not at all, whatever stops the writer.
#include <halfscope/io/file.hpp>

#include <sys/stat.h>

#include <fstream>
#include <string>
#include <thread>

#include "tests/support/catch.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::file_test {
namespace {

TEST_CASE("a file reads back as it was written, at every size", "[file]") {
  const TemporaryFolder folder;
  for (const std::size_t size : {0u, 1u, 31u, 65535u, 65536u, 65537u, 257u * 259u, 3u << 20}) {
    std::string contents(size, '\0');
    for (std::size_t i = 0; i < size; ++i) contents[i] = static_cast<char>(i * 7 + i / 256);
    write_file(folder / "data", contents);
    CHECK((read_file(folder / "data") == contents));
  }
  CHECK(folder.entry_count() == 1);
}

TEST_CASE("a file system's longest name can be written", "[file]") {
  const TemporaryFolder folder;
  const std::string name(255, 'n');
  write_file(folder / name, "x");
  CHECK(read_file(folder / name) == "x");
}

TEST_CASE("writing goes through a symbolic link and keeps it", "[file]") {
  const TemporaryFolder folder;
  create_folder(folder / "real");
  std::filesystem::create_symlink("real/target", folder / "link");
  for (const char* contents : {"new", "again"}) {
    write_file(folder / "link", contents);
    CHECK(std::filesystem::is_symlink(folder / "link"));
    CHECK(read_file(folder.path() / "real" / "target") == contents);
  }
  std::filesystem::create_symlink("loop", folder / "loop");
  check_says(message_of<RuntimeFailure>([&] { write_file(folder / "loop", "new"); }),
             {(folder / "loop").string(), "symbolic links"});
}

TEST_CASE("a file that does not fit leaves the old one and no rest", "[file]") {
  const TemporaryFolder folder;
  write_file(folder / "data", "old");
  std::string message;
  {
    const FileSizeLimit limit(4096);
    message = message_of<RuntimeFailure>([&] { write_file(folder / "data", std::string(10000, 'n')); });
  }
  check_says(message, {(folder / "data").string(), "File too large"});
  CHECK(read_file(folder / "data") == "old");
  CHECK(folder.entry_count() == 1);
}

TEST_CASE("a path that cannot be written is named with the reason", "[file]") {
  const TemporaryFolder folder;
  folder.put("file", "old");
  create_folder(folder / "folder");
  const auto says = [&](const std::filesystem::path& path, const std::string& reason) {
    check_says(message_of<RuntimeFailure>([&] { write_file(path, "new"); }), {printable(path), reason});
  };
  says(folder / "file/below", "Not a directory");
  says(folder / "missing/below", "No such file or directory");
  says(folder / "folder", "it is a folder");
  says("/dev/null", "not a regular file");
  says(folder / std::string(256, 'n'), "File name too long");
  says("", "the name is empty");
  CHECK(read_file(folder / "file") == "old");
  CHECK(folder.entry_count() == 2);
}

TEST_CASE("a path that cannot be read is named with the reason", "[file]") {
  const TemporaryFolder folder;
  folder.put("file", "contents");
  const auto says = [&](const std::filesystem::path& path, const std::string& reason) {
    check_says(message_of<InvalidArgument>([&] { static_cast<void>(read_file(path)); }),
               {printable(path), reason});
  };
  says(folder / "missing", "No such file or directory");
  says(folder / "file/below", "Not a directory");
  says(folder.path(), "it is a folder");
  says("", "No such file or directory");
}

TEST_CASE("a message is one line even for a name of several", "[file]") {
  const TemporaryFolder folder;
  check_says(message_of<InvalidArgument>([&] { static_cast<void>(read_file(folder / "a\nb")); }), {"a\\nb"});
}

TEST_CASE("lines of a file come one after the other, of any length", "[file]") {
  const TemporaryFolder folder;
  const std::string length(200'000, 'x');
  std::vector<std::string> lines;
  read_lines(folder.put("lines", "one\n\n" + length + "\nlast"),
             [&](std::size_t line, std::string_view text) {
               CHECK(line == lines.size() + 1);
               lines.emplace_back(text);
             });
  CHECK(lines == std::vector<std::string>{"one", "", length, "last"});
  read_lines(folder.put("nothing", ""), [](std::size_t, std::string_view) { FAIL("there is no line"); });
}

TEST_CASE("a source without an end is refused before it fills the memory", "[file]") {
  const TemporaryFolder folder;
  const auto refusal = [](auto&& read) { return message_of<InvalidArgument>(read); };
  const auto lines_of = [](const std::filesystem::path& path) {
    return [path] { read_lines(path, [](std::size_t, std::string_view) {}); };
  };
  check_says(refusal([] { static_cast<void>(read_file("/dev/zero")); }),
             {"/dev/zero", "neither a file nor a pipe"});
  check_says(refusal(lines_of("/dev/zero")), {"/dev/zero", "neither a file nor a pipe"});
  const auto zeros = folder.put("zeros", "");
  std::filesystem::resize_file(zeros, longest_line + 100'000);
  check_says(refusal(lines_of(zeros)), {"zeros", "line 1 is longer"});
}

TEST_CASE("a pipe is read when its writer comes, and not waited for without one", "[file]") {
  const TemporaryFolder folder;
  const std::filesystem::path pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::thread writer([&] { std::ofstream(pipe) << "late" << std::flush << " words"; });
  CHECK(read_file(pipe) == "late words");
  writer.join();
  // Nobody at all takes five seconds; somebody who leaves without a word does not.
  std::thread silent([&] { std::ofstream opened(pipe); });
  CHECK(read_file(pipe).empty());
  silent.join();
}

TEST_CASE("folders are made with those above them, and again", "[file]") {
  const TemporaryFolder folder;
  create_folder(folder / "a/b/c");
  create_folder(folder / "a/b/c");
  create_folder(folder / "a/d/");
  CHECK(std::filesystem::is_directory(folder / "a/b/c"));
  CHECK(std::filesystem::is_directory(folder / "a/d"));

  folder.put("file", "");
  for (const char* name : {"file", "file/below"}) {
    check_says(message_of<RuntimeFailure>([&] { create_folder(folder / name); }),
               {(folder / name).string(), "folder"});
  }
}

TEST_CASE("unfinished files are removed, others stay", "[file]") {
  const TemporaryFolder folder;
  folder.put(".halfscope-1-0.tmp", "half");
  folder.put(".halfscope-rc", "mine");
  folder.put("a.tmp", "mine");
  remove_unfinished_files(folder.path());
  CHECK(folder.entry_count() == 2);
  remove_unfinished_files(folder / "nowhere");
}

}  // namespace
}  // namespace halfscope::file_test
