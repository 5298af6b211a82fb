// Opcodes of a whole warp: ldmatrix and mma.sync.
// Source: PTX ISA, chapter "Warp Level Matrix Instructions".
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include <halfscope/arithmetic/detail/fused_step.hpp>
#include <halfscope/arithmetic/tensor_core.hpp>
#include <halfscope/format/encoding.hpp>

#include "tests/ptx/action.hpp"
#include "tests/ptx/fault.hpp"
#include "tests/ptx/fragments.hpp"
#include "tests/ptx/nan.hpp"

namespace halfscope::ptx {
namespace {

using Matrix8 = std::array<std::array<u16, 8>, 8>;

/// Rows of 16 bytes, whose addresses are in 8 lanes from `first` on.
Matrix8 load_matrix(Warp& warp, std::size_t first, const Operand& address) {
  Matrix8 matrix;
  for (std::size_t row = 0; row < matrix.size(); ++row) {
    const u64 from = warp.get<u64>(address, first + row);
    warp.environment().shared.load_for_warp(from, std::as_writable_bytes(std::span(matrix[row])));
  }
  return matrix;
}

template <bool transposed>
u32 two_elements(const Matrix8& matrix, std::size_t lane) {
  u32 bits = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto [row, column] = position_in_loaded(lane, i);
    bits |= u32{transposed ? matrix[column][row] : matrix[row][column]} << (16 * i);
  }
  return bits;
}

/// Four matrices, the addresses of whose rows are in 8 lanes each; all are read before a register is written.
template <bool transposed>
void ldmatrix_x4(Warp& warp, Lanes, const Operand* o) {
  std::array<Matrix8, 4> matrices;
  for (std::size_t i = 0; i < matrices.size(); ++i) matrices[i] = load_matrix(warp, 8 * i, o[4]);
  for (std::size_t lane = 0; lane < warp_threads; ++lane) {
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      warp.set(o[i], lane, two_elements<transposed>(matrices[i], lane));
    }
  }
}
template <bool transposed>
constexpr Action ldmatrix() {
  Action action{{}, Kind::warp, ldmatrix_x4<transposed>};
  action.signature.add(item_of<u32>(ItemKind::result, 4)).add(address_in(Space::shared));
  return action;
}

/// A product of (16, depth) and (depth, 8); inputs and sums by their formats.
struct Shape {
  std::size_t depth;
  FloatFormat input;
  FloatFormat sum;
  [[nodiscard]] constexpr std::uint8_t a_registers() const { return static_cast<std::uint8_t>(depth / 4); }
  [[nodiscard]] constexpr std::uint8_t b_registers() const { return static_cast<std::uint8_t>(depth / 8); }
  [[nodiscard]] constexpr std::uint8_t c_registers() const { return sum == fp32 ? 4 : 2; }
};

struct Fragments {
  std::array<std::array<float, 16>, 16> a{};  // (row, k)
  std::array<std::array<float, 16>, 8> b{};   // (column, k)
  std::array<std::array<float, 8>, 16> c{};   // (row, column)
};

float short_element(Thread thread, const Operand* registers, std::size_t element, const FloatFormat& format) {
  return decode(thread.get<u32>(registers[element / 2]) >> (element % 2 * 16), format);
}

float sum_element(Thread thread, const Operand* registers, std::size_t element, const Shape& shape) {
  if (shape.sum != fp32) return short_element(thread, registers, element, shape.sum);
  return thread.get<float>(registers[element]);
}

Fragments collect(Warp& warp, const Operand* o, const Shape& shape) {
  const Operand* a = o + shape.c_registers();
  const Operand* b = a + shape.a_registers();
  const Operand* c = b + shape.b_registers();
  Fragments all;
  for (std::size_t lane = 0; lane < warp_threads; ++lane) {
    const Thread thread(warp, lane);
    for (std::size_t i = 0; i < 2u * shape.a_registers(); ++i) {
      const auto [row, k] = position_in_a(lane, i);
      all.a[row][k] = short_element(thread, a, i, shape.input);
    }
    for (std::size_t i = 0; i < 2u * shape.b_registers(); ++i) {
      const auto [k, column] = position_in_b(lane, i);
      all.b[column][k] = short_element(thread, b, i, shape.input);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      const auto [row, column] = position_in_c(lane, i);
      all.c[row][column] = sum_element(thread, c, i, shape);
    }
  }
  return all;
}

