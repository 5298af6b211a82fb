// Settings of the interpreter in the environment: wrong ones end the process with one line.
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::ptx::environment_test {
namespace {

struct Ended {
  int status = 0;
  std::string text;  ///< on stderr
};

/// This program with one setting, listing its tests.
Ended run_with(const std::string& setting) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command =
      fmt::format("HALFSCOPE_PTX_{} '{}' --list-tests 2>&1 >/dev/null", setting, self.string());
  FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Ended ended;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) ended.text.push_back(static_cast<char>(c));
  const int status = ::pclose(pipe);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

TEST_CASE("a setting that is not known ends the process with one line", "[ptx][environment]") {
  for (const auto& [setting, says] : {std::pair<const char*, const char*>{"CAPABILITY=8", "75, 80, 90"},
                                      {"CAPABILITY=120", "unknown capability '120'"},
                                      {"SCHEDULE=random", "unknown schedule 'random'"},
                                      {"STREAMS=soon", "unknown order of streams 'soon'"},
                                      {"SEED=1x", "seed '1x' is no number"},
                                      {"SEED=-1", "seed '-1' is no number"}}) {
    INFO(setting);
    const Ended ended = run_with(setting);
    CHECK(ended.status == 1);
    CHECK(ended.text.find('\n') == ended.text.size() - 1);
    check_says(ended.text, {"PTX interpreter", says});
  }
  CHECK(run_with("SEED=18446744073709551615").text.empty());
}

}  // namespace
}  // namespace halfscope::ptx::environment_test
