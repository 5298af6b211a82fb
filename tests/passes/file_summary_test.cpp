// Summaries and lost updates of files in memory: the same for any threads and any access, and whole or not at
// all.
#include <halfscope/passes/file_summary.hpp>

#include <halfscope/passes/file_comparison.hpp>
#include <halfscope/passes/file_updates.hpp>
#include <halfscope/stats/lost_updates.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/file_in_memory.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::file_summary_test {
namespace {

std::vector<float> gradients(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values = random_floats(static_cast<std::size_t>(count), seed);
  for (float& x : values) x = std::isfinite(x) ? std::fmod(x, 3e-5f) : 0;
  return values;
}

TEST_CASE("files are summarised the same by any number of threads, however they are read",
          "[summarise_file]") {
  const std::vector<float> large = gradients(2 * summarise_block + 777, 1);
  FileInMemory file;
  file.add("large", large);
  file.add("empty", {});
  file.add("unpacked", large, Access::sequential);
  file.add("left out", {1, 2, 3});
  file.add("small", {1, 2, 3});
  const std::vector<std::size_t> chosen{0, 1, 2, 4};
  SummaryPass expected(bf16);
  expected.add(large);
  for (const int threads : {1, 2, 5}) {
    const Threads set(threads);
    INFO(threads << " threads");
    std::vector<std::size_t> order;
    std::int64_t heard = 0;
    summarise_tensors(
        file, chosen, bf16,
        [&](std::size_t index, const TensorSummary& summary) {
          order.push_back(index);
          CHECK(summary.histogram().elements() == file.tensors()[index].elements);
          if (index == 0 || index == 2) CHECK(summary == expected.summary());
        },
        [&](std::int64_t elements) { heard += elements; });
    CHECK(order == chosen);
    CHECK(heard == 2 * static_cast<std::int64_t>(large.size()) + 3);
  }
}

TEST_CASE("tensors of 8 and 16 bits are summarised as their numbers are", "[summarise_file]") {
  const RandomStream random{.seed = 9};
  std::vector<std::uint32_t> words(static_cast<std::size_t>(5 * summarise_block + 3));
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = i % 3 == 0 ? 0 : random.bits(i) & 0x7B7B8B7Bu;
  const auto large = std::as_bytes(std::span(words));
  for (const DType type : {DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
    FileInMemory file;
    file.add_stored("large", type, large);
    file.add_stored("unpacked", type, large, Access::sequential);
    file.add_stored("small", type, large.first(1000));
    SummaryPass expected(bf16);
    file.read(0, 0, file.tensors()[0].elements, [&](std::span<const float> piece) { expected.add(piece); });
    std::optional<TensorSummary> before;
    for (const int threads : {1, 2, 5}) {
      const Threads set(threads);
      INFO(name_of(type) << ", " << threads << " threads");
      summarise_tensors(file, std::vector<std::size_t>{0, 1, 2}, bf16,
                        [&](std::size_t index, const TensorSummary& summary) {
                          CHECK(summary.histogram().elements() == file.tensors()[index].elements);
                          if (index == 2) return;
                          CHECK(summary.histogram() == expected.summary().histogram());
                          CHECK(summary.lost_energy(-117) == expected.summary().lost_energy(-117));
                          CHECK(summary == before.value_or(summary));
                          before = summary;
                        });
    }
    CHECK(before.has_value());
  }
}

TEST_CASE("damage in a block is told whatever the threads, and its tensor is not reported",
          "[summarise_file]") {
  FileInMemory file;
  file.add("good", gradients(10, 2));
  file.add("bad", gradients(3 * summarise_block, 3));
  file.damage(1, 2 * summarise_block + 5);
  for (const int threads : {1, 3}) {
    const Threads set(threads);
    std::vector<std::size_t> reported;
    const auto summary = [&] {
      summarise_tensors(file, std::vector<std::size_t>{0, 1}, fp16,
                        [&](std::size_t index, const TensorSummary&) { reported.push_back(index); });
    };
    check_says(message_of<InvalidArgument>(summary), {"damaged at element 2097157"});
    CHECK(reported == std::vector<std::size_t>{0});
  }
}

TEST_CASE("many files are summarised in order, and a damaged one is left out", "[summarise_file]") {
  FileInMemory files[3];
  for (std::size_t i = 0; i < 3; ++i) {
    files[i].add("first", gradients(1000, i));
    files[i].add("large", gradients(2 * summarise_block, 10 + i));
    files[i].add("last", gradients(5, 20 + i));
  }
  files[1].damage(1, summarise_block + 7);
  const std::vector<std::size_t> all{0, 1, 2};
  const std::vector<ChosenTensors> chosen{{&files[0], all}, {&files[1], all}, {&files[2], all}};
  for (const int threads : {1, 3}) {
    const Threads set(threads);
    std::vector<std::pair<std::size_t, std::size_t>> order;
    std::vector<std::size_t> failed;
    std::int64_t heard = 0;
    summarise_files(
        chosen, fp16,
        {.tensor = [&](const SummarisedTensor& found) { order.emplace_back(found.file, found.index); },
         .failed =
             [&](std::size_t file, const std::exception_ptr& error) {
               CHECK_THROWS_AS(std::rethrow_exception(error), InvalidArgument);
               failed.push_back(file);
             },
         .progress = [&](std::size_t, std::int64_t elements) { heard += elements; }});
    CHECK(order == std::vector<std::pair<std::size_t, std::size_t>>{
                       {0, 0}, {0, 1}, {0, 2}, {1, 0}, {2, 0}, {2, 1}, {2, 2}});
    CHECK(failed == std::vector<std::size_t>{1});
    CHECK(heard == 3 * (1000 + 2 * summarise_block + 5));
  }
}

TEST_CASE("doubles beyond FP32's range are counted", "[summarise_file]") {
  const std::vector<double> values{1e300,
                                   -1e39,
                                   1e-200,
                                   -1e-46,
                                   0x1p-149,
                                   0,
                                   1,
                                   std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<float>::max(),
                                   std::nan("")};
  FileInMemory file;
  file.add_stored("x", DType::f64, std::as_bytes(std::span(values)));
  const std::vector<std::size_t> all{0};
  const ChosenTensors chosen{&file, all};
  std::int64_t beyond = -1, elements = 0;
  summarise_files({&chosen, 1}, fp16,
                  {.tensor =
                       [&](const SummarisedTensor& found) {
                         beyond = found.beyond_fp32;
                         elements = found.summary->histogram().elements();
                       },
                   .failed = {},
                   .progress = {}});
  CHECK(beyond == 4);
  CHECK(elements == 10);
}

TEST_CASE("a tensor is compared with its reference", "[summarise_file]") {
  const std::int64_t size = 3 * (std::int64_t{1} << 20) + 5;
  const std::vector<float> reference = gradients(size, 5);
  std::vector<float> tensor = reference;
  for (std::size_t i = 0; i < tensor.size(); i += 3) tensor[i] *= 1.001f;
  FileInMemory first, second;
  first.add("x", tensor, Access::sequential);
  first.add("nan", {1, std::nanf("")});
  second.add("x", reference);
  second.add("nan", {1, 2});
  double dd = 0, rr = 0;
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const double r = reference[i], d = tensor[i] - r;
    dd += d * d;
    rr += r * r;
  }
  std::optional<double> before;
  for (const int threads : {1, 3}) {
    const Threads set(threads);
    const ReferenceComparison found = compare_with_reference({first, 0}, {second, 0});
    CHECK(found.elements == size);
    REQUIRE(found.relative_error());
    CHECK(std::fabs(*found.relative_error() / std::sqrt(dd / rr) - 1) < 1e-9);
    CHECK(before.value_or(*found.relative_error()) == *found.relative_error());
    CHECK(*found.cosine() < 1);
    CHECK(*found.cosine() > 0.999);
    before = found.relative_error();
  }
  const ReferenceComparison broken = compare_with_reference({first, 1}, {second, 1});
  CHECK(broken.nonfinite == 1);
  CHECK_FALSE(broken.relative_error());
  CHECK(*compare_with_reference({second, 0}, {second, 0}).relative_error() == 0);
  check_says(message_of<InvalidArgument>([&] {
               static_cast<void>(compare_with_reference({first, 0}, {second, 1}));
             }),
             {"'x'", "shape", "reference"});
}

TEST_CASE("updates that are not finite are counted", "[summarise_file]") {
  FileInMemory weights, updates;
  weights.add("w", {1, 1, 1, 1});
  updates.add("w", {std::nanf(""), std::numeric_limits<float>::infinity(), 0, 1});
  CHECK(count_lost_updates({weights, 0}, {updates, 0}, fp16).nonfinite == 2);
}

TEST_CASE("lost updates of files are those of the arrays", "[summarise_file]") {
  const std::int64_t size = (std::int64_t{1} << 20) + 70'001;
  std::vector<float> weights(static_cast<std::size_t>(size)), updates = weights;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = RandomStream{.seed = 4}.uniform(i) - 0.5f;
    updates[i] = i % 3 == 0 ? 0 : std::ldexp(weights[i], -static_cast<int>(i % 19));
  }
  const UpdateCounters expected = count_lost_updates({.tensor = "w"}, {fp16}, weights, updates);
  CHECK(expected.lost > 0);
  CHECK(expected.lost < expected.nonzero);
  for (const Access access : {Access::random, Access::sequential}) {
    FileInMemory of_weights, of_updates;
    of_weights.add("other", {1});
    of_weights.add("w", weights, access);
    of_updates.add("w", updates);
    of_updates.add("empty", {});
    for (const int threads : {1, 4}) {
      const Threads set(threads);
      const LostUpdates found = count_lost_updates({of_weights, 1}, {of_updates, 0}, fp16);
      CHECK(found.elements == size);
      CHECK(found.nonzero == expected.nonzero);
      CHECK(found.lost == expected.lost);
    }
    check_says(message_of<InvalidArgument>([&] {
                 static_cast<void>(count_lost_updates({of_weights, 1}, {of_updates, 1}, fp16));
               }),
               {"'empty'", "one update for each weight"});
  }
}

}  // namespace
}  // namespace halfscope::file_summary_test
