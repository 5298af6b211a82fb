// Every public function that takes two or more arrays, or an array and a shape, is called with sizes that do
// not belong together. check_spans.py holds this table to the headers.
#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/arithmetic/block_dot.hpp>
#include <halfscope/arithmetic/counted_dot.hpp>
#include <halfscope/arithmetic/matrix_core.hpp>
#include <halfscope/device/memory.hpp>
#include <halfscope/kernel/block/quantise.hpp>
#include <halfscope/kernel/cast/cast_counters.hpp>
#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>
#include <halfscope/kernel/gemm/gemm_batch.hpp>
#include <halfscope/kernel/histogram/binned_histogram.hpp>
#include <halfscope/kernel/reduce/all_reduce.hpp>
#include <halfscope/kernel/reduce/cosine.hpp>
#include <halfscope/kernel/reduce/distance.hpp>
#include <halfscope/kernel/reduce/magnitudes.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>
#include <halfscope/kernel/reduce/sum_of_squares.hpp>
#include <halfscope/kernel/update/update_effect.hpp>
#include <halfscope/passes/file_formats.hpp>
#include <halfscope/stats/block_counts.hpp>
#include <halfscope/stats/lost_updates.hpp>
#include <halfscope/stats/operand_cast.hpp>
#include <halfscope/stats/weight_delta.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::unequal_sizes_test {
namespace {

using Floats = std::vector<float>;

/// Its header and its name.
using Function = std::string_view;

/// A call with arrays of two sizes.
struct SizesCase {
  Function function;
  std::size_t size;                                ///< the first array's in the right call
  std::function<std::size_t(std::size_t)> second;  ///< size of the second array that belongs to a first one
  std::function<void(std::size_t, std::size_t)> call;
  bool none_stands_for_it = false;  ///< a second array without elements is one that is not given
};

std::size_t same(std::size_t size) {
  return size;
}
std::size_t one(std::size_t /*size*/) {
  return 1;
}

/// Ones, in memory of exactly that size, so that a sanitizer sees the first element behind.
Floats ones(std::size_t size) {
  return Floats(size, 1.0F);
}

const TensorCoreStep& hopper_step() {
  static const TensorCoreStep step = tensor_core_step({TensorCoreGeneration::hopper}, fp16, fp32);
  return step;
}

SizesCase products_case(Function function, std::function<void(const Floats&, const Floats&)> call,
                        std::size_t size = 40) {
  return {function, size, same, [call](std::size_t a, std::size_t b) { call(ones(a), ones(b)); }};
}

SizesCase output_case(Function function, std::function<void(const Floats&, Floats&)> call) {
  return {function, 64, same, [call](std::size_t in, std::size_t out) {
            const Floats from = ones(in);
            Floats to(out);
            call(from, to);
          }};
}

MatrixShape row_of(std::size_t columns) {
  return {1, static_cast<std::int64_t>(columns)};
}

std::vector<SizesCase> dot_products() {
  std::vector<SizesCase> cases;
  for (const char* name : {"fp32_sequential", "fp16_fused", "fp16_chunked(8)", "fp16_pairwise",
                           "tensor_core(hopper)", "matrix_core(cdna3)"}) {
    const AccumulateModel model = parse_accumulate_model(name);
    cases.push_back(
        products_case("arithmetic/accumulate.hpp accumulate_products",
                      [model](const auto& a, const auto& b) { (void)accumulate_products(a, b, model); }));
    cases.push_back(products_case(
        "arithmetic/accumulate.hpp accumulate_products_from",
        [model](const auto& a, const auto& b) { (void)accumulate_products_from(1, a, b, model); }));
  }
  for (const MatrixCoreStep& step : matrix_core_table) {
    cases.push_back(products_case("arithmetic/matrix_core.hpp dot",
                                  [step](const auto& a, const auto& b) { (void)dot(a, b, 1, step); }));
  }
  for (const TensorCoreEntry& entry : tensor_core_table) {
    const TensorCoreStep& step = entry.step;
    cases.push_back(products_case("arithmetic/tensor_core.hpp dot",
                                  [step](const auto& a, const auto& b) { (void)dot(a, b, 1, step); }));
    cases.push_back(products_case(
        "arithmetic/tensor_core.hpp fused_step",
        [step](const auto& a, const auto& b) { (void)fused_step(a, b, 1, step); },
        static_cast<std::size_t>(step.products)));
  }
  cases.push_back(products_case(
      "arithmetic/tensor_core.hpp fp8_step_on_fp16",
      [](const auto& a, const auto& b) { (void)fp8_step_on_fp16(a, b, 1, fp32); }, 32));
  cases.push_back(products_case("arithmetic/counted_dot.hpp counted_dot", [](const auto& a, const auto& b) {
    ReductionCounters counters;
    (void)counted_dot(a, b, 1, hopper_step(), counters);
  }));
  cases.push_back(
      products_case("arithmetic/counted_dot.hpp counted_fused_dot", [](const auto& a, const auto& b) {
        ReductionCounters counters;
        (void)counted_fused_dot(a, b, fp16, counters);
      }));
  return cases;
}

/// Codes of FP8 ones in blocks of 32, with a scale of 1 each.
struct Codes {
  std::vector<std::uint8_t> elements;
  std::vector<std::uint32_t> scales;

