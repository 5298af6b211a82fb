// The sums of kernels on the device have the bits of those on the CPU, in every order and format.
#include <halfscope/device/array.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/batch_norm.hpp"
#include "lib/nn/elementary.hpp"
#include "lib/nn/elementwise.hpp"
#include "lib/nn/softmax.hpp"
#include "tests/support/device_parity.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::sums_device_test {
namespace {

/// The models of sums of single terms: all orders, in formats with fast paths of their own and without.
std::vector<AccumulateModel> sum_models() {
  std::vector<AccumulateModel> models;
  for (const char* name :
       {"fp32_sequential", "fp32_chunked(256)", "fp32_pairwise", "fp32_kahan", "fp16_sequential",
        "fp16_chunked(64)", "fp16_chunked(1)", "fp16_pairwise", "fp16_kahan", "bf16_sequential",
        "bf16_pairwise", "fp8_e4m3_chunked(7)", "tf32_kahan"}) {
    models.push_back(parse_accumulate_model(name));
  }
  return models;
}

/// Ordinary terms, so that sums stay finite for long, with a few special ones at the end.
std::vector<float> terms(std::size_t count, std::uint32_t seed) {
  std::vector<float> values = uniform_floats(count, -1, 3, seed);
  const float special[] = {65519.0f, -0.0f, INFINITY, 1e30f, -INFINITY, NAN};
  for (std::size_t i = 0; i < std::size(special) && i + 40 < count; ++i)
    values[count - 1 - 5 * i] = special[i];
  return values;
}

std::vector<float> as_floats(const ReductionCounters& counters) {
  return {static_cast<float>(counters.reductions), static_cast<float>(counters.terms),
          static_cast<float>(counters.overflowed), static_cast<float>(counters.first_overflow),
          static_cast<float>(counters.stagnated),  counters.largest_partial_sum};
}

/// Brings `values` to the device's array `to`.
void write(const std::vector<float>& values, std::span<float> to) {
  const auto here = Memory<float>::from(values);
  scale(here.values(), 1, to);
}

TEST_CASE("device parity of column sums", "[kernel][reduce][cuda]") {
  for (const auto& [rows, columns] : {std::pair{0, 3}, {1, 1}, {31, 17}, {700, 37}, {257 * 259, 1}}) {
    const auto width = static_cast<std::size_t>(columns), cells = static_cast<std::size_t>(rows) * width;
    for (const AccumulateModel& model : sum_models()) {
      for (const Term term : {Term::value, Term::squared_deviation, Term::product}) {
        INFO(to_string(model) << ", " << rows << " rows of " << columns);
        const std::vector<float> sums(width), counters(6);
        check_device_parity({terms(cells, 5), terms(cells, 6), terms(width, 7), sums, sums, counters},
                            [&, r = rows, c = columns](const Spans& s) {
                              const ColumnTerms all{term, s[0].data(), s[1].data(), s[2].data(), r, c};
                              column_sums(all, model, s[3]);
                              write(as_floats(counted_column_sums(all, model, s[4])), s[5]);
                            });
      }
    }
  }
}

TEST_CASE("device parity of column sums of several matrices", "[kernel][reduce][cuda]") {
  constexpr std::int64_t matrices = 5, rows = 70, columns = 7;
  const std::vector<float> sums(matrices * columns), counters(6);
  for (const AccumulateModel& model : sum_models()) {
    for (const Term term : {Term::value, Term::squared_deviation, Term::product}) {
      INFO(to_string(model));
      check_device_parity({terms(matrices * rows * columns, 5), terms(matrices * rows * columns, 6),
                           terms(columns, 7), sums, sums, counters},
                          [&](const Spans& s) {
                            const ColumnTerms all{term, s[0].data(), s[1].data(), s[2].data(),
                                                  rows, columns,     matrices};
                            column_sums(all, model, s[3]);
                            write(as_floats(counted_column_sums(all, model, s[4])), s[5]);
                          });
    }
  }
}

TEST_CASE("device parity of softmax and its gradient", "[kernel][softmax][cuda]") {
  for (const auto& [rows, classes] : {std::pair{1, 1}, {31, 2}, {7, 31}, {37, 700}}) {
    const auto cells = static_cast<std::size_t>(rows) * static_cast<std::size_t>(classes);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(rows));
    for (std::size_t r = 0; r < labels.size(); ++r) labels[r] = static_cast<std::int32_t>(r * 7) % classes;
    std::vector<float> special = uniform_floats(cells, -30, 30, 8);
    if (cells > 100) special[3] = NAN, special[50] = INFINITY, special[70] = -INFINITY, special[90] = 3e38f;
    for (const AccumulateModel& model : sum_models()) {
      INFO(to_string(model) << ", " << rows << " rows of " << classes);
      for (const auto& logits :
           {uniform_floats(cells, -3, 3, 5), special, std::vector<float>(cells, -0.0f)}) {
        check_device_parity({logits, std::vector<float>(cells), std::vector<float>(labels.size()), {0.9f}},
                            [&](const Spans& s) {
                              softmax_cross_entropy(s[0], labels, model, s[1], s[2]);
                              scale(s[1], 1, s[0]);
                              softmax_cross_entropy_gradient(labels, {s[3], 3.0f}, s[1]);
                            });
      }
    }
  }
}

