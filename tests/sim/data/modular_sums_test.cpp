// Sums modulo a prime: every pair once, and its sum.
#include <nlohmann/json.hpp>

#include <numeric>
#include <set>

#include "sim/data/datasets.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::modular_sums_test {
namespace {

Batch all_of(const Dataset& data, Split split) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(data.size(split)));
  std::iota(indices.begin(), indices.end(), 0);
  return data.batch(split, indices);
}

TEST_CASE("modular_sums has each pair in one split, with its sums", "[data]") {
  const auto data = open_dataset("modular_sums", {.options = {{"modulus", 13}}});
  CHECK(data->size(Split::train) == 62);  // 40 % of 13 * 12
  CHECK(data->size(Split::test) == 94);
  CHECK(data->class_count() == 13);
  CHECK(data->example_shape() == Shape{2});
  std::set<std::pair<std::int32_t, std::int32_t>> pairs;
  for (const Split split : {Split::train, Split::test}) {
    const Batch batch = all_of(*data, split);
    for (std::size_t i = 0; i < batch.tokens.size(); i += 2) {
      const std::int32_t a = batch.tokens[i], b = batch.tokens[i + 1];
      CHECK(a != b);
      pairs.insert({a, b});
      CHECK(batch.labels[i] == a);
      CHECK(batch.labels[i + 1] == (a + b) % 13);
    }
  }
  CHECK(pairs.size() == 156);
  CHECK(all_of(*open_dataset("modular_sums", {.options = {{"modulus", 13}}}), Split::train).tokens ==
        all_of(*data, Split::train).tokens);
}

TEST_CASE("the pairs of modular_sums are mixed", "[data]") {
  const Batch batch = all_of(*open_dataset("modular_sums", {}), Split::train);
  std::set<std::int32_t> first;
  for (std::size_t i = 0; i < 2 * 59; i += 2) first.insert(batch.tokens[i]);
  CHECK(first.size() > 20);
}

TEST_CASE("modular_sums says what is wrong", "[data]") {
  check_says(message_of<InvalidArgument>([] { (void)open_dataset("modular_sums", {.data = "text"}); }),
             {"modular_sums", "leave out data"});
  const auto data = open_dataset("modular_sums", {.options = {{"modulus", 4}}});
  check_says(
      message_of<InvalidArgument>([&] { (void)data->batch(Split::train, std::vector<std::int64_t>{4}); }),
      {"train example 4", "0 to 3"});
}

}  // namespace
}  // namespace halfscope::modular_sums_test