  Codes(std::size_t count, std::size_t blocks) : elements(count, 0x38), scales(blocks, 127) {}
  [[nodiscard]] BlockOperand operand() const { return {fp8_e4m3, elements, scales}; }
  [[nodiscard]] BlockMatrix matrix(std::size_t rows, std::size_t columns) const {
    return {fp8_e4m3, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), elements, scales};
  }
};

std::size_t blocks_of_32(std::size_t elements) {
  return (elements + 31) / 32;
}
const BlockScaledUnit& mx_unit() {
  return block_scaled_unit(BlockScaledKind::mxf8f6f4, ScaleFormat::e8m0);
}

std::vector<SizesCase> block_products() {
  const auto block_dot_of = [](const Codes& a, const Codes& b) {
    (void)block_dot(a.operand(), b.operand(), 0, mx_unit());
  };
  const auto promoted = [](const ScaledTerms& a, const ScaledTerms& b) {
    (void)promoted_dot(a, b, 0, hopper_step(), {.terms = 32});
  };
  return {
      {"arithmetic/block_dot.hpp block_dot", 64, same,
       [=](std::size_t a, std::size_t b) {
         block_dot_of({a, blocks_of_32(a)}, {b, blocks_of_32(b)});
       }},
      {"arithmetic/block_dot.hpp block_dot", 70, blocks_of_32,
       [=](std::size_t elements, std::size_t scales) {
         block_dot_of({elements, blocks_of_32(elements)}, {elements, scales});
       }},
      products_case("arithmetic/block_dot.hpp promoted_dot",
                    [=](const Floats& a, const Floats& b) { promoted({a}, {b}); }),
      {"arithmetic/block_dot.hpp promoted_dot", 70, blocks_of_32,
       [=](std::size_t terms, std::size_t scales) {
         const Floats values = ones(terms), of_a = ones(scales);
         promoted({values, of_a}, {values});
       },
       true},
      {"kernel/gemm/gemm.hpp gemm_blocks", 5, same,
       [](std::size_t rows, std::size_t results) {
         const Codes a(32 * rows, rows), b(32, 1);
         Floats c(results);
         gemm_blocks(a.matrix(rows, 32), b.matrix(1, 32), c, mx_unit());
       }},
      {"kernel/gemm/gemm.hpp gemm_blocks", 64, same,
       [](std::size_t columns, std::size_t elements) {
         const Codes a(columns, blocks_of_32(columns)), b(elements, blocks_of_32(columns));
         Floats c(1);
         gemm_blocks(a.matrix(1, columns), b.matrix(1, columns), c, mx_unit());
       }},
  };
}

