// All-reduces against processes that exchange messages, and against known answers.
#include <halfscope/kernel/reduce/all_reduce.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <halfscope/core/isa.hpp>
#include <halfscope/format/round.hpp>

#include "tests/reference/all_reduce.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::all_reduce_test {
namespace {

using Gradients = std::vector<std::vector<float>>;  // (rank, element)

/// Magnitudes from 2^-30 to 2^2, and here and there a zero, a large number, an infinity or a NaN.
Gradients random_gradients(std::int64_t ranks, std::size_t elements, std::uint64_t seed) {
  Gradients gradients(static_cast<std::size_t>(ranks), std::vector<float>(elements));
  const RandomStream stream{.seed = seed};
  std::uint64_t index = 0;
  for (auto& row : gradients) {
    for (float& g : row) {
      const std::uint32_t bits = stream.bits(index++);
      g = std::ldexp(1.0f + static_cast<float>(bits & 0xFFFFu) * 0x1p-16f,
                     static_cast<int>(bits >> 16 & 31u) - 30);
      if ((bits >> 21 & 1u) != 0) g = -g;
      if ((bits >> 22 & 63u) == 0) g = 0;
      if ((bits >> 22 & 63u) == 1) g = 50000;
      if (bits >> 22 == 2) g = INFINITY;
      if (bits >> 22 == 3) g = NAN;
    }
  }
  return gradients;
}

struct Outcome {
  std::vector<float> means;
  AllReduceCounters counters;
};

Outcome reduce(const Gradients& gradients, const std::string& model, const std::string& division,
               std::int64_t chunk = 0) {
  AllReduce all_reduce(
      parse_all_reduce(model), parse_gradient_division(division),
      {.ranks = std::ssize(gradients), .elements = std::ssize(gradients[0]), .chunk = chunk});
  for (std::int64_t rank = 0; rank < std::ssize(gradients); ++rank)
    all_reduce.put(rank, gradients[static_cast<std::size_t>(rank)]);
  Outcome outcome{std::vector<float>(gradients[0].size()), {}};
  outcome.counters = all_reduce.finish(outcome.means);
  return outcome;
}

/// One element on so many ranks.
float sum_of_equal(std::int64_t ranks, float value, const std::string& model,
                   const std::string& division = "sum") {
  return reduce(Gradients(static_cast<std::size_t>(ranks), {value}), model, division).means[0];
}

reference::Ranks on_the_wire(const Gradients& gradients, const AllReduceModel& model) {
  reference::Ranks ranks{{}, model.sum_format()};
  for (const auto& row : gradients) {
    ranks.buffers.emplace_back();
    for (const float g : row)
      ranks.buffers.back().push_back(reference::round_to_float(g, {.format = model.wire_format()}));
  }
  return ranks;
}

/// The sums of every order by the processes of the reference.
reference::Buffer expected_sums(const Gradients& gradients, const AllReduceModel& model) {
  reference::Ranks ranks = on_the_wire(gradients, model);
  const auto n = static_cast<std::size_t>(ranks.count()), elements = ranks.buffers[0].size();
  const std::size_t grain = model.wire == DType::f32 ? 4 : 8;
  const std::string_view order = model.order->name;
  if (order == "nccl_ring")
    return reference::nccl_ring(ranks, ((elements + n - 1) / n + grain - 1) / grain * grain);
  if (order == "nccl_tree")
    return reference::nccl_tree(ranks, std::min(elements, ((elements + 1) / 2 + grain - 1) / grain * grain));
  if (order == "butterfly" || (order == "mpi_ring" && elements < n)) return reference::butterfly(ranks);
  reference::Buffer sums;
  std::size_t block = 0, block_end = 0;
  for (std::size_t e = 0; e < elements; ++e) {
    while (e >= block_end + elements / n + (block < elements % n ? 1 : 0))
      block_end += elements / n + (block++ < elements % n ? 1 : 0);
    const auto first = static_cast<std::int64_t>(order == "mpi_ring"     ? block
                                                 : order == "mpi_linear" ? n - 1
                                                                         : 0);
    sums.push_back(reference::in_turn(ranks, e, first, order == "mpi_linear" ? -1 : 1));
  }
  return sums;
}

void check_same(const std::vector<float>& means, const reference::Buffer& sums, const FloatFormat& wire) {
  REQUIRE(means.size() == sums.size());
  for (std::size_t e = 0; e < means.size(); ++e) {
    const float expected = reference::round_to_float(sums[e], {.format = wire});
    if (same_bits(means[e], expected)) continue;
    FAIL_CHECK("element " << e << " is " << describe(means[e]) << ", not " << describe(expected));
    return;
  }
}

TEST_CASE("every order adds as processes that exchange messages do", "[kernel][all_reduce]") {
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    for (const AllReduceOrder& order : all_reduce_orders) {
      for (const DType wire : {DType::f16, DType::bf16, DType::f32}) {
        const AllReduceModel model{&order, wire};
        for (const std::int64_t ranks : {1, 2, 3, 4, 5, 6, 7, 13, 16}) {
          for (const std::size_t elements : {std::size_t{1}, std::size_t{31}, std::size_t{1203}}) {
            INFO(name_of(isa) << " " << to_string(model) << " " << ranks << " ranks " << elements);
            const Gradients gradients = random_gradients(ranks, elements, elements + 7);
            check_same(reduce(gradients, to_string(model), "sum").means, expected_sums(gradients, model),
                       model.wire_format());
          }
        }
      }
    }
  }
}

