// Products of every instruction set and of the device, and the definition.
#include "tests/support/matrix_products.hpp"

#include <algorithm>

#include <halfscope/core/isa.hpp>
#include <halfscope/kernel/cast/convert.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/device_parity.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope {
namespace {

std::vector<float> defined_product(const GatherMatrix& a, const std::vector<float>& b, std::int64_t columns,
                                   const AccumulateModel& model) {
  std::vector<float> c;
  std::vector<float> row(a.column.size()), column(a.column.size());
  for (const std::int32_t m : a.row) {
    for (std::size_t k = 0; k < row.size(); ++k) row[k] = a.data[m + a.column[k]];
    for (std::size_t n = 0; n < static_cast<std::size_t>(columns); ++n) {
      for (std::size_t k = 0; k < row.size(); ++k) column[k] = b[k * static_cast<std::size_t>(columns) + n];
      c.push_back(accumulate_products(row, column, model));
    }
  }
  return c;
}

/// `values` on the device, in `storage`.
Array on_device(const std::vector<float>& values, DType storage) {
  Array array({std::ssize(values)}, Device::cpu);
  std::copy(values.begin(), values.end(), array.values().begin());
  return stored_copy(array.to(Device::cuda), storage);
}

bool is_cpu_only(const AccumulateModel& model) {
  try {
    check_device_product_model(model);
    return false;
  } catch (const InvalidArgument&) {
    return true;
  }
}

void check_product(const Operands& operands, const Extents& extents, const GatherMatrix& matrix,
                   const AccumulateModel& model) {
  const std::vector<float> expected = defined_product(matrix, operands.b, extents.columns, model);
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    INFO(to_string(model) << " on " << name_of(isa) << ": " << extents.rows << " x " << extents.columns
                          << " over " << extents.depth);
    std::vector<float> c(expected.size(), -1.0f);
    gemm(matrix, {operands.b.data(), extents.depth, extents.columns}, c, model);
    CHECK(count_different(c, expected) == 0);
  }
  if (!can_use_device() || is_cpu_only(model)) return;
  INFO(to_string(model) << " on the device: " << extents.rows << " x " << extents.columns << " over "
                        << extents.depth);
  CHECK(count_different(device_product(operands, extents, matrix, model), expected) == 0);
}

}  // namespace

std::vector<AccumulateModel> product_models() {
  std::vector<AccumulateModel> models;
  for (const char* name : {"fp32_sequential",
                           "fp32_chunked(256)",
                           "fp16_sequential",
                           "fp16_chunked(64)",
                           "fp16_chunked(3)",
                           "bf16_sequential",
                           "fp8_e4m3_sequential",
                           "e6m9_chunked(300)",
                           "fp16_fused",
                           "fp32_fused",
                           "bf16_fused",
                           "fp8_e4m3_fused",
                           "e8m21_fused",
                           "fp16_ftz_fused",
                           "bf16_tensor_core(ampere)",
                           "bf16_tensor_core(hopper)",
                           "tf32_tensor_core(ampere)",
                           "fp8_e5m2_tensor_core(hopper)",
                           "fp8_e4m3_tensor_core(blackwell)",
                           "fp8_e4m3_tensor_core(hopper, promote=32)",
                           "tensor_core(ampere, promote=64)",
                           "tensor_core(products=5, bits=24)",
                           "bf16_tensor_core(products=16, bits=25, zero=-3)",
                           "tensor_core(products=16, bits=25, result=fp16)",
                           "tensor_core(products=8, bits=26)",
                           "tensor_core(products=16, bits=24, result=e8m13/toward_zero)",
                           "fp32_tensor_core(products=4, bits=48)",
                           "fp6_e3m2_tensor_core(products=8, bits=25)",
                           "bf16_matrix_core(cdna1)"}) {
    models.push_back(parse_accumulate_model(name));
  }
  for (const auto& entry : accumulate_models) {
    if (entry.name.starts_with("tensor_core")) models.push_back(parse_accumulate_model(entry.name));
  }
  for (const auto& entry : cpu_product_models) models.push_back(parse_accumulate_model(entry.name));
  return models;
}

std::size_t count_different(const std::vector<float>& x, const std::vector<float>& y) {
  REQUIRE(x.size() == y.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < x.size(); ++i) different += same_bits(x[i], y[i]) ? 0u : 1u;
  return different;
}

std::vector<float> device_product(const Operands& operands, const Extents& extents,
                                  const GatherMatrix& matrix, const AccumulateModel& model) {
  const SimulatedDevice simulated;
  const DeviceScope scope(Device::cuda);
  const Array a = on_device(operands.a, operands.a_storage), b = on_device(operands.b, operands.b_storage);
  const auto row = Memory<std::int32_t>::from(matrix.row), column = Memory<std::int32_t>::from(matrix.column);
  Memory<float> c(size_of(extents.rows, extents.columns));
  gemm({ElementReader(a.view()), row.values(), column.values(), matrix.layout, matrix.stride},
       {ElementReader(b.view()), extents.depth, extents.columns}, c.values(), model);
  return c.to_host();
}

void check_products(const Operands& operands, const Extents& extents, const AccumulateModel& model) {
  for (const MatrixLayout layout : {MatrixLayout::row_major, MatrixLayout::transposed}) {
    const bool transposed = layout == MatrixLayout::transposed;
    const std::int64_t stride = transposed ? extents.rows : extents.depth;
    const auto rows = strided_offsets(extents.rows, transposed ? 1 : stride);
    const auto columns = strided_offsets(extents.depth, transposed ? stride : 1);
    for (const std::int64_t known_stride : {stride, std::int64_t{0}}) {
      check_product(operands, extents,
                    {operands.a.data(), rows.values(), columns.values(), layout, known_stride}, model);
    }
  }
}

Operands uniform_operands(const Extents& extents) {
  return {uniform_floats(size_of(extents.rows, extents.depth), -1, 1, 1),
          uniform_floats(size_of(extents.depth, extents.columns), -1, 1, 2)};
}

}  // namespace halfscope