std::vector<SizesCase> matrices() {
  return {
      {"kernel/gemm/gemm.hpp gemm", 7, same,
       [](std::size_t rows, std::size_t results) {
         const Floats a = ones(1), b = ones(1);
         const std::vector<std::int32_t> row(rows, 0), column(1, 0);
         Floats c(results);
         gemm({.data = a.data(), .row = row, .column = column}, {b.data(), 1, 1}, c, {});
       }},
      {"kernel/gemm/gemm_batch.hpp gemm_batch", 7, same,
       [](std::size_t left, std::size_t right) {
         const Floats data = ones(1);
         const std::vector<std::int64_t> a(left, 0), b(right, 0);
         Floats c(left);
         gemm_batch({data.data(), a, 1, 1, 1, 1}, {data.data(), b, 1, 1, 1, 1}, c, {});
       }},
      {"kernel/gemm/gemm_batch.hpp gemm_batch", 7, same,
       [](std::size_t products, std::size_t results) {
         const Floats data = ones(1);
         const std::vector<std::int64_t> start(products, 0);
         Floats c(results);
         gemm_batch({data.data(), start, 1, 1, 1, 1}, {data.data(), start, 1, 1, 1, 1}, c, {});
       }},
      {"passes/file_formats.hpp count_formats", 64, same,
       [](std::size_t columns, std::size_t size) {
         const std::array formats{parse_tensor_format("mxfp8_e4m3")};
         (void)count_formats(ones(size), row_of(columns), formats);
       }},
  };
}

std::vector<SizesCase> casts() {
  const BlockFormat blocks = parse_block_format("mxfp8_e4m3");
  return {
      output_case("device/memory.hpp copy_values",
                  [](const Floats& in, Floats& out) {
                    copy_values(std::span<const float>(in), std::span<float>(out));
                  }),
      output_case("kernel/cast/round.hpp round",
                  [](const Floats& in, Floats& out) { round(in, out, {fp16}); }),
      output_case("kernel/cast/round.hpp round_stochastic_part",
                  [](const Floats& in, Floats& out) {
                    round_stochastic_part(in, out, {fp16, Rounding::stochastic}, {}, 3);
                  }),
      output_case("kernel/cast/convert.hpp convert", [](const Floats& in, Floats& out) { convert(in, out); }),
      output_case("kernel/cast/convert.hpp round_into",
                  [](const Floats& in, Floats& out) { round_into(in, out, {fp16}, {}); }),
      output_case("kernel/cast/cast_counters.hpp count_rounded",
                  [](const Floats& in, Floats& out) {
                    CastCounters counters;
                    count_rounded(in, out, fp16, counters);
                  }),
      output_case("kernel/block/quantise.hpp round_blocks",
                  [=](const Floats& in, Floats& out) { round_blocks(in, out, row_of(in.size()), blocks); }),
      output_case("kernel/block/quantise.hpp round_blocks",
                  [=](const Floats& in, Floats& out) { round_blocks(in, out, row_of(out.size()), blocks); }),
      {"stats/block_counts.hpp count_blocks", 64, same,
       [=](std::size_t in, std::size_t out) {
         Floats results(out);
         (void)count_blocks(ones(in), row_of(in), blocks, {}, results);
       },
       true},
      output_case("stats/block_counts.hpp count_blocks",
                  [=](const Floats& in, Floats& out) {
                    (void)count_blocks(in, row_of(out.size()), blocks, {}, out);
                  }),
  };
}