TEST_CASE("ranks stagnate and overflow in FP16 as NCCL's orders have it", "[kernel][all_reduce]") {
  // 4,096 ranks of 1.0, of 16 and of 32; 8 ranks of 8192.
  CHECK(sum_of_equal(4096, 1, "nccl_ring") == 2048);
  CHECK(sum_of_equal(4096, 1, "nccl_tree") == 4096);
  CHECK(sum_of_equal(4096, 1, "fp32") == 4096);
  CHECK(sum_of_equal(4096, 16, "nccl_ring") == 32768);
  CHECK(sum_of_equal(4096, 16, "nccl_tree") == INFINITY);
  CHECK(sum_of_equal(4096, 16, "fp32") == INFINITY);
  CHECK(sum_of_equal(4096, 16, "nccl_ring/fp32") == 65536);
  CHECK(sum_of_equal(4096, 32, "nccl_ring") == INFINITY);
  for (const char* model : {"nccl_ring", "nccl_tree", "butterfly", "mpi_ring", "mpi_linear", "fp32"})
    CHECK(sum_of_equal(8, 8192, model) == INFINITY);
  CHECK(sum_of_equal(8, 0x1p-24f, "nccl_ring", "8") == 0);
  CHECK(sum_of_equal(8, 0x1p-24f, "nccl_ring", "ddp") == 0);
  CHECK(sum_of_equal(8, 0x1p-24f, "nccl_ring", "deepspeed") == 0x1p-24f);
  CHECK(sum_of_equal(8, 0x1p-24f, "nccl_ring", "1") == 0x1p-24f);
}

TEST_CASE("stagnated adds are counted, of finite sums alone", "[kernel][all_reduce]") {
  const Gradients ones(4096, std::vector<float>(20, 1.0f));
  const AllReduceCounters ring = reduce(ones, "nccl_ring", "sum").counters;
  CHECK(ring.elements == 20);
  CHECK(ring.adds == 20 * 4095);
  CHECK(ring.stagnated == 20 * 2048);
  CHECK(ring.means_overflowed == 0);
  // The root's own 1 is lost beside its only child's 4096.
  CHECK(reduce(ones, "nccl_tree", "sum").counters.stagnated == 20);
  CHECK(reduce(ones, "fp32", "sum").counters.stagnated == 0);
  const AllReduceCounters of_16 = reduce(Gradients(4096, {16.0f}), "nccl_ring", "sum").counters;
  CHECK((of_16.stagnated == 2048 && of_16.means_overflowed == 0));
  const AllReduceCounters of_32 = reduce(Gradients(4096, {32.0f}), "nccl_ring", "sum").counters;
  CHECK((of_32.stagnated == 0 && of_32.means_overflowed == 1));
  // A partial sum that a larger addend leaves no place for.
  CHECK(reduce({{0x1p-24f}, {1.0f}}, "mpi_linear", "sum").counters.stagnated == 1);
  CHECK(reduce({{0.0f}, {1.0f}}, "mpi_linear", "sum").counters.stagnated == 0);
  CHECK(reduce({{INFINITY}, {1.0f}}, "mpi_linear", "sum").counters.stagnated == 0);
}

