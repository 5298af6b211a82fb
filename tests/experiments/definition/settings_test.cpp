// Settings from the command line, from TOML and from the config.json of a run, and texts that are none.
#include "experiments/definition/settings.hpp"

#include <fmt/format.h>

#include "experiments/definition/settings_file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::settings_test {
namespace {

TEST_CASE("an assignment is cut at its first equals sign", "[settings]") {
  CHECK(parse_assignments({"steps=30", "data=a=b", "sum_order="}) ==
        Settings{{"steps", "30"}, {"data", "a=b"}, {"sum_order", ""}});
  for (const char* wrong : {"steps", "=30", ""}) {
    check_says(message_of<InvalidArgument>([&] { (void)parse_assignments({wrong}); }),
               {std::string("--set ") + wrong, "KEY=VALUE"});
  }
}

TEST_CASE("a config.json gives its settings, and says which run it is of", "[settings]") {
  const TemporaryFolder folder;
  const SettingsFile file = read_settings_file(folder.put(
      "config.json",
      R"( {"format_version":1,"experiment":"e","arm":"a","seed":7,"policy":"fp32","steps":30,"learning_rate":1e-05})"));
  CHECK(file.experiment == "e");
  CHECK(file.arm == "a");
  CHECK(file.seed == 7);
  CHECK(file.settings == Settings{{"policy", "fp32"}, {"steps", "30"}, {"learning_rate", "1e-05"}});
}

TEST_CASE("a config.json of earlier versions is read without other optimizers' options", "[settings]") {
  const TemporaryFolder folder;
  const std::string run =
      R"({"format_version":1,"arm":"a","optimizer":"sgd","momentum":0.5,"beta1":0.9,"epsilon":1e-08})";
  CHECK(read_settings_file(folder.put("config.json", run)).settings ==
        Settings{{"optimizer", "sgd"}, {"momentum", "0.5"}});
  const std::string own =
      R"({"format_version":1,"optimizer":"sgd","beta1":0.9})";  // no run has it: refused when it is resolved
  CHECK(read_settings_file(folder.put("own.json", own)).settings ==
        Settings{{"optimizer", "sgd"}, {"beta1", "0.9"}});
}

TEST_CASE("a run's config.json has keys of its own, which nobody else's has", "[settings]") {
  const TemporaryFolder folder;
  const std::string keys = R"("accumulate":"cublas","reduce":"","gradient_accumulator":"fp16",)"
                           R"("second_execution":"accumulate=cublas"})";
  CHECK(read_settings_file(folder.put("config.json", R"({"format_version":1,"arm":"a",)" + keys)).settings ==
        Settings{{"order", "cublas"},
                 {"sum_order", ""},
                 {"gradient_sum", "fp16"},
                 {"second_execution", "order=cublas"}});
  TrainConfig config;
  const SettingsFile own = read_settings_file(folder.put("own.json", R"({"format_version":1,)" + keys));
  check_says(message_of<InvalidArgument>([&] { change(config, own.settings); }), {"since 0.1; give order"});
}

TEST_CASE("TOML gives settings alone", "[settings]") {
  const TemporaryFolder folder;
  const SettingsFile file =
      read_settings_file(folder.put("settings.toml", "# ours\nsteps = 12\npolicy = \"fp16_mixed\"\n"));
  CHECK(file.settings == Settings{{"steps", "12"}, {"policy", "fp16_mixed"}});
  CHECK_FALSE((file.experiment || file.arm || file.seed));
  const SettingsFile named =
      read_settings_file(folder.put("named.toml", "arm = 'fp32'\nseed = 7\nexperiment = 'e'\n"));
  CHECK((named.arm == "fp32" && named.seed == 7 && named.experiment == "e"));
  CHECK(read_settings_file(folder.put("empty.toml", "")).settings.empty());
  const SettingsFile parts =
      read_settings_file(folder.put("parts.toml", "policy_from = { step = 5, policy = 'bf16_mixed' }\n"));
  CHECK(parts.settings == Settings{{"policy_from", "step=5, policy=bf16_mixed"}});
}

TEST_CASE("a file of settings that is none is refused with its name", "[settings]") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& text) {
    return message_of<InvalidArgument>([&] { (void)read_settings_file(folder.put("file", text)); });
  };
  check_says(message_of<InvalidArgument>([&] { (void)read_settings_file(folder / "missing"); }), {"missing"});
  check_says(refusal("{\"steps\":"), {"file", "JSON"});
  check_says(refusal(R"({"format_version":3})"), {"file", "format 3"});
  check_says(refusal(R"({"format_version":1,"steps":[1]})"), {"file", "'steps'", "neither"});
  for (const char* seed : {"\"x\"", "-1", "1.7", "4294967296", "18446744073709551615", "1e300", "\"\""})
    check_says(refusal(fmt::format(R"({{"format_version":1,"seed":{}}})", seed)),
               {"file: seed", "0 to 4294967295"});
  for (const char* line : {"++", ";x", "steps=[1,", "model=\"cnn_bn", "steps"})
    check_says(refusal(line), {"file: line 1, column "});
  check_says(refusal("[section]\nsteps = 1\n"), {"file", "line 1, column", "section", "a text or a number"});
  check_says(refusal("steps = [1, 2]\n"), {"file: line 1, column 9: steps", "a text or a number"});
}

}  // namespace
}  // namespace halfscope::settings_test