/// Matrices whose shape says another size than their array has.
std::vector<SizesCase> shapes() {
  const BlockFormat blocks = parse_block_format("mxfp8_e4m3");
  const auto quantised = [=](std::size_t columns) {
    return quantise_blocks(ones(columns), row_of(columns), blocks);
  };
  const auto operand_case = [](const char* format) {
    return SizesCase{
        "stats/operand_cast.hpp round_operand", 64, same,
        [cast = OperandCast{parse_tensor_format(format)}](std::size_t columns, std::size_t size) {
          Floats values = ones(size);
          (void)round_operand(values, row_of(columns), cast, OperandCounting::counted);
          (void)round_operand(values, row_of(columns), cast, OperandCounting::none);
        }};
  };
  return {
      operand_case("mxfp8_e4m3"),
      operand_case("fp8_e4m3"),
      {"stats/operand_cast.hpp transform_operand", 64, same,
       [](std::size_t columns, std::size_t size) {
         Floats values = ones(size);
         transform_operand(values, row_of(columns));
       }},
      {"kernel/block/quantise.hpp quantise_blocks", 64, same,
       [=](std::size_t columns, std::size_t size) {
         (void)quantise_blocks(ones(size), row_of(columns), blocks);
       }},
      {"kernel/block/quantise.hpp decode_blocks", 64, same,
       [=](std::size_t columns, std::size_t size) {
         Floats values(size);
         decode_blocks(quantised(columns), blocks, values);
       }},
      {"kernel/block/quantise.hpp decode_blocks", 64, same,
       [=](std::size_t columns, std::size_t size) {
         BlockCodes codes = quantised(columns);
         codes.elements.resize(size);
         Floats values(columns);
         decode_blocks(codes, blocks, values);
       }},
      {"kernel/block/quantise.hpp decode_blocks", 70, blocks_of_32,
       [=](std::size_t columns, std::size_t size) {
         BlockCodes codes = quantised(columns);
         codes.scales.resize(size);
         Floats values(columns);
         decode_blocks(codes, blocks, values);
       }},
  };
}

std::vector<SizesCase> sums() {
  return {
      {"kernel/reduce/reduce.hpp column_sums", 5, same,
       [](std::size_t columns, std::size_t size) {
         const Floats x = ones(columns);
         Floats results(size);
         column_sums({.x = x.data(), .rows = 1, .columns = static_cast<std::int64_t>(columns)}, {}, results);
       }},
      {"kernel/reduce/reduce.hpp counted_column_sums", 5, same,
       [](std::size_t columns, std::size_t size) {
         const Floats x = ones(columns);
         Floats results(size);
         (void)counted_column_sums({.x = x.data(), .rows = 1, .columns = static_cast<std::int64_t>(columns)},
                                   {}, results);
       }},
      products_case("kernel/reduce/cosine.hpp add_cosine_sums",
                    [](const Floats& x, const Floats& q) {
                      CosineSums sums;
                      add_cosine_sums(x, q, sums);
                    }),
      products_case(
          "kernel/reduce/distance.hpp distance_sums",
          [](const Floats& found, const Floats& expected) { (void)distance_sums(found, expected); }),
      {"kernel/reduce/magnitudes.hpp magnitude_sums", 5, same,
       [](std::size_t rows, std::size_t size) {
         std::vector<double> sums(size);
         magnitude_sums(ones(3 * rows), {.outer = rows, .summed = 3}, sums);
       }},
      {"kernel/reduce/sum_of_squares.hpp sums_of_squares", 3,
       [](std::size_t arrays) { return arrays * sum_of_squares_lanes; },
       [](std::size_t arrays, std::size_t size) {
         const Floats values = ones(11);
         const std::vector<std::span<const float>> all(arrays, values);
         std::vector<double> sums(size);
         sums_of_squares(all, 1, sums);
       }},
      {"kernel/reduce/reduce.hpp divided_sum", 9, one,
       [](std::size_t terms, std::size_t results) {
         Floats result(results);
         divided_sum(ones(terms), 2, {}, result);
       }},
      {"kernel/reduce/all_reduce.hpp write_addends", 40, [](std::size_t gradients) { return 2 * gradients; },
       [](std::size_t gradients, std::size_t bytes) {
         std::vector<std::byte> addends(bytes);
         (void)write_addends(ones(gradients), DType::f16, {}, addends);
       }},
  };
}