TEST_CASE("labels out of range are refused on the device too", "[kernel][softmax][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const DeviceScope scope(Device::cuda);
  const Array logits = Array::zeros({2, 3});
  Array probability({2, 3}), losses({2});
  const std::vector<std::int32_t> labels{1, 3};
  check_says(message_of<InvalidArgument>([&] {
               softmax_cross_entropy(logits.values(), labels, {}, probability.values(), losses.values());
             }),
             {"label 3 of row 1", "[0, 3)"});
}

TEST_CASE("device parity of batch normalisation", "[kernel][batch_norm][cuda]") {
  for (const std::size_t rows : {0u, 1u, 31u, 999u}) {
    for (const std::size_t channels : {1u, 31u, 67u}) {
      const std::size_t cells = rows * channels;
      check_device_parity(
          {terms(cells, 1), terms(channels, 2), uniform_floats(channels, 0.1f, 3, 3), terms(channels, 4),
           terms(channels, 5), std::vector<float>(cells), std::vector<float>(cells)},
          [](const Spans& s) {
            inverse_deviations(s[2], 1e-5f, s[2]);
            normalise(s[0], {s[1], s[2], s[3], s[4]}, s[5], s[6]);
            normalise_gradient(s[5], {{}, s[2], s[3], {}}, {s[1], s[4]}, s[0]);
            update_running({.batch = s[1], .factor = 1.1f, .momentum = 0.1f}, s[4]);
          });
    }
  }
}

TEST_CASE("device parity of the elementary functions", "[kernel][elementary][cuda]") {
  for (const std::size_t size : parity_sizes) {
    std::vector<float> x = uniform_floats(size, -100, 100, 9);
    const std::vector<float> bits = random_floats(size / 2);
    std::copy(bits.begin(), bits.end(), x.begin());
    for (const Elementary function : {Elementary::exp, Elementary::log, Elementary::tanh, Elementary::erf,
                                      Elementary::rsqrt, Elementary::sigmoid}) {
      INFO(name_of(function));
      check_device_parity({x, std::vector<float>(size)},
                          [&](const Spans& s) { apply(function, s[0], s[1]); });
    }
  }
}

TEST_CASE("device parity of the sum of one array", "[kernel][reduce][cuda]") {
  for (const std::size_t size : parity_sizes) {
    for (const AccumulateModel& model : sum_models()) {
      INFO(to_string(model) << " of " << size);
      check_device_parity({uniform_floats(size, -1, 3, 5), {0}},
                          [&](const Spans& s) { divided_sum(s[0], 3, model, s[1]); });
    }
  }
}

}  // namespace
}  // namespace halfscope::sums_device_test
