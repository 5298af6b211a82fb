// The config: every field can be set, printed and refused; the policy that it resolves to.
#include "sim/train/config.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <set>

#include "sim/train/build.hpp"
#include "sim/train/entry_tables.hpp"
#include "sim/train/recorded_keys.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::config_test {
namespace {

TEST_CASE("every field of a resolved config can be set to what it prints", "[config]") {
  const TrainConfig config = parsed({.policy = "fp16_no_master"}).config;
  TrainConfig copy;
  const Json fields = settings_of(to_json(config));
  for (const auto& [key, value] : fields.items()) set_field(copy, key, get_field(config, key));
  CHECK(to_json(copy) == to_json(config));
  CHECK(get_field(config, "master_weight") == "fp16");
  CHECK(get_field(config, "sum_order") == "fp32_chunked(256)");
}

TEST_CASE("a wrong key or value is refused with what would be right", "[config]") {
  TrainConfig config;
  const auto message = [&](const char* key, const char* value) {
    return message_of<InvalidArgument>([&] { set_field(config, key, value); });
  };
  check_says(message("stpes", "5"), {"unknown key 'stpes'", "did you mean 'steps'"});
  check_says(message("steps", "0"), {"steps = '0'", "an integer from 1 to"});
  check_says(message("steps", "1.5"), {"steps = '1.5'", "an integer"});
  check_says(message("steps", "10000000000"), {"1e+09"});
  check_says(message("learning_rate", "fast"), {"a number from 0"});
  check_says(message("learning_rate", "nan"), {"a number from 0"});
  check_says(message("learning_rate", "-1"), {"a number from 0"});
  check_says(message("momentum", "1.1"), {"from 0 to 1"});
  check_says(message("policy", "fp16_mixd"), {"policy = 'fp16_mixd'", "did you mean 'fp16_mixed'"});
  check_says(message("activation", "fp61"), {"activation = 'fp61'", "fp16"});
  check_says(message("loss_scale", "dynamc"), {"did you mean 'dynamic'"});
  check_says(message("loss_scale", "-4"), {"positive number"});
  check_says(message("loss_scale", "1e99"), {"positive number"});
  check_says(message("device", "gpu"), {"unknown device 'gpu'", "cuda"});
  check_says(message("sum_order", "fp16_seqential"), {"fp16_sequential"});
  check_says(message("order", "fp16_pairwise"), {"order = 'fp16_pairwise'", "not in fp16_pairwise"});
  check_says(message("order", "tensor_core(hoper)"), {"did you mean 'hopper'"});
  check_says(message("sum_order", "tensor_core(hopper)@bn*"), {"adds up matrix products"});
  check_says(message("trackers", "lost_update"), {"did you mean 'lost_updates'"});
  check_says(message("optimizer_state", "fp16/stochastic"), {"stochastically"});
  CHECK(to_json(config) == to_json(TrainConfig{}));
}

TEST_CASE("an option that is not set is not written, and has its entry's default", "[config]") {
  TrainConfig config{.model = "resnet50"};
  const Json unset = to_json(config);
  for (const auto& [key, usual] :
       {std::pair{"width", 0.125}, {"label_smoothing", 0.}, {"residual_gamma", 1.}}) {
    INFO(key);
    CHECK_FALSE(unset.contains(key));
    CHECK(get_field(config, key).empty());
    CHECK(with_defaults(unset).at(key) == usual);
    CHECK(to_json(parsed(config).config).at(key) == usual);
    set_field(config, key, "0.25");
    CHECK(get_field(config, key) == "0.25");
    CHECK(to_json(config).at(key) == 0.25);
    CHECK(with_defaults(to_json(config)).at(key) == 0.25);
  }
  check_says(message_of<InvalidArgument>([&] { set_field(config, "label_smoothing", "1"); }), {"0 to 0.99"});
  check_says(message_of<InvalidArgument>([&] { set_field(config, "width", "-1"); }),
             {"more than 0, up to 16"});
  check_says(message_of<InvalidArgument>([&] { set_field(config, "heads", "2.5"); }), {"heads"});
  set_field(config, "layers", "3");
  CHECK(to_json(config).at("layers").dump() == "3");
}

TEST_CASE("an option of another entry is refused with the own ones", "[config]") {
  const auto refusal = [](const TrainConfig& config) {
    return message_of<InvalidArgument>([&] { (void)parsed(config); });
  };
  CHECK(refusal({.model_options = {{"heads", 8}}}) ==
        "heads: the model cnn_bn takes label_smoothing, batch_norm_epsilon");
  CHECK(refusal({.model = "unet", .model_options = {{"dropout", 0.5}}}) ==
        "dropout: the model unet takes no options; leave it out");
  CHECK(refusal({.dataset = "kjv_text", .dataset_options = {{"image_size", 40}}}) ==
        "image_size: the dataset kjv_text takes vocabulary, sequence_length");
  CHECK(refusal({.optimizer = "adam", .optimizer_options = {{"momentum", 0.9}}}) ==
        "momentum: the optimizer adam takes beta1, beta2, epsilon");
}

TEST_CASE("an option has one kind of entry, and every entry a default within its range", "[config]") {
  std::set<std::string_view> known;
  for (const ScalerOptionEntry& option : scaler_option_table) known.insert(option.name);
  for (const EntryTable& table : entry_tables()) {
    std::set<std::string_view> own;
    for (const EntryWithOptions& entry : table.entries) {
      for (const EntryOption& option : *entry.options) {
        INFO(entry.name << ", " << option.name);
        own.insert(option.name);
        CHECK(known.count(option.name) == 0);
        CHECK(option.value >= option.range.low);
        CHECK(option.value <= option.range.high);
        CHECK_FALSE(option.summary.empty());
      }
    }
    known.insert(own.begin(), own.end());
  }
}

TEST_CASE("a config holds the options of its own loss scaler, all of them once resolved", "[config]") {
  TrainConfig config;
  set_field(config, "scaler", "megatron");
  set_field(config, "hysteresis", "3");
  CHECK(config.loss_scale == "megatron");
  CHECK(to_json(config)["hysteresis"] == 3);
  CHECK_FALSE(to_json(config).contains("min_scale"));
  const Json json = to_json(parsed(config).config);
  CHECK(json["hysteresis"].dump() == "3");
  CHECK(json["initial_scale"] == 0x1p32);
  CHECK(json["min_scale"] == 1);
  CHECK_FALSE(json.contains("tolerance"));
  CHECK(get_field(config, "tolerance").empty());
  CHECK(get_field(config, "scaler") == "megatron");
  CHECK(to_json(parsed({.loss_scale = "64"}).config)["initial_scale"] == 64);
  const auto refusal = [](const TrainConfig& wrong) {
    return message_of<InvalidArgument>([&] { (void)parsed(wrong); });
  };
  check_says(refusal({.loss_scale = "none", .scaler_options = {{"hysteresis", 3}}}), {"hysteresis", "none"});
  check_says(refusal({.loss_scale = "64", .scaler_options = {{"initial_scale", 3}}}),
             {"initial_scale", "64"});
  check_says(message_of<InvalidArgument>([&] { set_field(config, "hysteresis", "0"); }),
             {"hysteresis", "integer"});
}

TEST_CASE("a config holds the options of its own optimizer, all of them once resolved", "[config]") {
  TrainConfig config{.optimizer = "rmsprop"};
  set_field(config, "momentum", "0.5");
  CHECK(to_json(config)["momentum"] == 0.5);
  CHECK_FALSE(to_json(config).contains("epsilon"));
  CHECK(get_field(config, "epsilon").empty());
  const Json json = to_json(parsed(config).config);
  CHECK(json["epsilon"] == 1e-8);
  CHECK(json["momentum"] == 0.5);
  CHECK_FALSE(json.contains("beta1"));
  check_says(message_of<InvalidArgument>([&] { set_field(config, "momentum", "1.1"); }), {"from 0 to 1"});
}

TEST_CASE("an earlier config.json is read without other entries' options", "[config]") {
  Json earlier = to_json(TrainConfig{.optimizer = "sgd"});
  earlier.update({{"momentum", 0.8}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}});
  earlier.update({{"embedding_size", 64}, {"image_size", 64}});
  const TrainConfig now{.optimizer = "sgd", .optimizer_options = {{"momentum", 0.8}}};
  CHECK(with_defaults(earlier) == with_defaults(to_json(now)));
  CHECK(with_defaults(to_json(TrainConfig{.optimizer = "sgd"}))["momentum"] == 0.9);
  CHECK(without_foreign_options(earlier).contains("momentum"));
  for (const char* foreign : {"beta1", "embedding_size", "image_size"})
    CHECK_FALSE(without_foreign_options(earlier).contains(foreign));
  earlier.erase("optimizer");  // adam, the default
  CHECK_FALSE(without_foreign_options(earlier).contains("momentum"));
}

