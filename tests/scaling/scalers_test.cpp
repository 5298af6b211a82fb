// Every loss scaler against its published rule: traces, defaults, floors and ceilings, options.
#include <fmt/format.h>
#include <halfscope/core/random.hpp>
#include <halfscope/scaling/scalers.hpp>

#include <cmath>
#include <string_view>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::scalers_test {
namespace {

/// A step of gradients whose largest is `max_abs` without a scale, seen at the scaler's: it overflows where
/// FP16 does. `histogram` is what the step lends its gradients to.
StepGradients gradients_at(double scale, double max_abs, ExponentHistogram& histogram) {
  const auto scaled = static_cast<float>(max_abs * scale);
  const std::vector<float> values(16, scaled);
  histogram = {};
  histogram.add(values);
  return {.finite = scaled < 65520, .max_abs = scaled, .histogram = &histogram};
}

std::string log2_trace(LossScaler& scaler, std::string_view overflows) {
  std::string trace;
  for (const char overflow : overflows) {
    CHECK(scaler.update({.finite = overflow == '0'}) == (overflow == '1'));
    trace += fmt::format("{}{}", trace.empty() ? "" : " ", std::log2(scaler.scale()));
  }
  return trace;
}

// Computed from the published sources, outside this project.
TEST_CASE("scalers follow their published traces", "[scaling][golden]") {
  constexpr std::string_view overflows = "1010100001110000";
  struct Row {
    std::string scaler;
    std::string_view trace;
    bool hysteresis = true;
  };
  const std::vector<Row> rows{{"dynamic", "15 15 14 14 13 13 13 13 14 13 12 11 11 11 11 12", false},
                              {"apex_amp", "15 15 14 14 13 13 13 13 14 13 12 11 11 11 11 12", false},
                              {"apex_fp16_utils", "15 15 14 14 13 13 13 13 14 13 12 11 11 11 11 12", false},
                              {"tensorflow", "15 15 14 14 13 13 13 13 14 13 12 11 11 11 11 12", false},
                              {"fairseq", "15 15 14 14 13 13 13 13 14 13 12 11 11 11 11 12", false},
                              {"megatron", "16 16 15 15 14 14 14 14 15 15 14 13 13 13 13 14"},
                              {"apex_hysteresis", "16 16 16 16 16 16 16 16 17 17 16 15 15 15 15 16"},
                              {"deepspeed", "16 16 15 15 14 14 14 14 14 13 12 11 11 11 11 11"},
                              {"deepspeed_consecutive", "16 16 16 16 16 16 16 16 16 16 15 14 14 14 14 14"}};
  for (const Row& row : rows) {
    INFO(row.scaler);
    ScalerSettings settings{{"initial_scale", 65536}, {"growth_interval", 4}};
    if (row.hysteresis) settings["hysteresis"] = 2;
    CHECK(log2_trace(*make_scaler(row.scaler, settings), overflows) == row.trace);
  }
}

/// Good steps until the scale next grows; gives up after 5000.
int steps_to_growth(LossScaler& scaler) {
  const double before = scaler.scale();
  for (int steps = 1; steps <= 5000; ++steps) {
    (void)scaler.update({});
    if (scaler.scale() > before) return steps;
  }
  return 0;
}

TEST_CASE("scalers have their published constants", "[scaling][golden]") {
  struct Row {
    std::string scaler;
    int initial_log2, first, after_overflow, next;
  };
  const std::vector<Row> rows{
      {"dynamic", 16, 2000, 2000, 2000},         {"apex_amp", 16, 2000, 2000, 2000},
      {"apex_fp16_utils", 32, 1000, 1000, 1000}, {"tensorflow", 15, 2000, 2000, 2000},
      {"megatron", 32, 1000, 1000, 1000},        {"apex_hysteresis", 16, 2000, 2000, 2000},
      {"deepspeed", 16, 1001, 1001, 1000},       {"deepspeed_consecutive", 16, 1001, 1001, 1000},
      {"fairseq", 15, 2000, 2000, 2000}};
  for (const Row& row : rows) {
    INFO(row.scaler);
    const auto scaler = make_scaler(row.scaler);
    CHECK(scaler->scale() == std::ldexp(1.0, row.initial_log2));
    CHECK(steps_to_growth(*scaler) == row.first);
    for (int i = 0; i < 2; ++i) CHECK(scaler->update({.finite = false}));
    CHECK(steps_to_growth(*scaler) == row.after_overflow);
    CHECK(steps_to_growth(*scaler) == row.next);
  }
}

TEST_CASE("floors and ceilings are the published ones", "[scaling][golden]") {
  struct Row {
    std::string scaler;
    double floor, ceiling;  // 0: it reaches zero; the ceiling after 300 growths from 2^10
  };
  constexpr double of_fp32 = 0x1p127;
  const std::vector<Row> rows{{"dynamic", 0, of_fp32},
                              {"apex_amp", 0, 0x1p24},
                              {"apex_fp16_utils", 1, of_fp32},
                              {"tensorflow", 1, of_fp32},
                              {"openseq2seq_backoff", 1, 0x1p14},
                              {"megatron", 1, of_fp32},
                              {"apex_hysteresis", 0, of_fp32}};
  for (const Row& row : rows) {
    INFO(row.scaler);
    const auto falling = make_scaler(row.scaler, {{"initial_scale", 1024}});
    for (int i = 0; i < 400; ++i) (void)falling->update({.finite = false});
    CHECK(falling->scale() == row.floor);
    const auto rising = make_scaler(row.scaler, {{"initial_scale", 1024}, {"growth_interval", 1}});
    for (int i = 0; i < 300; ++i) (void)rising->update({});
    CHECK(rising->scale() == row.ceiling);
  }
}

TEST_CASE("scalers that give up say so", "[scaling]") {
  struct Row {
    std::string scaler;
    int survives;  // overflows from a scale of 4
    ScalerSettings settings;
    std::vector<std::string> says;
  };
  // DeepSpeed forgives one and then halves 4 to 1 in two; fairseq goes on until 1e-4 is reached.
  const std::vector<Row> rows{
      {"deepspeed", 3, {}, {"deepspeed", "minimum of 1"}},
      {"deepspeed_consecutive", 3, {}, {"minimum of 1"}},
      {"fairseq", 15, {}, {"fairseq", "0.0001", "probably exploding"}},
      {"headroom", 10, {}, {"10 steps in a row", "not a scaling problem", "floor"}},
  };
  for (const Row& row : rows) {
    INFO(row.scaler);
    ScalerSettings settings = row.settings;
    settings["initial_scale"] = 4;
    const auto scaler = make_scaler(row.scaler, settings);
    for (int i = 0; i < row.survives; ++i) CHECK(scaler->update({.finite = false}));
    check_says(message_of<RuntimeFailure>([&] { (void)scaler->update({.finite = false}); }), row.says);
  }
}

TEST_CASE("a scaler restored half-way goes on as one that never stopped", "[scaling]") {
  for (const ScalerEntry& entry : scaler_table) {
    INFO(entry.name);
    ScalerSettings settings;
    for (const ScalerOption& option : entry.options) {
      if (option.name == "growth_interval") settings["growth_interval"] = 3;
      if (option.name == "tolerance") settings["tolerance"] = 0.3;
    }
    const auto whole = make_scaler(entry, settings);
    const RandomStream random{.seed = 7};
    ExponentHistogram histogram;
    const auto step = [&](LossScaler& scaler, std::uint64_t i) {
      const double max_abs = std::exp2(-12.0 + 6.0 * static_cast<double>(random.uniform(i)));
      try {
        (void)scaler.update(gradients_at(scaler.scale(), max_abs, histogram));
      } catch (const RuntimeFailure&) {
        FAIL("the trace ends the run");
      }
    };
    for (std::uint64_t i = 0; i < 31; ++i) step(*whole, i);
    const auto second = make_scaler(entry, settings);
    const auto saved = whole->numbers(), restored = second->numbers();
    REQUIRE(saved.size() == restored.size());
    for (std::size_t i = 0; i < saved.size(); ++i) {
      CHECK(saved[i].name == restored[i].name);
      *restored[i].value = *saved[i].value;
    }
    for (std::uint64_t i = 31; i < 90; ++i) {
      step(*whole, i);
      step(*second, i);
      REQUIRE(second->scale() == whole->scale());
    }
  }
}

TEST_CASE("options are checked against the scaler and the table", "[scaling]") {
  check_says(message_of<InvalidArgument>([] {
               (void)make_scaler("static", {{"hysteresis", 2}});
             }),
             {"hysteresis", "static", "initial_scale"});
  check_says(message_of<InvalidArgument>([] {
               (void)make_scaler("none", {{"initial_scale", 2}});
             }),
             {"initial_scale", "none"});
  check_says(message_of<InvalidArgument>([] {
               (void)make_scaler("apex_amp", {{"initial_scale", 0x1p25}});
             }),
             {"initial_scale", "apex_amp", "max_scale"});
  check_says(message_of<InvalidArgument>([] {
               (void)make_scaler("megatron", {{"initial_scale", 0.5}});
             }),
             {"min_scale = 1"});
  const auto& interval = find_in_table("option", "growth_interval", scaler_option_table);
  CHECK(parse_scaler_option(interval, "12") == 12);
  for (const char* text : {"", "0", "1.5", "ten", "nan", "12 "}) {
    check_says(message_of<InvalidArgument>([&] { (void)parse_scaler_option(interval, text); }),
               {"growth_interval", "an integer"});
  }
  for (const ScalerEntry& entry : scaler_table) {
    for (const ScalerOption& option : entry.options) {
      INFO(entry.name << " " << option.name);
      const auto& known = find_in_table("option", option.name, scaler_option_table);
      CHECK((option.value >= known.low && option.value <= known.high));
    }
  }
}

TEST_CASE("a number is the name of a constant scale", "[scaling]") {
  for (const auto& [name, scale] : {std::pair{"1024", 1024.0}, {"0.5", 0.5}, {"1e3", 1000.0}, {"1", 1.0}}) {
    INFO(name);
    CHECK(find_scaler(name).name == "static");
    CHECK(resolve_options(name, {}) == ScalerSettings{{"initial_scale", scale}});
    CHECK(make_scaler(name)->scale() == scale);
  }
  CHECK(find_scaler("dynamic").name == "dynamic");
  CHECK(resolve_options("dynamic", {{"growth_interval", 3}}).at("growth_interval") == 3);
  // config.json holds it twice.
  CHECK(resolve_options("8", {{"initial_scale", 8}}) == ScalerSettings{{"initial_scale", 8.0}});
  check_says(message_of<InvalidArgument>([] {
               (void)resolve_options("8", {{"initial_scale", 4}});
             }),
             {"initial_scale = 4", "8 is a constant"});
  check_says(message_of<InvalidArgument>([] {
               (void)resolve_options("8", {{"margin", 4}});
             }),
             {"margin", "static has no such option"});
}

TEST_CASE("what is neither a scaler nor a positive FP32 number is refused", "[scaling]") {
  const auto refusal = [](const std::string& name) {
    return message_of<InvalidArgument>([&] { (void)find_scaler(name); });
  };
  for (const char* number : {"0", "-4", "1e99", "1e-99", "inf", "nan", "1e400"}) {
    INFO(number);
    check_says(refusal(number), {"positive number that FP32 holds"});
  }
  check_says(refusal("dynamik"), {"dynamik", "did you mean 'dynamic'"});
  check_says(refusal("2^10"), {"'2^10': give the number, 1024"});
  check_says(refusal("2^-3"), {"'2^-3': give the number, 0.125"});
  for (const char* name : {"2^", "2^ten", "2^128", "2^1.5", "2^-200"}) {
    INFO(name);
    check_says(refusal(name), {"unknown loss scale"});
  }
  for (const char* name : {"", "12x", " 12", "0x10", "1,024"}) {
    INFO(name);
    check_says(refusal(name), {"unknown loss scale"});
  }
}

}  // namespace
}  // namespace halfscope::scalers_test
