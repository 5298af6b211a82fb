// The table of log formats: each is read, or known and named with what to do.
#include <halfscope/scaling/detail/log_formats.hpp>

#include <set>

#include "tests/support/catch.hpp"
#include "tests/support/log_lines.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::log_formats_test {
namespace {

TEST_CASE("every log format has a name of its own, and is read or named with a remedy", "[skip_log]") {
  std::set<std::string_view> names;
  for (const LogFormat& format : log_formats) {
    const std::string name(format.name);
    INFO(name);
    CHECK(!name.empty());
    CHECK(names.insert(format.name).second);
    CHECK(format.sign.empty() == format.description.empty());
    if (format.sign.empty()) {
      REQUIRE(format.reader({}));
    } else {
      check_says(message_of<InvalidArgument>([&] { (void)read_log({std::string(format.sign)}); }),
                 {std::string(format.description), "read are logs of DeepSpeed"});
    }
  }
}

}  // namespace
}  // namespace halfscope::log_formats_test
