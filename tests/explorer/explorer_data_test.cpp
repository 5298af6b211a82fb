// The explorer's data and page: counts per binade and step, JSON that no name breaks out of, HTML that runs
// no name.
#include <halfscope/explorer/explorer_data.hpp>

#include <nlohmann/json.hpp>

#include <halfscope/format/quantizer.hpp>
#include <halfscope/io/json/json_lines.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::explorer_data_test {
namespace {

constexpr const char* hostile = "</script><b>\"&'\x1b[31m@data@\xff";

ExponentHistogram histogram_of(const std::vector<float>& values, const FloatFormat& format = fp16) {
  ExponentHistogram histogram(format);
  histogram.add(values);
  return histogram;
}

Json json_of(const ExplorerData& data) {
  return parse_json(explorer_json(data), "explorer_json");
}

ExplorerData advised(const std::string& name) {
  ExplorerData data(fp16);
  const ExponentHistogram histogram = histogram_of({0x1p-20f, 0x1p-3f});
  data.add(name, "", 0, histogram);
  const std::vector<TensorFit> fits{fit_tensor(name, histogram)};
  data.advise(fits, advise(fits, fp16));
  return data;
}

TEST_CASE("totals add the counts of each binade, moved by the shift", "[explorer]") {
  BinadeTotals totals;
  totals.add(histogram_of({0x1p-3f, 0x1.8p-3f, 0.0f, -0.0f, INFINITY}));
  totals.add(histogram_of({0x1p-1f, NAN}), -2);
  CHECK(totals.zeros == 2);
  CHECK(totals.nonfinite == 2);
  REQUIRE(totals.binades.size() == 1);
  CHECK(totals.binades.at(-3).all == 3);
  CHECK(totals.binades.at(-3).at_power_of_two == 2);
}

TEST_CASE("a shift leads beyond the exponents of floats", "[explorer]") {
  BinadeTotals totals;
  totals.add(histogram_of({0x1p-149f}), -32);
  CHECK(totals.binades.begin()->first == -181);
}

TEST_CASE("cells are by tensor and step, null where nothing was recorded", "[explorer]") {
  ExplorerData data(fp16);
  data.add("a", "weight_gradient", 10, histogram_of({1.0f, 5.0f}));
  data.add("a", "weight_gradient", 10, histogram_of({1.0f}));
  data.add("b", "activation_gradient", 20, histogram_of({0.0f}));
  const Json json = json_of(data);
  CHECK(json["steps"] == Json({10, 20}));
  CHECK(json["tensors"][0]["cells"] == Json::parse("[[0, 0, 0, [2, 0, 1], [0, 2], [], []], null]"));
  CHECK(json["tensors"][1]["cells"] == Json::parse("[null, [1, 0, 0, [], [], [], []]]"));
  CHECK(json["tensors"][1]["role"] == "activation_gradient");
}

TEST_CASE("counts of another format are refused", "[explorer]") {
  ExplorerData data(fp16);
  const std::string message =
      message_of<InvalidArgument>([&] { data.add("a", "", 0, histogram_of({1.0f}, bf16)); });
  CHECK(message == "'a' was counted for bf16, not for fp16");
}

TEST_CASE("the format of the counts is always offered, and no format twice", "[explorer]") {
  for (const FloatFormat& format : {fp16, bf16, fp8_e5m2, parse_format("e3m4")}) {
    const Json json = json_of(ExplorerData(format));
    std::vector<std::string> names;
    for (const Json& entry : json["formats"]) names.push_back(entry["name"]);
    CHECK(std::ranges::count(names, to_string(format)) == 1);
    std::ranges::sort(names);
    CHECK(std::ranges::adjacent_find(names) == names.end());
  }
}

TEST_CASE("no name ends the script element that holds the data", "[explorer]") {
  ExplorerData data = advised(hostile);
  data.mark(hostile, 3);
  const std::string json = explorer_json(data);
  CHECK(json.find('<') == std::string::npos);
  CHECK(json_of(data)["tensors"][0]["name"].get<std::string>().starts_with("</script><b>\"&'\x1b[31m@data@"));
}

TEST_CASE("the page has names as text, and every part filled in", "[explorer]") {
  const std::string page = explorer_page(hostile, advised(hostile));
  CHECK(page.find("<b>\"&'") == std::string::npos);
  CHECK(page.find("&lt;/script&gt;&lt;b&gt;&quot;&amp;'\\x1b[31m@data@\\xff") != std::string::npos);
  for (const char* key : {"@title@", "@style@", "@script@", "@answer@", "@table@", "@legend@"})
    CHECK(page.find(key) == std::string::npos);
  CHECK(page.find("http://") == page.find("http://www.w3.org/2000/svg"));  // a name, no address
  CHECK(page.find("https://") == std::string::npos);
}

TEST_CASE("the answer names the scale and the tensors that decide", "[explorer]") {
  ExplorerData data(fp16);
  std::vector<TensorFit> fits;
  for (const auto& [name, value] : {std::pair{"small", 0x1p-28f}, std::pair{"large", 0x1p2f}}) {
    const ExponentHistogram histogram = histogram_of({value});
    data.add(name, "", 0, histogram);
    fits.push_back(fit_tensor(name, histogram));
  }
  data.advise(fits, advise(fits, fp16));
  const std::string answer = explorer_answer(data);
  CHECK(answer.find("Use <b>S = 2^10</b>") != std::string::npos);
  CHECK(answer.find("underflow harms <b>small</b> first") != std::string::npos);
  CHECK(answer.find("Overflow beyond 2^13: <b>large</b> first") != std::string::npos);
  CHECK(answer.find(".</p>") != std::string::npos);
  CHECK(answer.find("..</p>") == std::string::npos);
  CHECK(explorer_answer(ExplorerData(fp16)).empty());
}

}  // namespace
}  // namespace halfscope::explorer_data_test
