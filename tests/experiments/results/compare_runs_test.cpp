// Two folders of results: the first record that differs, settings, results, and runs that only one has.
#include "experiments/results/compare_runs.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::compare_runs_test {
namespace {

/// A run with two records.
void put(const TemporaryFolder& folder, const std::string& run,
         const std::string& second_record = R"({"step":2,"loss":0.5})", const std::string& steps = "2",
         const std::string& metric = "50.0") {
  folder.put(run + "/config.json",
             R"({"steps":)" + steps + R"(,"data":")" + folder.path().string() + R"("})");
  folder.put(run + "/metrics.jsonl", R"({"step":1,"loss":1.5,"tensors":[{"flushed":3}]})"
                                     "\n" +
                                         second_record + "\n");
  folder.put(run + "/summary.json", R"({"metric":)" + metric + R"(,"seconds":)" + std::to_string(run.size()) +
                                        R"(,"gradients":{"flushed":)" + steps + "}}");
}

TEST_CASE("runs that differ in nothing but the machine are the same", "[compare_runs]") {
  const TemporaryFolder one, other;
  put(one, "e/a/seed0");
  put(other, "e/a/seed0");
  other.put("e/a/seed0/metrics.jsonl", R"({"loss":1.5,"step":1,"tensors":[{"flushed":3}]})"
                                       "\n"
                                       R"({"step":2, "loss":0.50})"
                                       "\n");
  other.put("e/a/seed0/environment.json", R"({"cpu":"another"})");
  const ResultsComparison comparison = compare_results(one.path(), other.path());
  REQUIRE(comparison.runs.size() == 1);
  CHECK(comparison.runs[0].run == "e/a/seed0");
  CHECK(comparison.runs[0].is_same());
  CHECK((comparison.only_first.empty() && comparison.only_second.empty()));
}

TEST_CASE("an account of memory is compared with another, and not with an earlier version's silence",
          "[compare_runs]") {
  const TemporaryFolder silent, small, large;
  for (const TemporaryFolder* folder : {&silent, &small, &large}) put(*folder, "a/seed0");
  small.put("a/seed0/summary.json",
            R"({"metric":50.0,"gradients":{"flushed":2},"memory":{"peak_step_bytes":1}})");
  large.put("a/seed0/summary.json",
            R"({"metric":50.0,"gradients":{"flushed":2},"memory":{"peak_step_bytes":2}})");
  CHECK(compare_results(silent.path(), small.path()).runs.at(0).is_same());
  CHECK(compare_results(small.path(), silent.path()).runs.at(0).is_same());
  const RunComparison run = compare_results(small.path(), large.path()).runs.at(0);
  REQUIRE(run.results.size() == 1);
  CHECK(run.results[0].key == "memory.peak_step_bytes");
}

TEST_CASE("the first record that differs is named by file, line, step and key", "[compare_runs]") {
  const TemporaryFolder one, other;
  put(one, "a/seed0");
  put(other, "a/seed0", R"({"step":2,"loss":0.25})", "3", "null");
  put(one, "a/seed1");
  put(other, "b/seed1");
  const ResultsComparison comparison = compare_results(one.path(), other.path());
  REQUIRE(comparison.runs.size() == 1);
  const RunComparison& run = comparison.runs[0];
  CHECK_FALSE(run.is_same());
  REQUIRE(run.records);
  CHECK((run.records->file == "metrics.jsonl" && run.records->line == 2 && run.records->step == 2));
  CHECK((run.records->value.key == "loss" && run.records->value.first == 0.5 &&
         run.records->value.second == 0.25));
  REQUIRE(run.settings.size() == 1);
  CHECK((run.settings[0].key == "steps" && run.settings[0].first == 2 && run.settings[0].second == 3));
  REQUIRE(run.results.size() == 2);
  CHECK((run.results[0].key == "metric" && run.results[0].second.is_null()));
  CHECK((run.results[1].key == "gradients.flushed" && run.results[1].first == 2));
  CHECK(comparison.only_first == std::vector<std::string>{"a/seed1"});
  CHECK(comparison.only_second == std::vector<std::string>{"b/seed1"});
}

TEST_CASE("a run that has lost its settings is compared with what it still has", "[compare_runs]") {
  const TemporaryFolder one, other;
  put(one, "a/seed0");
  put(other, "a/seed0");
  std::filesystem::remove(other / "a/seed0/config.json");
  const ResultsComparison comparison = compare_results(one.path(), other.path());
  CHECK((comparison.only_first.empty() && comparison.only_second.empty()));
  REQUIRE(comparison.runs.size() == 1);
  CHECK((!comparison.runs[0].records && comparison.runs[0].results.empty()));
  REQUIRE(comparison.runs[0].settings.size() == 1);
  const ValueDifference& difference = comparison.runs[0].settings[0];
  CHECK((difference.key == "file config.json" && difference.second.is_null()));
}

TEST_CASE("a value is found below objects and arrays", "[compare_runs]") {
  const auto key_of = [](const char* first, const char* second) {
    const auto found = first_difference(parse_json(first, "first"), parse_json(second, "second"));
    return found ? found->key : "none";
  };
  CHECK(key_of(R"({"a":[{"b":1},{"b":2}]})", R"({"a":[{"b":1},{"b":3}]})") == "a[1].b");
  CHECK(key_of(R"({"a":[1,2]})", R"({"a":[1]})") == "a[1]");
  CHECK(key_of(R"({"a":[1]})", R"({"a":[1,2]})") == "a[1]");
  CHECK(key_of(R"({"a":1})", R"({"a":1,"c":2})") == "c");
  CHECK(key_of(R"({"a":1,"c":2})", R"({"a":1})") == "c");
  CHECK(key_of("[[1],[2]]", "[[1],[3]]") == "[1][0]");
  CHECK(key_of("1", "2").empty());
  CHECK(key_of("{}", "{}") == "none");
}

TEST_CASE("a run that is cut short differs at its end", "[compare_runs]") {
  const TemporaryFolder one, other;
  put(one, "seed0");
  put(other, "seed0");
  other.put("seed0/metrics.jsonl", R"({"step":1,"loss":1.5,"tensors":[{"flushed":3}]})"
                                   "\n");
  const ResultsComparison comparison = compare_results(one.path(), other.path());
  REQUIRE(comparison.runs[0].records);
  CHECK((comparison.runs[0].records->line == 2 && comparison.runs[0].records->step == 2));
  CHECK(comparison.runs[0].records->value.second.is_null());
}

TEST_CASE("folders without runs and files that are no JSON are refused", "[compare_runs]") {
  const TemporaryFolder one, other;
  put(one, "seed0");
  const auto refusal = [&] {
    return message_of<InvalidArgument>([&] { (void)compare_results(one.path(), other.path()); });
  };
  check_says(refusal(), {other.path().string(), "no run"});
  check_says(message_of<InvalidArgument>([&] { (void)compare_results(one / "none", one.path()); }),
             {"none", "no such folder"});
  put(other, "seed0", "{\"step\":");
  check_says(refusal(), {"metrics.jsonl: line 2", "JSON"});
  other.put("seed0/summary.json", "[]");
  put(other, "seed0");
  other.put("seed0/summary.json", "[]");
  check_says(refusal(), {"summary.json", "object"});
}

}  // namespace
}  // namespace halfscope::compare_runs_test