TEST_CASE("counted adds are those of the processes", "[kernel][all_reduce]") {
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    for (const std::size_t elements : {std::size_t{1}, std::size_t{77}, std::size_t{1203}}) {
      const Gradients gradients = random_gradients(13, elements, 3);
      std::int64_t ring = 0, tree = 0;
      const std::size_t chunk = ((elements + 12) / 13 + 7) / 8 * 8;
      (void)reference::nccl_ring(on_the_wire(gradients, parse_all_reduce("nccl_ring")), chunk, &ring);
      (void)reference::nccl_tree(on_the_wire(gradients, parse_all_reduce("nccl_tree")),
                                 std::min(elements, ((elements + 1) / 2 + 7) / 8 * 8), &tree);
      CHECK(reduce(gradients, "nccl_ring", "sum").counters.stagnated == ring);
      CHECK(reduce(gradients, "nccl_tree", "sum").counters.stagnated == tree);
      CHECK((elements == 1 || ring > 0));
    }
  }
}

TEST_CASE("what the wire and the division lose is counted", "[kernel][all_reduce]") {
  const AllReduceCounters flushed = reduce(Gradients(8, {0x1p-24f, 1.0f}), "nccl_ring", "ddp").counters;
  CHECK((flushed.addends_flushed == 8 && flushed.means_flushed == 0));
  const AllReduceCounters cast = reduce({{0x1p-26f, 70000.0f, 0.0f}, {1, 1, 1}}, "fp32", "sum").counters;
  CHECK((cast.addends_flushed == 1 && cast.addends_overflowed == 1 && cast.means_overflowed == 0));
  CHECK(reduce({{0x1p-24f}, {0.0f}}, "nccl_ring", "deepspeed").counters.means_flushed == 1);
  const AllReduceCounters overflowed =
      reduce(Gradients(8, {8192.0f, 1.0f}), "nccl_tree", "deepspeed").counters;
  CHECK((overflowed.means_overflowed == 1 && overflowed.addends_overflowed == 0));
}

TEST_CASE("a ring's chunks and their first ranks are NCCL's", "[kernel][all_reduce]") {
  const auto runs_of = [](AllReduceBuffer buffer, const char* model) {
    std::vector<std::array<std::int64_t, 3>> runs;
    for (const AddRun& run : make_plan(parse_all_reduce(model), buffer).runs)
      runs.push_back({run.first, run.count, run.rotation});
    return runs;
  };
  using Runs = std::vector<std::array<std::int64_t, 3>>;
  // 1001 halves on 4 ranks: a quarter is 251, up to a multiple of 8 that is 256.
  CHECK(runs_of({.ranks = 4, .elements = 1001}, "nccl_ring") ==
        Runs{{0, 256, 1}, {256, 256, 2}, {512, 256, 3}, {768, 233, 0}});
  // Floats are aligned to 4.
  CHECK(runs_of({.ranks = 4, .elements = 1001}, "nccl_ring/fp32") ==
        Runs{{0, 252, 1}, {252, 252, 2}, {504, 252, 3}, {756, 245, 0}});
  // Five elements on three ranks: a chunk of 8 takes them all.
  CHECK(runs_of({.ranks = 3, .elements = 5}, "nccl_ring") == Runs{{0, 5, 1}});
  // Chunks of 16: two whole loops of 64, then 22 elements in chunks of 8.
  CHECK(runs_of({.ranks = 4, .elements = 150, .chunk = 16}, "nccl_ring") == Runs{{0, 16, 1},
                                                                                 {16, 16, 2},
                                                                                 {32, 16, 3},
                                                                                 {48, 16, 0},
                                                                                 {64, 16, 1},
                                                                                 {80, 16, 2},
                                                                                 {96, 16, 3},
                                                                                 {112, 16, 0},
                                                                                 {128, 8, 1},
                                                                                 {136, 8, 2},
                                                                                 {144, 6, 3}});
}

