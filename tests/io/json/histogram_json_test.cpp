// Members of a histogram's record: their text, and records that are refused.
#include <halfscope/io/json/histogram_json.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::histogram_json_test {
namespace {

std::string members_of(const std::vector<float>& values) {
  ExponentHistogram histogram;
  histogram.add(values);
  return histogram_members(histogram);
}

Json record_of(const std::vector<float>& values) {
  return parse_json("{" + members_of(values) + "}", "record");
}

TEST_CASE("a histogram's record has its members in one order", "[records]") {
  CHECK(members_of({1.0f, 1.5f, -4.0f, 0.0f, -0.0f, INFINITY, NAN, 0x1.fffp2f}) ==
        R"("first_exponent":0,"counts":[2,0,2],"pow2":[1,0,1],"top":[0,0,1],"subnormal_carry":[0,0,1],)"
        R"("zeros":2,"negative_zeros":1,"infinities":1,"nans":1)");
  CHECK(members_of({}) == R"("first_exponent":127,"counts":[0],"pow2":[0],"top":[0],"subnormal_carry":[0],)"
                          R"("zeros":0,"negative_zeros":0,"infinities":0,"nans":0)");
}

TEST_CASE("a record that is no histogram is refused with what is wrong", "[records]") {
  const Json good = record_of({1.0f, 4.0f});
  const auto refusal = [](const Json& record) {
    return message_of<InvalidArgument>([&] { static_cast<void>(histogram_of(record)); });
  };
  Json lacks_zeros = good;
  lacks_zeros.erase("zeros");
  check_says(refusal(lacks_zeros), {"it lacks 'zeros'"});
  Json uneven = good;
  uneven["top"].push_back(1);
  check_says(refusal(uneven), {"top has 4 binades, counts has 3"});
  for (const Json& far : {Json(126), Json(-150), Json(INT64_MAX), Json(INT64_MIN)}) {
    Json moved = good;
    moved["first_exponent"] = far;
    check_says(refusal(moved), {"outside -149 to 127"});
  }
  const std::vector<std::tuple<const char*, Json, const char*>> wrong{
      {"zeros", "many", "zeros = \"many\"; expected an integer"},
      {"zeros", 0.5, "zeros = 0.5; expected an integer"},
      {"zeros", 1e300, "expected an integer"},
      {"zeros", UINT64_MAX, "zeros = 18446744073709551615; expected an integer"},
      {"nans", -1, "nans = -1 is negative"},
      {"max_abs", "big", "max_abs = \"big\"; expected a number"},
      {"pow2", nullptr, "pow2 = null; expected a list of integers"},
      {"counts", {1, "x", 1}, "expected a list of integers"},
      {"counts", {1, -2, 1}, "counts: -2 of -2"},
      {"top", {0, 0, 2}, "top: 2 of 1"}};
  for (const auto& [key, value, says] : wrong) {
    Json changed = good;
    changed[key] = value;
    check_says(refusal(changed), {says});
  }
  for (const Json& nothing : {Json(), Json(3), Json::array(), Json::object()})
    check_says(refusal(nothing), {"it lacks 'counts'"});
  Json as_floats = good;
  as_floats["counts"] = {1.0, 0.0, 1.0};
  CHECK(histogram_of(as_floats) == histogram_of(good));
}

TEST_CASE("a record is of FP16 unless it names another format", "[records]") {
  ExponentHistogram narrow(fp8_e4m3);
  narrow.add(std::vector<float>{1.0f, 1.94f});
  Json record = parse_json("{" + histogram_members(narrow) + "}", "record");
  CHECK(histogram_of(record).format() == fp16);
  record["format"] = "fp8_e4m3";
  CHECK(histogram_of(record).format() == fp8_e4m3);
  CHECK(histogram_of(record).binade(0) == narrow.binade(0));
  for (const Json& wrong : {Json("fp61"), Json(16)}) {
    record["format"] = wrong;
    CHECK_THROWS_AS(histogram_of(record), InvalidArgument);
  }
}

TEST_CASE("counts whose sum is no integer of 64 bits are refused", "[records]") {
  const std::int64_t many = std::int64_t{1} << 62;
  Json record{{"first_exponent", 0},
              {"counts", {many, many, many}},
              {"pow2", {0, 0, 0}},
              {"top", {0, 0, 0}},
              {"subnormal_carry", {0, 0, 0}},
              {"zeros", 0},
              {"negative_zeros", 0},
              {"infinities", 0},
              {"nans", 0}};
  check_says(message_of<InvalidArgument>([&] { static_cast<void>(histogram_of(record)); }),
             {"more elements than 64 bits"});
  record["counts"] = {many, 1, 1};
  CHECK(histogram_of(record).elements() == many + 2);
}

TEST_CASE("a record's max_abs is read when it has one", "[records]") {
  Json record = record_of({1.0f, -4.5f});
  CHECK(histogram_of(record).max_abs() == 0);
  record["max_abs"] = 4.5;
  CHECK(histogram_of(record).max_abs() == 4.5f);
}

}  // namespace
}  // namespace halfscope::histogram_json_test
