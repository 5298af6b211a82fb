// Tables: columns under each other whatever the names, what a narrow terminal leaves out, and the other
// formats.
#include "experiments/table/table.hpp"

#include "tests/support/catch.hpp"

namespace halfscope::table_test {
namespace {

Table sample() {
  return {
      {{"tensor", "tensor"}, {"elements", "elements", 2}, {"flushed", "flushed"}, {"window", "window", 1}},
      {{"layers.0.weight", count_cell(1000), {"2.00 %", 0.02}, "2^-3 .. 2^4"},
       {"a|b_c, \"d\"", count_cell(7), {"-", std::monostate{}}, "none"}}};
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    widest = std::max(widest, display_width(text.substr(at, end - at)));
    at = end + 1;
  }
  return widest;
}

TEST_CASE("a column is as wide as what it shows, not as its bytes", "[table]") {
  CHECK(display_width("gr\xc3\xb6\xc3\x9f"
                      "e") == 5);
  CHECK(display_width("\xe6\xa8\xa9\xe9\x87\x8d") == 4);  // wide characters
  CHECK(display_width("e\xcc\x81") == 1);                 // e and an accent
  const Table table{{{"n", "n"}, {"v", "v"}}, {{"\xe6\xa8\xa9", "1"}, {"ab", "22"}}};
  CHECK(write_table(table, {}) == "  n     v\n  \xe6\xa8\xa9    1\n  ab   22\n");
}

TEST_CASE("a table that fits stays whole", "[table]") {
  const std::string text = write_table(sample(), {});
  CHECK(text ==
        "  tensor            elements  flushed       window\n"
        "  layers.0.weight       1000   2.00 %  2^-3 .. 2^4\n"
        "  a|b_c, \"d\"               7        -         none\n");
  CHECK(write_table(sample(), {.width = widest_line(text) + 1}) == text);
}

TEST_CASE("a narrow terminal takes columns away, and the table says which", "[table]") {
  for (std::size_t width = 30; width < 60; ++width) {
    CAPTURE(width);
    CHECK(widest_line(write_table(sample(), {.width = width})) <= width);
  }
  const std::string narrow = write_table(sample(), {.width = 45});
  CHECK(narrow.find("elements") == narrow.rfind("elements"));
  CHECK(narrow.find("left out, the terminal is too narrow:") != std::string::npos);
  CHECK(narrow.find("window") < narrow.find("left out"));
  const std::string narrowest = write_table(sample(), {.width = 26});
  CHECK(narrowest.find("elements,") > narrowest.find("left out"));
  CHECK(narrowest.find("window") > narrowest.find("left out"));
}

TEST_CASE("long names lose their middle", "[table]") {
  CHECK(shortened("layers.0.attention.weight", 25) == "layers.0.attention.weight");
  CHECK(shortened("layers.0.attention.weight", 15) == "layers...weight");
  CHECK(shortened("\xe6\xa8\xa9\xe9\x87\x8d\xe6\xa8\xa9\xe9\x87\x8d", 7) == "\xe6\xa8\xa9...\xe9\x87\x8d");
  CHECK(shortened("abcdef", 2) == "..");
}

TEST_CASE("sentences are wrapped at blanks", "[table]") {
  CHECK(wrapped("one two three four", 9, "  ") == "one two\n  three\n  four");
  CHECK(wrapped("one two", any_width) == "one two");
  CHECK(wrapped("    one two", 8, "  ") == "    one\n  two");
  CHECK(wrapped("unbreakable word", 4) == "unbreakable\nword");
}

TEST_CASE("CSV has keys, numbers and quotes", "[table]") {
  CHECK(write_table(sample(), {TableFormat::csv}) ==
        "tensor,elements,flushed,window\n"
        "layers.0.weight,1000,0.02,2^-3 .. 2^4\n"
        "\"a|b_c, \"\"d\"\"\",7,,none\n");
}

TEST_CASE("CSV has no field that a spreadsheet calculates", "[table]") {
  const auto field = [](Cell cell) {
    const Table table{{{"n", "n"}}, {{std::move(cell)}}};
    return write_table(table, {TableFormat::csv}).substr(2);
  };
  for (const std::string text : {"=cmd()", "+1+2", "-x", "@SUM(A1)", "\t=1", "\r=1", "=\"a\"", "=1,2"}) {
    INFO(text);
    std::string quoted;
    for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
    CHECK(field(text) == "\"'" + quoted + "\"\n");
  }
  for (const char* text : {"-1.5", "-1e-30", "a=b", "layers.-1", "-", ""})
    CHECK(field(text) == text + std::string("\n"));
  CHECK(field({"-3", -3.0}) == "-3\n");
  CHECK(field({"-3", std::int64_t{-3}}) == "-3\n");
}

TEST_CASE("Markdown and LaTeX escape what they would act on", "[table]") {
  CHECK(write_table(sample(), {TableFormat::markdown}) ==
        "| tensor | elements | flushed | window |\n"
        "|---|---:|---:|---:|\n"
        "| layers.0.weight | 1000 | 2.00 % | 2^-3 .. 2^4 |\n"
        "| a\\|b\\_c, \"d\" | 7 | - | none |\n");
  CHECK(write_table(sample(), {TableFormat::latex}) ==
        "\\begin{tabular}{lrrr}\n"
        "tensor & elements & flushed & window \\\\\n\\hline\n"
        "layers.0.weight & 1000 & 2.00 \\% & 2\\textasciicircum{}-3 .. 2\\textasciicircum{}4 \\\\\n"
        "a|b\\_c, \"d\" & 7 & - & none \\\\\n"
        "\\end{tabular}\n");
}

TEST_CASE("JSON has a line per row", "[table]") {
  CHECK(write_table(sample(), {TableFormat::json}) ==
        "{\"tensor\":\"layers.0.weight\",\"elements\":1000,\"flushed\":0.02,\"window\":\"2^-3 .. 2^4\"}\n"
        "{\"tensor\":\"a|b_c, \\\"d\\\"\",\"elements\":7,\"flushed\":null,\"window\":\"none\"}\n");
}

}  // namespace
}  // namespace halfscope::table_test