TEST_CASE("chunks of a given size add as a ring of several loops", "[kernel][all_reduce]") {
  const Gradients gradients = random_gradients(4, 128, 5);
  const AllReduceModel model = parse_all_reduce("nccl_ring");
  check_same(reduce(gradients, "nccl_ring", "sum", 16).means,
             reference::nccl_ring(on_the_wire(gradients, model), 16), fp16);
}

TEST_CASE("trees are NCCL's, and sequences have every rank once", "[kernel][all_reduce]") {
  for (const AllReduceOrder& order : all_reduce_orders) {
    for (const std::int64_t ranks : {1, 2, 3, 6, 13, 100, 4096, 65536}) {
      const AddPlan plan = make_plan({&order, DType::f16}, {.ranks = ranks, .elements = 1 << 20});
      for (const AddSequence& sequence : plan.sequences) {
        std::vector<int> seen(static_cast<std::size_t>(ranks));
        std::int32_t depth = 0, deepest = 0;
        for (const AddStep& step : sequence) {
          if (step.kind != AddStep::Kind::join) ++seen.at(static_cast<std::size_t>(step.rank));
          if (step.kind == AddStep::Kind::begin) deepest = std::max(deepest, ++depth);
          if (step.kind == AddStep::Kind::join) --depth;
        }
        INFO(order.name << " of " << ranks);
        CHECK(std::count(seen.begin(), seen.end(), 1) == ranks);
        CHECK((depth == 1 && deepest <= most_partial_sums));
      }
    }
  }
}

/// A third of normally distributed elements differs between the average of NCCL and a division in FP32.
TEST_CASE("an average of NCCL differs from a division", "[kernel][all_reduce]") {
  const RandomStream stream{.seed = 9};
  Gradients gradients(1, std::vector<float>(100000));
  for (std::size_t e = 0; e < gradients[0].size(); ++e) {
    const double radius = std::sqrt(-2 * std::log(1 - double{stream.uniform(2 * e)}));
    gradients[0][e] = static_cast<float>(radius * std::cos(6.283185307179586 * stream.uniform(2 * e + 1)));
  }
  const auto addends = [&](const char* rule) {
    const DivisionStep step = division_steps(parse_gradient_division(rule), 3, fp16).before;
    std::vector<std::uint16_t> codes(gradients[0].size());
    write_addends(gradients[0], DType::f16, step, std::as_writable_bytes(std::span(codes)));
    return codes;
  };
  const auto average = addends("nccl_avg"), quotient = addends("fp16_compress_hook");
  std::size_t different = 0;
  for (std::size_t e = 0; e < average.size(); ++e) different += average[e] != quotient[e] ? 1u : 0u;
  CHECK(static_cast<double>(different) / 1e5 == Approx(0.334).margin(0.02));
}

