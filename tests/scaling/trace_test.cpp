// Traces read from records and from files, and records that are no steps of a trace.
#include <halfscope/scaling/trace.hpp>

#include <nlohmann/json.hpp>

#include <limits>
#include <stdexcept>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::trace_test {
namespace {

Json good() {
  return {{"step", 3}, {"scale", 8.0}, {"gradients", {{"finite", true}, {"max_abs", 2.5}}}};
}

/// The good record with another member, of itself or of its gradients.
Json with(const char* key, const Json& value) {
  Json record = good();
  record[key] = value;
  return record;
}
Json with_gradient(const char* key, const Json& value) {
  Json record = good();
  record["gradients"][key] = value;
  return record;
}

TEST_CASE("a record is a step of a trace", "[trace]") {
  const TraceStep step = trace_step(good());
  CHECK(step.step == 3);
  CHECK(step.scale == 8);
  CHECK(step.finite);
  CHECK(step.max_abs == 2.5);
  CHECK_FALSE(step.histogram);
  CHECK(trace_step(with("step", 3.0)).step == 3);
  const TraceStep overflow = trace_step(with("gradients", {{"finite", false}, {"max_abs", nullptr}}));
  CHECK_FALSE(overflow.finite);
  CHECK(overflow.max_abs == 0);
  CHECK_FALSE(trace_step(with_gradient("histogram", nullptr)).histogram);
  const Json histogram{{"first_exponent", 2}, {"counts", {5}}, {"pow2", {1}},
                       {"top", {0}},          {"zeros", 7},    {"negative_zeros", 0},
                       {"infinities", 0},     {"nans", 0},     {"subnormal_carry", {0}}};
  const TraceStep counted = trace_step(with_gradient("histogram", histogram));
  REQUIRE(counted.histogram);
  CHECK(counted.histogram->count(2) == 5);
  CHECK(counted.histogram->zeros() == 7);
  Json wide = histogram;
  wide["format"] = "bf16";
  check_says(message_of<InvalidArgument>([&] { (void)trace_step(with_gradient("histogram", wide)); }),
             {"the histogram is for bf16; loss scalers are replayed for fp16"});
}

TEST_CASE("a record that is no step says what is wrong", "[trace]") {
  const auto refusal = [](const Json& record) {
    return message_of<InvalidArgument>([&] { (void)trace_step(record); });
  };
  check_says(refusal(Json::object()), {"lacks 'step'"});
  check_says(refusal(7), {"expected an object with step, scale and gradients"});
  check_says(refusal({{"step", 1}, {"scale", 1}}), {"lacks 'gradients'", "--set record_gradients"});
  check_says(refusal(with("gradients", 5)), {"lacks 'finite'"});
  check_says(refusal(with("step", "two")), {"step = \"two\"", "an integer of 0 or more"});
  check_says(refusal(with("step", -1)), {"step = -1: expected an integer of 0 or more"});
  check_says(refusal(with("step", 2.5)), {"step = 2.5: expected an integer of 0 or more"});
  check_says(refusal(with("step", 1e300)), {"step = 1e+300: expected an integer of 0 or more"});
  check_says(refusal(with("scale", 0)), {"scale = 0", "1.401e-45 or more"});
  check_says(refusal(with("scale", true)), {"scale = true"});
  for (const double value : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    check_says(refusal(with("scale", value)), {"scale = null: expected a number"});  // as JSON would have it
  }
  check_says(refusal(with_gradient("finite", 1)), {"finite: expected true or false"});
  check_says(refusal(with_gradient("max_abs", -1)), {"max_abs = -1", "0 or more"});
  check_says(refusal(with_gradient("max_abs", nullptr)), {"max_abs = null"});
  check_says(refusal(with_gradient("histogram", Json::object())), {"histogram record: it lacks 'counts'"});
}

TEST_CASE("the steps of a file ascend", "[trace]") {
  const TemporaryFolder folder;
  for (const int next : {8, 9}) {
    const auto path =
        folder.put("trace.jsonl", with("step", 9).dump() + "\n" + with("step", next).dump() + "\n");
    check_says(message_of<InvalidArgument>([&] { read_trace(path, [](const TraceStep&) {}); }),
               {"trace.jsonl: line 2", "after step 9", "ascend"});
  }
}

TEST_CASE("the steps of a file come in order, without its empty lines", "[trace]") {
  const TemporaryFolder folder;
  const auto path = folder.put("trace.jsonl", good().dump() + "\n\n \t\r\n" + with("step", 9).dump());
  std::vector<std::int64_t> steps;
  read_trace(path, [&](const TraceStep& step) { steps.push_back(step.step); });
  CHECK(steps == std::vector<std::int64_t>{3, 9});
  read_trace(folder.put("empty.jsonl", ""), [](const TraceStep&) { FAIL("there is no step"); });
}

TEST_CASE("what is wrong in a file is said with its line", "[trace]") {
  const TemporaryFolder folder;
  const auto ignore = [](const TraceStep&) {};
  const auto refusal = [&](const std::string& line) {
    const auto path = folder.put("trace.jsonl", good().dump() + "\n\n" + line + "\n");
    return message_of<InvalidArgument>([&] { read_trace(path, ignore); });
  };
  check_says(refusal("{\"step\": 2"), {"trace.jsonl: line 3", "JSON"});
  check_says(refusal(with("scale", 0).dump()), {"trace.jsonl: line 3: scale = 0"});
  const auto path = folder.put("trace.jsonl", "\n" + good().dump());
  check_says(message_of<InvalidArgument>(
                 [&] { read_trace(path, [](const TraceStep&) { throw InvalidArgument("not this one"); }); }),
             {"trace.jsonl: line 2: not this one"});
  CHECK_THROWS_AS(read_trace(path, [](const TraceStep&) { throw std::logic_error("of the caller"); }),
                  std::logic_error);
  check_says(message_of<InvalidArgument>([&] { read_trace(folder / "missing", ignore); }), {"missing"});
}

TEST_CASE("a file is a trace or a log, by its first line", "[trace]") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& contents, std::vector<std::int64_t>& steps) {
    return read_trace_or_log(folder.put("train", contents),
                             [&](const TraceStep& step) { steps.push_back(step.step); });
  };
  const std::string log =
      "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8, reducing to 4\nstep=1, skipped=1, lr=[0]\n";
  std::vector<std::int64_t> steps;
  CHECK_FALSE(read("\n " + good().dump() + "\n" + with("step", 9).dump(), steps));
  CHECK(steps == std::vector<std::int64_t>{3, 9});
  for (const char* before : {"", "\r\n", "{\"fp16\": {\"enabled\": true}}\n", "{'loss': 2.5}\n",
                             "a \"scale\" of 1\n", "\xff\xfe\n"}) {
    const auto found = read(before + log, steps);
    REQUIRE(found);
    CHECK(found->skipped == 1);
  }
  CHECK(steps.size() == 2);
  const auto state =
      read(R"({"log_history": [{"step": 1, "grad_norm": 1.5}, {"step": 2, "grad_norm": NaN}]})", steps);
  REQUIRE(state);
  CHECK(state->lost_from() == 2);
  const auto refusal = [&](const std::string& contents) {
    return message_of<InvalidArgument>([&] { (void)read(contents, steps); });
  };
  for (const char* nothing : {"", "\n \n"}) check_says(refusal(nothing), {"train: the file is empty;"});
  for (const char* nothing : {"hello\n", "{}\n", "[1]\n"})
    check_says(refusal(nothing), {"train: no line of it names a step together with"});
  check_says(refusal(good().dump() + "\n" + log), {"train: line 2", "JSON"});
  check_says(refusal("{\"step\": 1"), {"train: line 1", "JSON"});
}

}  // namespace
}  // namespace halfscope::trace_test