std::vector<SizesCase> updates() {
  const Site site{.step = 1, .tensor = "w"};
  return {
      products_case("kernel/update/update_effect.hpp update_effect",
                    [](const Floats& w, const Floats& dw) {
                      (void)update_effect(w, dw, {{fp16}, {fp16}, {}});
                    }),
      products_case("kernel/update/update_effect.hpp update_effects",
                    [](const Floats& w, const Floats& dw) {
                      std::vector<UpdateEffect> tiles(update_tiles(w.size()));
                      update_effects(w, dw, {{fp16}, {fp16}, {}}, 0, tiles);
                    }),
      {"kernel/update/update_effect.hpp update_effects", 3000, update_tiles,
       [](std::size_t weights, std::size_t count) {
         std::vector<UpdateEffect> tiles(count);
         update_effects(ones(weights), ones(weights), {{fp16}, {fp16}, {}}, 0, tiles);
       }},
      products_case(
          "stats/lost_updates.hpp count_lost_updates",
          [=](const Floats& w, const Floats& dw) { (void)count_lost_updates(site, {fp16}, w, dw); }),
      products_case(
          "stats/lost_updates.hpp update_ratios",
          [](const Floats& w, const Floats& dw) { (void)update_ratios(w, dw); }, 40000),
      products_case(
          "stats/weight_delta.hpp count_weight_delta",
          [](const Floats& before, const Floats& after) { (void)count_weight_delta(before, after); }),
  };
}

/// Functions that queue kernels: here they never get so far, since the arrays are not the device's.
std::vector<SizesCase> device_queues() {
  const auto bins = [](std::size_t /*size*/) { return binned::size; };
  const auto numbers = [](std::size_t /*size*/) { return cuda::update_effect_numbers; };
  const WeightStorage storage{{fp16}, {fp16}, {}};
  return {
      {"kernel/histogram/binned_histogram.hpp queue_histogram", 40, bins,
       [](std::size_t values, std::size_t size) {
         std::vector<std::int64_t> counts(size);
         cuda::queue_histogram(ones(values), counts, binade_edges(fp16));
       }},
      {"kernel/histogram/binned_histogram.hpp queue_ratio_histogram", 40, same,
       [](std::size_t weights, std::size_t others) {
         std::vector<std::int64_t> counts(binned::size);
         cuda::queue_ratio_histogram(ones(weights), ones(others), counts, binade_edges(fp16));
       }},
      {"kernel/histogram/binned_histogram.hpp queue_ratio_histogram", 40, bins,
       [](std::size_t weights, std::size_t size) {
         std::vector<std::int64_t> counts(size);
         cuda::queue_ratio_histogram(ones(weights), ones(weights), counts, binade_edges(fp16));
       }},
      {"kernel/update/update_effect.hpp queue_update_effect", 40, same,
       [=](std::size_t weights, std::size_t others) {
         std::vector<std::int64_t> counts(cuda::update_effect_numbers);
         cuda::queue_update_effect(ones(weights), ones(others), storage, counts);
       }},
      {"kernel/update/update_effect.hpp queue_update_effect", 40, numbers,
       [=](std::size_t weights, std::size_t size) {
         std::vector<std::int64_t> counts(size);
         cuda::queue_update_effect(ones(weights), ones(weights), storage, counts);
       }},
      {"kernel/reduce/reduce.hpp counted_column_sums", 5, same,
       [](std::size_t columns, std::size_t counters) {
         const Floats x = ones(columns);
         Floats results(columns);
         std::vector<ColumnCounters> of_columns(counters);
         const ColumnTerms terms{.x = x.data(), .rows = 1, .columns = static_cast<std::int64_t>(columns)};
         cuda::counted_column_sums(terms, {}, results, of_columns);
       }},
  };
}