TEST_CASE("a key that config.json alone keeps is refused with the setting's name", "[config]") {
  for (const RecordedKey& key : recorded_keys) {
    const std::string says = fmt::format("no setting {} since 0.1; give {}", key.recorded, key.setting);
    TrainConfig config;
    CHECK(message_of<InvalidArgument>([&] { set_field(config, key.recorded, "fp32"); }) == says);
    CHECK(message_of<InvalidArgument>([&] { (void)get_field(config, key.recorded); }) == says);
    CHECK_FALSE(get_field(parsed(config).config, key.setting).empty());
    const Json json = to_json(config);
    CHECK((json.contains(key.recorded) && !json.contains(key.setting)));
  }
  TrainConfig config;
  check_says(message_of<InvalidArgument>([&] { set_field(config, "second_execution", "accumulate=cublas"); }),
             {"no setting accumulate since 0.1; give order"});
}

TEST_CASE("settings in the keys of config.json are the same settings", "[config]") {
  TrainConfig config =
      parsed({.policy = "fp16_mixed", .operations = {.sum_order = "bf16_pairwise@bn*"}}).config;
  config.parts.gradient_sum = "bf16/stochastic";
  for (const char* execution : {"", "policy=fp32", "order=tensor_core(ampere)"}) {
    set_field(config, "second_execution", execution);
    const Json file = to_json(config), settings = settings_of(file);
    CHECK(recorded(settings) == file);
    TrainConfig copy;
    for (const auto& [key, value] : settings.items())
      set_field(copy, key, value.is_string() ? value.get<std::string>() : value.dump());
    CHECK(to_text(to_json(copy)) == to_text(file));
  }
  const Json file = to_json(config);
  CHECK(file.at("accumulate") == "tensor_core(hopper)");
  CHECK(file.at("reduce") == "bf16_pairwise@bn*");
  CHECK(file.at("gradient_accumulator") == "bf16/stochastic");
  CHECK(file.at("second_execution") == "accumulate=tensor_core(ampere)");
}