void scatter(Warp& warp, const Operand* o, const Shape& shape, const Fragments& all) {
  for (std::size_t lane = 0; lane < warp_threads; ++lane) {
    std::array<float, 4> sums;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const auto [row, column] = position_in_c(lane, i);
      sums[i] = all.c[row][column];
    }
    for (std::size_t i = 0; i < shape.c_registers(); ++i) {
      const u32 pair = code_of(sums[2 * i % 4], fp16) | u32{code_of(sums[(2 * i + 1) % 4], fp16)} << 16;
      warp.set(o[i], lane, shape.sum == fp32 ? std::bit_cast<u32>(sums[i]) : pair);
    }
  }
}

/// The step of the device's tensor core; m16n8k16 and bf16 came with 8.0.
TensorCoreStep step_of(const Warp& warp, const Shape& shape) {
  const ComputeCapability capability = warp.environment().capability;
  if (capability.major < 8 && (shape.depth == 16 || shape.input == bf16)) {
    throw Violation("this mma.sync needs compute capability 8.0");
  }
  return tensor_core_step(tensor_core_of_capability(capability), shape.input, shape.sum);
}

/// A row of a or a column of b.
struct Vector {
  std::array<float, 16> numbers{};
  std::array<halfscope::detail::Decoded, 16> decoded;
  bool finite = true;
  bool zero = true;

  Vector(const std::array<float, 16>& x, const FloatFormat& format) : numbers(x) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      finite = finite && std::isfinite(x[k]);
      zero = zero && x[k] == 0;
      decoded[k] = halfscope::detail::decode(x[k], format);
    }
  }
};

template <std::size_t count>
std::vector<Vector> decoded(const std::array<std::array<float, 16>, count>& vectors,
                            const FloatFormat& format) {
  std::vector<Vector> all;
  all.reserve(count);
  for (const auto& numbers : vectors) all.emplace_back(numbers, format);
  return all;
}

/// `dot` of the model, with numbers that are decoded once.
float dot_product(const Vector& a, const Vector& b, float c, std::size_t depth, const TensorCoreStep& step) {
  if (!a.finite || !b.finite || !std::isfinite(c))
    return dot(std::span(a.numbers).first(depth), std::span(b.numbers).first(depth), c, step);
  // A matrix's last tiles are filled up with zeros; of them alone a step makes +0.
  if ((a.zero || b.zero) && c == 0) return 0;
  const auto block = static_cast<std::size_t>(step.products);
  for (std::size_t first = 0; first < depth; first += block) {
    const auto product = [&](int i) {
      const std::size_t k = first + static_cast<std::size_t>(i);
      return halfscope::detail::multiply(a.decoded[k], b.decoded[k]);
    };
    c = halfscope::detail::add_finite<16>(product, static_cast<int>(std::min(block, depth - first)), c, step);
    if (!std::isfinite(c)) return c;
  }
  return c;
}

template <std::size_t depth, const FloatFormat& input, const FloatFormat& sum>
void multiply(Warp& warp, Lanes, const Operand* o) {
  constexpr Shape shape{depth, input, sum};
  const TensorCoreStep& step = step_of(warp, shape);
  Fragments all = collect(warp, o, shape);
  const std::vector<Vector> rows = decoded(all.a, input), columns = decoded(all.b, input);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t column = 0; column < columns.size(); ++column) {
      float& c = all.c[row][column];
      c = dot_product(rows[row], columns[column], c, depth, step);
    }
  }
  scatter(warp, o, shape, all);
}
template <std::size_t depth, const FloatFormat& input, const FloatFormat& sum>
constexpr Action mma() {
  constexpr Shape shape{depth, input, sum};
  Action action{{}, Kind::warp, multiply<depth, input, sum>};
  action.signature.add(item_of<u32>(ItemKind::result, shape.c_registers()));
  for (const std::uint8_t count : {shape.a_registers(), shape.b_registers(), shape.c_registers()}) {
    action.signature.add(item_of<u32>(ItemKind::source, count));
  }
  return action;
}

const std::array table{
    Opcode{"ldmatrix.sync.aligned.m8n8.x4.shared.b16", ldmatrix<false>()},
    Opcode{"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", ldmatrix<true>()},
    Opcode{"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", mma<8, fp16, fp16>()},
    Opcode{"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", mma<8, fp16, fp32>()},
    Opcode{"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", mma<8, bf16, fp32>()},
    Opcode{"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", mma<16, fp16, fp16>()},
    Opcode{"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", mma<16, fp16, fp32>()},
    Opcode{"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", mma<16, bf16, fp32>()},
};

}  // namespace

std::span<const Opcode> warp_opcodes() {
  return table;
}

}  // namespace halfscope::ptx
