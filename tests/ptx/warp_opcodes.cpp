// Opcodes of a whole warp, ldmatrix and mma.sync, and the asynchronous copies that feed them.
// Source: PTX ISA, chapters "Warp Level Matrix Instructions" and "Asynchronous Copy".
#include <array>
#include <bit>

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
Matrix8 load_matrix(std::span<Thread> warp, std::size_t first, const Operand& address) {
  Matrix8 matrix;
  for (std::size_t row = 0; row < matrix.size(); ++row) {
    const u64 from = warp[first + row].get<u64>(address);
    warp.front().environment().shared.load_for_warp(from, std::as_writable_bytes(std::span(matrix[row])));
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
void ldmatrix_x4(std::span<Thread> warp, const Operand* o) {
  std::array<Matrix8, 4> matrices;
  for (std::size_t i = 0; i < matrices.size(); ++i) matrices[i] = load_matrix(warp, 8 * i, o[4]);
  for (std::size_t lane = 0; lane < warp_threads; ++lane) {
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      warp[lane].set(o[i], two_elements<transposed>(matrices[i], lane));
    }
  }
}
template <bool transposed>
constexpr Action ldmatrix() {
  Action action{{}, Kind::warp, nullptr, ldmatrix_x4<transposed>};
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

float short_element(const Thread& thread, const Operand* registers, std::size_t element,
                    const FloatFormat& format) {
  return decode(thread.get<u32>(registers[element / 2]) >> (element % 2 * 16), format);
}

float sum_element(const Thread& thread, const Operand* registers, std::size_t element, const Shape& shape) {
  if (shape.sum != fp32) return short_element(thread, registers, element, shape.sum);
  return thread.get<float>(registers[element]);
}

Fragments collect(std::span<Thread> warp, const Operand* o, const Shape& shape) {
  const Operand* a = o + shape.c_registers();
  const Operand* b = a + shape.a_registers();
  const Operand* c = b + shape.b_registers();
  Fragments all;
  for (std::size_t lane = 0; lane < warp_threads; ++lane) {
    for (std::size_t i = 0; i < 2u * shape.a_registers(); ++i) {
      const auto [row, k] = position_in_a(lane, i);
      all.a[row][k] = short_element(warp[lane], a, i, shape.input);
    }
    for (std::size_t i = 0; i < 2u * shape.b_registers(); ++i) {
      const auto [k, column] = position_in_b(lane, i);
      all.b[column][k] = short_element(warp[lane], b, i, shape.input);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      const auto [row, column] = position_in_c(lane, i);
      all.c[row][column] = sum_element(warp[lane], c, i, shape);
    }
  }
  return all;
}

void scatter(std::span<Thread> warp, const Operand* o, const Shape& shape, const Fragments& all) {
  for (std::size_t lane = 0; lane < warp_threads; ++lane) {
    std::array<float, 4> sums;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const auto [row, column] = position_in_c(lane, i);
      sums[i] = all.c[row][column];
    }
    for (std::size_t i = 0; i < shape.c_registers(); ++i) {
      const u32 pair = code_of(sums[2 * i % 4], fp16) | u32{code_of(sums[(2 * i + 1) % 4], fp16)} << 16;
      warp[lane].set(o[i], shape.sum == fp32 ? std::bit_cast<u32>(sums[i]) : pair);
    }
  }
}

/// The step of the device's tensor core; m16n8k16 and bf16 came with 8.0.
const TensorCoreStep& step_of(std::span<Thread> warp, const Shape& shape) {
  const ComputeCapability capability = warp.front().environment().capability;
  if (capability.major < 8 && (shape.depth == 16 || shape.input == bf16)) {
    throw Violation("this mma.sync needs compute capability 8.0");
  }
  return tensor_core_step(tensor_core_of_capability(capability), shape.input, shape.sum);
}

template <std::size_t depth, const FloatFormat& input, const FloatFormat& sum>
void multiply(std::span<Thread> warp, const Operand* o) {
  constexpr Shape shape{depth, input, sum};
  const TensorCoreStep& step = step_of(warp, shape);
  Fragments all = collect(warp, o, shape);
  for (std::size_t row = 0; row < all.c.size(); ++row) {
    for (std::size_t column = 0; column < all.b.size(); ++column) {
      float& c = all.c[row][column];
      c = dot(std::span(all.a[row]).first(depth), std::span(all.b[column]).first(depth), c, step);
    }
  }
  scatter(warp, o, shape, all);
}
template <std::size_t depth, const FloatFormat& input, const FloatFormat& sum>
constexpr Action mma() {
  constexpr Shape shape{depth, input, sum};
  Action action{{}, Kind::warp, nullptr, multiply<depth, input, sum>};
  action.signature.add(item_of<u32>(ItemKind::result, shape.c_registers()));
  for (const std::uint8_t count : {shape.a_registers(), shape.b_registers(), shape.c_registers()}) {
    action.signature.add(item_of<u32>(ItemKind::source, count));
  }
  return action;
}

/// 16 bytes, the first `bytes` of which are read and the others zero.
void issue_copy(Thread& thread, u64 to, u64 from, u64 size, u64 bytes) {
  if (size != 16) throw Violation("cp.async.cg copies 16 bytes");
  thread.copies().issue(thread.number(), {to, from, bytes}, thread.environment().shared);
}
constexpr Action copy(bool has_source_size) {
  Action action{{}, Kind::thread, nullptr, nullptr};
  action.signature.add(address_in(Space::shared)).add(address_in(Space::global));
  action.signature.add({ItemKind::constant, Width::bits32});
  if (has_source_size) action.signature.add(item_of<u32>(ItemKind::source));
  return action;
}
constexpr Action copy_all() {
  Action action = copy(false);
  action.thread = [](Thread& t, const Operand* o) {
    issue_copy(t, t.get<u64>(o[0]), t.get<u64>(o[1]), o[2].value, o[2].value);
  };
  return action;
}
constexpr Action copy_some() {
  Action action = copy(true);
  action.thread = [](Thread& t, const Operand* o) {
    issue_copy(t, t.get<u64>(o[0]), t.get<u64>(o[1]), o[2].value, t.get<u32>(o[3]));
  };
  return action;
}
void commit_group(Thread& thread, const Operand*) {
  thread.copies().commit();
}
constexpr Action wait_group() {
  Action action{{}, Kind::thread, nullptr, nullptr};
  action.signature.add({ItemKind::constant, Width::bits32});
  action.thread = [](Thread& t, const Operand* o) {
    t.copies().wait(t.number(), o[0].value, t.environment().global, t.environment().shared);
  };
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
    Opcode{"cp.async.cg.shared.global", copy_all()},
    Opcode{"cp.async.cg.shared.global", copy_some()},
    Opcode{"cp.async.commit_group", {{}, Kind::thread, commit_group, nullptr}},
    Opcode{"cp.async.wait_group", wait_group()},
};

}  // namespace

std::span<const Opcode> warp_opcodes() {
  return table;
}

}  // namespace halfscope::ptx