TEST_CASE("roles and sums override the policy", "[config]") {
  const PrecisionPolicy policy = parsed({.policy = "fp16_mixed",
                                         .roles = {.activation = "bf16"},
                                         .operations = {.sum_order = "fp16_pairwise@bn1"}})
                                     .policy;
  CHECK(to_string(policy.quantizer(Role::activation)) == "bf16");
  CHECK(to_string(policy.quantizer(Role::weight)) == "fp16");
  CHECK(to_string(policy.reductions_in("bn1")) == "fp16_pairwise");
  CHECK(to_string(policy.reductions_in("bn2")) == "fp32_chunked(256)");
}

TEST_CASE("products add up as an H100 does where what is multiplied has one 16-bit format", "[config]") {
  const auto products = [](const TrainConfig& config) { return get_field(parsed(config).config, "order"); };
  for (const char* policy : {"fp16_mixed", "fp16_no_master", "fp16_pure"}) {
    CHECK(products({.policy = policy}) == "tensor_core(hopper)");
  }
  CHECK(products({.policy = "fp32"}) == "fp32_fused");
  CHECK(products({.policy = "fp32", .roles = {.weight = "fp16"}}) == "fp32_fused");
  CHECK(products({.policy = "fp16_mixed", .roles = {.activation_gradient = "bf16"}}) == "fp32_fused");
  CHECK(products({.policy = "fp16_mixed", .roles = {.weight_gradient = "fp32"}}) == "tensor_core(hopper)");
  CHECK(products({.policy = "fp16_mixed", .operations = {.order = "fp32_sequential"}}) == "fp32_sequential");
  const TrainConfig bfloat{
      .roles = {.weight = "bf16", .activation = "bf16/stochastic", .activation_gradient = "bf16"}};
  CHECK(products(bfloat) == "bf16_tensor_core(hopper)");
  CHECK(fp16_mixed_policy().products == parsed({.policy = "fp16_mixed"}).policy.products);
}

TEST_CASE("products that only the CPU computes are refused on the device", "[config]") {
  for (const NamedAccumulateModel& entry : cpu_product_models) {
    TrainConfig config{.operations = {.order = std::string(entry.name)}};
    CHECK(get_field(parsed(config).config, "order") == entry.name);
    config.device = "cuda";
    check_says(message_of<InvalidArgument>([&] { (void)parsed(config); }),
               {std::string(entry.name), "give device = cpu"});
  }
}

TEST_CASE("the cosine schedule starts at the full rate and passes half of it in the middle", "[config]") {
  const TrainConfig cosine{.steps = 100, .learning_rate = 2, .schedule = "cosine"};
  CHECK(learning_rate(parsed(cosine), 0) == 2.0);
  CHECK(learning_rate(parsed(cosine), 50) == Approx(1.0));
  CHECK(learning_rate(parsed(cosine), 99) == Approx(0.0005).epsilon(0.02));
  CHECK(learning_rate(parsed({.learning_rate = 2, .schedule = "constant"}), 99) == 2.0);
}

TEST_CASE("the linear schedule falls from the end of the warm-up to a last step above 0", "[config]") {
  const RunSettings linear =
      parsed({.steps = 100, .learning_rate = 2, .schedule = "linear", .warmup_steps = 20});
  CHECK(learning_rate(linear, 0) == Approx(0.1));
  CHECK(learning_rate(linear, 19) == 2.0);
  CHECK(learning_rate(linear, 20) == 2.0);
  CHECK(learning_rate(linear, 60) == 1.0);
  CHECK(learning_rate(linear, 99) == Approx(2.0 / 80));
  CHECK(learning_rate(parsed({.steps = 4, .learning_rate = 2, .schedule = "linear"}), 3) == 0.5);
  CHECK(learning_rate(parsed({.steps = 4, .learning_rate = 2, .schedule = "linear", .warmup_steps = 9}), 3) ==
        Approx(8.0 / 9));
}

}  // namespace
}  // namespace halfscope::config_test
