// Emulated matrix products on the device: bit for bit those of the CPU, in every model that products have.
#include <algorithm>
#include <cmath>

#include <halfscope/format/catalogue.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>

#include "tests/support/device_parity.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/matrix_products.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::gemm_device_test {
namespace {

using Offsets = std::vector<std::int32_t>;

/// Whether products on either device add up as `model` says.
bool is_emulated(const AccumulateModel& model) {
  if (model.order == AccumulateOrder::cublas) return false;
  try {
    check_device_product_model(model);
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

/// A chunk that ends inside a pass of the device's blocks.
constexpr int odd_chunk = 5;

std::vector<AccumulateModel> candidates() {
  std::vector<AccumulateModel> models;
  models.reserve(accumulate_models.size());
  for (const NamedAccumulateModel& entry : accumulate_models)
    models.push_back(parse_accumulate_model(entry.name));
  for (const NamedFormat& entry : format_catalogue) {
    if (!entry.format.has_signed_zero()) continue;
    for (std::size_t i = 0; i < enum_names<AccumulateOrder>.size(); ++i) {
      const auto order = static_cast<AccumulateOrder>(i);
      const int chunk = order == AccumulateOrder::chunked ? odd_chunk : 0;
      models.push_back({.format = entry.format, .order = order, .chunk = chunk});
    }
  }
  for (const TensorCoreEntry& entry : tensor_core_table)
    models.push_back(
        {.format = entry.step.input, .order = AccumulateOrder::tensor_core, .core = {entry.generation}});
  return models;
}

/// Every one once.
const std::vector<AccumulateModel>& product_models() {
  static const std::vector<AccumulateModel> models = [] {
    std::vector<AccumulateModel> kept;
    for (const AccumulateModel& model : candidates()) {
      const bool is_new = std::find(kept.begin(), kept.end(), model) == kept.end();
      if (is_new && is_emulated(model)) kept.push_back(model);
    }
    return kept;
  }();
  return models;
}

/// The left operand by where its elements lie.
enum class Left : std::uint8_t { row_major, transposed, patches };
constexpr std::array lefts{Left::row_major, Left::transposed, Left::patches};

struct LeftMatrix {
  Offsets row{}, column{};
  MatrixLayout layout = MatrixLayout::row_major;
  std::int64_t stride = 0;

  [[nodiscard]] std::size_t elements() const {
    if (row.empty() || column.empty()) return 0;
    return static_cast<std::size_t>(row.back()) + static_cast<std::size_t>(column.back()) + 1;
  }
};

Offsets spaced(std::int64_t count, std::int64_t distance) {
  Offsets offsets;
  for (std::int64_t i = 0; i < count; ++i) offsets.push_back(static_cast<std::int32_t>(i * distance));
  return offsets;
}

/// Windows of three columns that overlap, from as many lines of an image as the depth asks for.
LeftMatrix patches(const Extents& extents) {
  constexpr std::int64_t width = 3;
  const std::int64_t line = extents.rows + width - 1;
  LeftMatrix matrix{.row = spaced(extents.rows, 1)};
  for (std::int64_t k = 0; k < extents.depth; ++k)
    matrix.column.push_back(static_cast<std::int32_t>(k / width * line + k % width));
  return matrix;
}

LeftMatrix left_matrix(Left left, const Extents& extents) {
  if (left == Left::patches) return patches(extents);
  if (left == Left::row_major)
    return {spaced(extents.rows, extents.depth), spaced(extents.depth, 1), MatrixLayout::row_major,
            extents.depth};
  return {spaced(extents.rows, 1), spaced(extents.depth, extents.rows), MatrixLayout::transposed,
          extents.rows};
}

enum class Numbers : std::uint8_t { uniform, codes };

/// Codes of `format`: subnormal numbers among them, and a few of any size, infinite or NaN, for of many of
/// those every sum would be.
std::vector<float> random_codes(std::size_t count, const FloatFormat& format, std::uint64_t seed) {
  const std::uint32_t top_exponent_bit = 1u << (format.exponent_bits + format.mantissa_bits - 1);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t code = RandomStream{seed}.bits(i);
    values[i] = decode(i % 97 == 5 ? code : code & ~top_exponent_bit, format);
  }
  if (count > 50) values[50] = INFINITY;
  if (count > 500) values[500] = NAN;
  if (count > 0) values.back() = INFINITY;  // among the last terms alone
  return values;
}

/// `values` after storage; FP32 keeps all bits, NaNs' too.
std::vector<float> stored_in(DType storage, std::vector<float> values) {
  if (storage == DType::f32) return values;
  for (float& x : values) x = round(x, {.format = format_of(storage)});
  return values;
}

struct Storages {
  DType a = DType::f32, b = DType::f32;
};

/// A product to compute on both devices.
struct Case {
  Extents extents;
  Left left = Left::row_major;
  Numbers numbers = Numbers::codes;
  Storages storages{};
};

std::vector<float> numbers_of(const Case& c, std::size_t count, const FloatFormat& format,
                              std::uint64_t seed) {
  return c.numbers == Numbers::uniform ? uniform_floats(count, -1, 1, seed)
                                       : random_codes(count, format, seed);
}

Operands operands_of(const Case& c, std::size_t left_elements, const FloatFormat& format) {
  const std::size_t right_elements = size_of(c.extents.depth, c.extents.columns);
  return {stored_in(c.storages.a, numbers_of(c, left_elements, format, 1)),
          stored_in(c.storages.b, numbers_of(c, right_elements, format, 2)), c.storages.a, c.storages.b};
}

/// NaNs too are the same bits: the definition of a product says which.
void check_case(const Case& c, const AccumulateModel& model) {
  const LeftMatrix left = left_matrix(c.left, c.extents);
  const Operands operands = operands_of(c, left.elements(), model.format);
  const GatherMatrix a{operands.a.data(), left.row, left.column, left.layout, left.stride};
  std::vector<float> expected(size_of(c.extents.rows, c.extents.columns));
  gemm(a, {operands.b.data(), c.extents.depth, c.extents.columns}, expected, model);
  INFO(to_string(model) << ": " << c.extents.rows << " x " << c.extents.columns << " over " << c.extents.depth
                        << ", left operand " << static_cast<int>(c.left) << ", numbers "
                        << static_cast<int>(c.numbers) << ", stored as " << name_of(c.storages.a) << " and "
                        << name_of(c.storages.b));
  CHECK(count_different(device_product(operands, c.extents, a, model), expected) == 0);
}

TEST_CASE("every model's product on the device is the CPU's", "[kernel][gemm][cuda]") {
  if (!can_use_device()) return;
  REQUIRE(product_models().size() >= accumulate_models.size());  // no check refused all
  for (const AccumulateModel& model : product_models()) {
    for (const Left left : lefts) {
      for (const Numbers numbers : {Numbers::uniform, Numbers::codes})
        check_case({.extents = {33, 17, 65}, .left = left, .numbers = numbers}, model);
    }
  }
}

TEST_CASE("products on the device of no, one and 31 terms, rows and columns", "[kernel][gemm][cuda]") {
  if (!can_use_device()) return;
  for (const AccumulateModel& model : product_models()) {
    for (const Left left : lefts) {
      for (const Extents& extents :
           {Extents{0, 5, 3}, {5, 0, 3}, {5, 3, 0}, {1, 1, 1}, {1, 31, 1}, {31, 1, 31}, {31, 31, 31}})
        check_case({.extents = extents, .left = left}, model);
    }
  }
}

/// Key of a kernel that the device compiles: models of the same three share one.
struct Kernel {
  AccumulateOrder order;
  FloatFormat format;  ///< fp16 and fp32 have their own adds, all others share them
  int products;        ///< products in a tensor core's step, else 0

  explicit Kernel(const AccumulateModel& model)
      : order(model.order), format(model.format == fp32 || model.format == fp16 ? model.format : bf16) {
    const bool tensor_core = order == AccumulateOrder::tensor_core;
    products = tensor_core ? tensor_core_step(model.core, model.format, fp32).products : 0;
    if (tensor_core) format = fp32;
  }
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// The first model of every kernel.
std::vector<AccumulateModel> models_by_kernel() {
  std::vector<AccumulateModel> models;
  std::vector<Kernel> kernels;
  for (const AccumulateModel& model : product_models()) {
    const Kernel kernel(model);
    if (std::find(kernels.begin(), kernels.end(), kernel) != kernels.end()) continue;
    kernels.push_back(kernel);
    models.push_back(model);
  }
  return models;
}

TEST_CASE("products on the device of numbers that are stored in 16 bits", "[kernel][gemm][cuda]") {
  if (!can_use_device()) return;
  constexpr std::array storages{DType::f32, DType::f16, DType::bf16};
  for (const AccumulateModel& model : models_by_kernel()) {
    for (const Left left : lefts) {
      for (const DType a : storages) {
        for (const DType b : storages)
          check_case({.extents = {9, 18, 37}, .left = left, .storages = {a, b}}, model);
      }
    }
  }
}

TEST_CASE("large products on the device, whose threads have several elements", "[kernel][gemm][cuda]") {
  if (!can_use_device()) return;
  for (const AccumulateModel& model : models_by_kernel()) {
    for (const Left left : {Left::row_major, Left::transposed})
      check_case({.extents = {513, 512, 3}, .left = left}, model);
  }
}

TEST_CASE("large products on the device of two passes", "[kernel][gemm][cuda]") {
  if (!can_use_device()) return;
  for (const AccumulateModel& model : models_by_kernel()) check_case({.extents = {509, 517, 33}}, model);
}

}  // namespace
}  // namespace halfscope::gemm_device_test
