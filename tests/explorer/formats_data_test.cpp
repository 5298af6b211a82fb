// The explorer of formats: counts of the library alone, JSON that no name breaks out of, HTML that runs no
// name.
#include <halfscope/explorer/formats_data.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include <halfscope/io/json/json_lines.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::formats_data_test {
namespace {

constexpr const char* hostile = "</script><b>\"&'\x1b[31m@data@\xff";

std::vector<TensorFormat> formats_of(const std::vector<std::string>& names) {
  std::vector<TensorFormat> formats;
  for (const std::string& name : names) formats.push_back(parse_tensor_format(name));
  return formats;
}

std::vector<std::string> names_of(const std::vector<TensorFormat>& formats) {
  std::vector<std::string> names;
  for (const TensorFormat& format : formats) names.push_back(to_string(format));
  return names;
}

/// 32 numbers, of which floor clips one, and a block of zeros.
std::vector<float> two_blocks() {
  std::vector<float> values(64, 0.0f);
  for (std::size_t i = 0; i < 32; ++i) values[i] = 1.0f + static_cast<float>(i) / 64;
  values[31] = 7.5f;
  values[0] = 0x1p-12f;
  return values;
}

FormatsData data_of(const std::string& name) {
  FormatsData data(formats_of({"mxfp4", "mxfp4/floor"}));
  const std::vector<float> values = two_blocks();
  std::vector<FormatCounts> counts;
  for (const TensorFormat& format : data.formats())
    counts.push_back({count_blocks(values, {1, 64}, std::get<BlockFormat>(format)), {}});
  data.add({name, {1, 64}, counts});
  data.advise({"Use " + name + ".", "Because of <b>."});
  return data;
}

Json json_of(const FormatsData& data) {
  return parse_json(formats_explorer_json(data), "formats_explorer_json");
}

TEST_CASE("formats in blocks are counted under every rule, each once", "[explorer]") {
  const auto all = names_of(with_all_rules(formats_of({"mxfp4/floor", "fp8_e4m3", "mxfp4", "mxfp4/floor"})));
  CHECK(all == std::vector<std::string>{"mxfp4/floor", "fp8_e4m3", "mxfp4", "mxfp4/ceil", "mxfp4/even",
                                        "mxfp4/nearest"});
  const auto tried = names_of(with_all_rules(formats_of({"nvfp4/four_over_six_mse_256"})));
  const auto is_four_over_six = [](const std::string& name) { return name.find("four") < name.size(); };
  CHECK(std::ranges::count_if(tried, is_four_over_six) == 1);
  CHECK(std::ranges::count(tried, "nvfp4") == 1);
  CHECK(std::ranges::count(tried, "nvfp4/torchao") == 1);
  for (const NamedBlockFormat& entry : block_formats) {
    for (const std::string& name : names_of(with_all_rules(std::vector<TensorFormat>{entry.format})))
      CHECK(to_string(parse_block_format(name)) == name);
  }
}

TEST_CASE("cells have the library's counts, codes of scales and exponents", "[explorer]") {
  const Json json = json_of(data_of("w"));
  const auto count = [&](std::size_t format, const char* name) {
    const auto& names = json["counters"];
    const auto place = std::find(names.begin(), names.end(), name) - names.begin();
    return json["tensors"][0]["cells"][format][0][static_cast<std::size_t>(place)].get<int>();
  };
  for (const std::size_t format : {0u, 1u}) {
    CHECK(count(format, "elements") == 64);
    CHECK(count(format, "zeros") == 32);
    CHECK(count(format, "flushed") == 1);
    CHECK(count(format, "blocks") == 2);
    CHECK(count(format, "zero_blocks") == 1);
  }
  CHECK(count(0, "overflow") == 0);
  CHECK(count(1, "overflow") == 1);
  CHECK(count(1, "blocks_at_risk") == 1);
  const auto& cells = json["tensors"][0]["cells"];
  CHECK(cells[0][3] == Json({0, 1, 128, 1}));  // 7.5 / 6 up to 2
  CHECK(cells[1][3] == Json({0, 1, 127, 1}));
  CHECK(cells[0][4] == Json({-13, 1, -1, 30, 1, 1}));  // over 2
  CHECK(cells[1][4] == Json({-12, 1, 0, 30, 2, 1}));
  CHECK(json["sums"][1] == cells[1]);
  CHECK(json["scales"]["e8m0"]["labels"][128] == "2^1");
  CHECK(json["scales"]["e8m0"]["labels"][255] == "NaN");
  CHECK(json["formats"][0]["bits"] == 4.25);
  CHECK(json["formats"][1]["family"] == "mxfp4");
  CHECK(json["formats"][1]["rule"] == "floor");
}

TEST_CASE("labels of scales are their numbers", "[explorer]") {
  const Json scales = json_of(FormatsData(formats_of({"nvfp4", "fp8_1x128"})))["scales"];
  CHECK(scales["ue4m3"]["labels"][0x38] == "1");
  CHECK(scales["ue4m3"]["labels"][1] == "0.001953125");
  CHECK(scales["ue4m3"]["labels"][0x7f] == "NaN");
  CHECK(scales["fp32"]["labels"][127] == "2^0");
  CHECK(scales["fp32"]["labels"][0] == "0 or subnormal");
}

TEST_CASE("errors that are lost or exact are told apart", "[explorer]") {
  FormatsData data(formats_of({"fp8_1x128/deepseek", "fp8_1x128"}));
  const std::vector<float> zeros(128, 0.0f);
  std::vector<FormatCounts> counts;
  for (const TensorFormat& format : data.formats())
    counts.push_back({count_blocks(zeros, {1, 128}, std::get<BlockFormat>(format)), {}});
  data.add({"zeros", {1, 128}, counts});
  const Json json = json_of(data);
  CHECK(json["tensors"][0]["cells"][0][1].is_null());  // 0 / 0
  CHECK(json["tensors"][0]["cells"][1][1] == 0);
  CHECK(json["tensors"][0]["cells"][1][2].is_null());
  const std::string page = formats_page("zeros", data);
  CHECK(page.find("<td>fp8_1x128/deepseek</td><td>lost</td>") != std::string::npos);
  CHECK(page.find("<td>fp8_1x128</td><td>exact</td>") != std::string::npos);
}

TEST_CASE("no name ends the script element or is HTML", "[explorer]") {
  const FormatsData data = data_of(hostile);
  CHECK(formats_explorer_json(data).find('<') == std::string::npos);
  const std::string page = formats_page(hostile, data);
  CHECK(page.find("<b>\"&'") == std::string::npos);
  CHECK(page.find("&lt;/script&gt;&lt;b&gt;&quot;&amp;'\\x1b[31m@data@\\xff") != std::string::npos);
  CHECK(page.find("Because of &lt;b&gt;.") != std::string::npos);
  for (const char* key : {"@title@", "@style@", "@script@", "@answer@", "@table@", "@legend@"})
    CHECK(page.find(key) == std::string::npos);
  CHECK(page.find("https://") == std::string::npos);
}

TEST_CASE("formats that are missing are refused", "[explorer]") {
  FormatsData data(formats_of({"mxfp4"}));
  CHECK(message_of<InvalidArgument>([&] {
          data.add({"w", {1, 1}, {}});
        }) == "'w' was counted for 0 formats, not for 1");
  CHECK(message_of<InvalidArgument>([&] { data.start_at(parse_tensor_format("nvfp4")); }) ==
        "'nvfp4' is none of the explorer's formats");
  CHECK(message_of<InvalidArgument>([] { FormatsData(std::vector<TensorFormat>{}); }) ==
        "the explorer of formats needs a format");
  CHECK(formats_answer(data).empty());
}

}  // namespace
}  // namespace halfscope::formats_data_test