std::vector<SizesCase> host_functions() {
  std::vector<SizesCase> all;
  for (const auto& cases :
       {dot_products(), block_products(), matrices(), casts(), shapes(), sums(), updates()})
    all.insert(all.end(), cases.begin(), cases.end());
  return all;
}

/// With a message that names the function.
void check_refused(const SizesCase& tried, std::size_t first, std::size_t second) {
  if (second == tried.second(first) || (second == 0 && tried.none_stands_for_it)) return;
  INFO(tried.function << " of " << first << " and " << second);
  const std::string name(tried.function.substr(tried.function.find(' ') + 1));
  check_says(message_of<InvalidArgument>([&] { tried.call(first, second); }), {name + ":"});
}

void check_all_refused(const SizesCase& tried) {
  const std::size_t n = tried.size, right = tried.second(n);
  for (const std::size_t other : {std::size_t{0}, std::size_t{1}, right - 1, right + 1})
    check_refused(tried, n, other);
  for (const std::size_t other : {std::size_t{0}, std::size_t{1}, n - 1, n + 1})
    check_refused(tried, other, right);
  std::mt19937 generator(7);
  std::uniform_int_distribution<std::size_t> size(0, 2 * n);
  for (int i = 0; i < 100; ++i) check_refused(tried, size(generator), size(generator));
}

TEST_CASE("functions of two arrays take sizes that belong together", "[sizes]") {
  for (const SizesCase& tried : host_functions()) {
    INFO(tried.function << " of " << tried.size);
    CHECK_NOTHROW(tried.call(tried.size, tried.second(tried.size)));
  }
}

TEST_CASE("functions of two arrays refuse sizes that do not belong together", "[sizes]") {
  for (const SizesCase& tried : host_functions()) check_all_refused(tried);
}

TEST_CASE("rows of block scales are made of as many scales as their matrix has", "[sizes]") {
  const BlockFormat blocks = parse_block_format("mxfp8_e4m3");
  BlockCodes codes = quantise_blocks(ones(3 * 70), {3, 70}, blocks);
  CHECK(scales_of_rows(codes, blocks.block, 16).size() == 3 * 5);
  for (const std::size_t size : {0U, 1U, 8U, 10U}) {
    codes.scales.resize(size);
    check_says(message_of<InvalidArgument>([&] { (void)scales_of_rows(codes, blocks.block, 16); }),
               {"scales_of_rows", "9 and " + std::to_string(size)});
  }
}

TEST_CASE("a matrix has no negative side", "[sizes]") {
  Floats values = ones(64);
  for (const MatrixShape& shape : {MatrixShape{-1, -64}, MatrixShape{-8, 8}, MatrixShape{0, -1}}) {
    check_says(message_of<InvalidArgument>([&] { transform_operand(values, shape); }),
               {"transform_operand: 64 values are no matrix of"});
  }
}

TEST_CASE("queues of kernels refuse sizes that do not belong together", "[sizes]") {
  for (const SizesCase& tried : device_queues()) check_all_refused(tried);
}

TEST_CASE("a step of a tensor core refuses more products than it has", "[sizes]") {
  for (const std::size_t count : {17U, 64U, 65U, 100U}) {
    check_says(
        message_of<InvalidArgument>([&] { (void)fused_step(ones(count), ones(count), 0, hopper_step()); }),
        {"fused_step: " + std::to_string(count), "16"});
  }
  TensorCoreStep none = hopper_step();
  for (const int products : {-1, 0, 65}) {
    none.products = products;
    check_says(message_of<InvalidArgument>([&] { (void)dot(ones(4), ones(4), 0, none); }),
               {"between 1 and 64"});
  }
}

TEST_CASE("the message of unequal sizes names the function and both sizes", "[sizes]") {
  check_says(message_of<InvalidArgument>([] { (void)dot(ones(64), ones(63), 0, hopper_step()); }),
             {"dot: arrays of 64 and 63 elements; give as many of both"});
}

}  // namespace
}  // namespace halfscope::unequal_sizes_test