TEST_CASE("divided numbers are rounded once more, on every instruction set", "[kernel][all_reduce]") {
  const Gradients gradients = random_gradients(1, 2500, 11);
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    for (const DType wire : {DType::f16, DType::bf16, DType::f32}) {
      for (const char* rule : {"ddp", "nccl_avg", "fp16_compress_hook"}) {
        const DivisionStep step = division_steps(parse_gradient_division(rule), 7, format_of(wire)).before;
        std::vector<std::byte> bytes(gradients[0].size() * bytes_per_element(wire));
        const AllReduceCounters counters = write_addends(gradients[0], wire, step, bytes);
        AddendTiles tiles(wire, 1, std::ssize(gradients[0]));
        tiles.put(0, bytes);
        std::vector<float> values(gradients[0].size());
        mean_of_ranks(tiles, make_plan({.wire = wire}, {.elements = tiles.columns()}), {.wire = wire}, {},
                      values);
        std::int64_t flushed = 0;
        for (std::size_t e = 0; e < values.size(); ++e) {
          const Quantizer q{.format = format_of(wire)};
          const float x = reference::round_to_float(gradients[0][e], q);
          const float y = step.kind == DivisionStep::Kind::divide ? x / step.constant : x * step.constant;
          const float expected = reference::round_to_float(y, q);
          flushed += gradients[0][e] != 0 && expected == 0 ? 1 : 0;
          INFO(name_of(isa) << " " << rule << " " << describe(gradients[0][e]) << " to "
                            << describe(values[e]));
          REQUIRE(same_bits(values[e], expected));
        }
        CHECK(counters.addends_flushed == flushed);
      }
    }
  }
}

TEST_CASE("an all-reduce is the same on any number of threads", "[kernel][all_reduce]") {
  const Gradients gradients = random_gradients(6, 100003, 2);
  const Outcome one = with_threads(1, [&] { return reduce(gradients, "nccl_ring", "fsdp"); });
  const Outcome three = with_threads(3, [&] { return reduce(gradients, "nccl_ring", "fsdp"); });
  CHECK(std::equal(one.means.begin(), one.means.end(), three.means.begin(), same_bits));
  CHECK(one.counters == three.counters);
}

TEST_CASE("columns of a buffer add as in the whole", "[kernel][all_reduce]") {
  const Gradients gradients = random_gradients(5, 1000, 8);
  for (const AllReduceOrder& order : all_reduce_orders) {
    const AllReduceModel model{&order, DType::f16};
    const AddPlan plan = make_plan(model, {.ranks = 5, .elements = 1000});
    const Outcome whole = reduce(gradients, to_string(model), "sum");
    AllReduceCounters counters;
    using Range = std::pair<std::int64_t, std::int64_t>;
    for (const auto& [first, count] : {Range{0, 333}, Range{333, 1}, Range{334, 666}}) {
      AddendTiles tiles(DType::f16, 5, count, first);
      std::vector<std::byte> bytes(static_cast<std::size_t>(count) * 2);
      for (std::int64_t rank = 0; rank < 5; ++rank) {
        write_addends(std::span(gradients[static_cast<std::size_t>(rank)])
                          .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
                      DType::f16, {}, bytes);
        tiles.put(rank, bytes);
      }
      std::vector<float> means(static_cast<std::size_t>(count));
      counters.merge(mean_of_ranks(tiles, plan, model, {}, means));
      CHECK(std::equal(means.begin(), means.end(), whole.means.begin() + first, same_bits));
    }
    CHECK((counters.adds == whole.counters.adds && counters.stagnated == whole.counters.stagnated));
  }
}

TEST_CASE("all-reduces have names", "[kernel][all_reduce]") {
  for (const AllReduceOrder& order : all_reduce_orders) {
    for (const DType wire : {DType::f16, DType::bf16, DType::f32}) {
      const AllReduceModel model{&order, wire};
      CHECK(parse_all_reduce(to_string(model)) == model);
    }
  }
  CHECK(to_string(parse_all_reduce("nccl_tree/fp16")) == "nccl_tree");
  check_says(message_of<InvalidArgument>([] { (void)parse_all_reduce("nccl_rings"); }),
             {"did you mean 'nccl_ring'"});
  check_says(message_of<InvalidArgument>([] { (void)parse_all_reduce("nccl_ring/fp8"); }),
             {"format on the wire", "bf16"});
  check_says(message_of<InvalidArgument>([] { (void)make_plan({}, {.ranks = 65537}); }), {"65537", "65536"});
  check_says(message_of<InvalidArgument>([] { (void)make_plan({}, {.ranks = 0}); }), {"1 to 65536"});
}

}  // namespace
}  // namespace halfscope::all_reduce_test
