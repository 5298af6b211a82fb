// ldmatrix and mma.sync against the tensor-core models of three generations, and asynchronous copies.
#include <random>

#include <halfscope/arithmetic/tensor_core.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>

#include "tests/ptx/run_kernel.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::ptx::matrix_test {
namespace {

/// The upper half, one word per thread, of a warp's lane address: matrix lane / 8, row lane % 8, 16 bytes
/// each.
constexpr std::string_view copy_to_shared = R"(
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd5, %r1, 16;
	add.s64 	%rd3, %rd1, %rd5;
	shl.b32 	%r2, %r1, 4;
	mov.u32 	%r3, dynamic;
	add.s32 	%r4, %r3, %r2;
	ld.global.v4.u32 	{%r5, %r6, %r7, %r8}, [%rd3];
	st.shared.v4.u32 	[%r4], {%r5, %r6, %r7, %r8};
	bar.sync 	0;
	add.s64 	%rd4, %rd2, %rd5;
)";

TEST_CASE("ldmatrix gives each lane two neighbours of a row, or of a column", "[ptx]") {
  // Element (row, column) of matrix m is the number 64 m + 8 row + column.
  std::vector<std::uint32_t> in(128);
  for (std::uint32_t i = 0; i < in.size(); ++i) in[i] = 2 * i | (2 * i + 1) << 16;
  for (const bool transposed : {false, true}) {
    const std::string body = fmt::format(
        "{}\tldmatrix.sync.aligned.m8n8.x4{}.shared.b16 \t{{%r9, %r10, %r11, %r12}}, [%r4];\n"
        "\tst.global.v4.u32 \t[%rd4], {{%r9, %r10, %r11, %r12}};",
        copy_to_shared, transposed ? ".trans" : "");
    const std::vector<std::uint32_t> out = run_in_out({body, in, 128, 1, 32, 512});
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      for (std::uint32_t m = 0; m < 4; ++m) {
        const std::uint32_t first =
            64 * m + (transposed ? 16 * (lane % 4) + lane / 4 : 8 * (lane / 4) + 2 * (lane % 4));
        INFO("lane " << lane << ", matrix " << m << (transposed ? ", transposed" : ""));
        CHECK(out[4 * lane + m] == (first | (first + (transposed ? 8 : 1)) << 16));
      }
    }
  }
}

TEST_CASE("ldmatrix needs rows on 16 bytes, ordered after their writes", "[ptx]") {
  constexpr std::string_view load =
      "\tldmatrix.sync.aligned.m8n8.x4.shared.b16 \t{%r9, %r10, %r11, %r12}, [%r4];\n";
  const std::vector<std::uint32_t> in(128);
  const auto fault = [&](std::string_view between) {
    return message_of<Fault>([&] {
      (void)run_in_out(
          {std::string(copy_to_shared) + std::string(between) + std::string(load), in, 0, 1, 32, 512});
    });
  };
  check_says(fault("\tadd.s32 \t%r4, %r4, 8;\n"), {"misaligned"});
  check_says(fault("\tadd.s32 \t%r4, %r4, 16;\n"), {"out of bounds"});
  check_says(fault("\tst.shared.u32 \t[%r4], %r5;\n"), {"race"});
}

struct Product {
  std::string_view opcode;
  std::size_t depth;
  FloatFormat input;
  FloatFormat sum;
};
constexpr std::array products{
    Product{"m16n8k8.row.col.f16.f16.f16.f16", 8, fp16, fp16},
    Product{"m16n8k8.row.col.f32.f16.f16.f32", 8, fp16, fp32},
    Product{"m16n8k8.row.col.f32.bf16.bf16.f32", 8, bf16, fp32},
    Product{"m16n8k16.row.col.f16.f16.f16.f16", 16, fp16, fp16},
    Product{"m16n8k16.row.col.f32.f16.f16.f32", 16, fp16, fp32},
    Product{"m16n8k16.row.col.f32.bf16.bf16.f32", 16, bf16, fp32},
};

struct Generation {
  ComputeCapability capability;
  TensorCoreGeneration core;
};
constexpr std::array generations{
    Generation{{7, 5}, TensorCoreGeneration::turing},
    Generation{{8, 0}, TensorCoreGeneration::ampere},
    Generation{{9, 0}, TensorCoreGeneration::hopper},
};

/// Matrices of numbers of a wide range; a few are special.
struct Matrices {
  std::vector<float> a, b, c;  // (16, depth), (depth, 8), (16, 8)
};

std::vector<float> random_numbers(std::size_t count, const FloatFormat& format, std::mt19937& random) {
  std::vector<float> numbers;
  for (std::size_t i = 0; i < count; ++i) {
    const auto magnitude =
        std::ldexp(static_cast<float>(random() % 4096), static_cast<int>(random() % 12) - 16);
    numbers.push_back(halfscope::round(random() % 2 == 0 ? magnitude : -magnitude, {.format = format}));
  }
  return numbers;
}

Matrices random_matrices(const Product& p, std::mt19937& random) {
  Matrices m{random_numbers(16 * p.depth, p.input, random), random_numbers(8 * p.depth, p.input, random),
             random_numbers(128, p.sum, random)};
  m.a[3 * p.depth] = std::numeric_limits<float>::infinity();  // row 3: infinities and NaNs
  m.c[17] = std::numeric_limits<float>::quiet_NaN();
  return m;
}

/// Two numbers as a register has them, the first in the lower half.
std::uint32_t pair_of(float first, float second, const FloatFormat& format) {
  return encode(first, format) | encode(second, format) << 16;
}

// The fragments as figures of the ISA have them, by lane: group = lane / 4, place = lane % 4.
std::vector<std::uint32_t> registers_of(std::uint32_t lane, const Product& p, const Matrices& m) {
  const std::size_t group = lane / 4, place = lane % 4 * 2;
  std::vector<std::uint32_t> all;
  const auto a = [&](std::size_t row, std::size_t k) {
    const float* at = &m.a[row * p.depth + k];
    all.push_back(pair_of(at[0], at[1], p.input));
  };
  for (std::size_t k = 0; k < p.depth; k += 8) {
    a(group, k + place);
    a(group + 8, k + place);
  }
  for (std::size_t k = 0; k < p.depth; k += 8) {
    all.push_back(pair_of(m.b[(k + place) * 8 + group], m.b[(k + place + 1) * 8 + group], p.input));
  }
  for (const std::size_t row : {group, group + 8}) {
    const float* at = &m.c[row * 8 + place];
    if (p.sum == fp16) {
      all.push_back(pair_of(at[0], at[1], fp16));
    } else {
      all.insert(all.end(), {to_bits(at[0]), to_bits(at[1])});
    }
  }
  return all;
}

/// {%r10, %r11} from 10 on.
std::string vector_text(std::size_t first, std::size_t count) {
  std::string text = fmt::format("{{%r{}", first);
  for (std::size_t i = 1; i < count; ++i) text += fmt::format(", %r{}", first + i);
  return text + "}";
}

/// `words` registers per lane in, the sums out.
std::string product_kernel(const Product& p) {
  const std::size_t a = p.depth / 4, b = p.depth / 8, c = p.sum == fp32 ? 4 : 2;
  const std::size_t words = a + b + c;
  std::string body = fmt::format(
      "\tmov.u32 \t%r1, %tid.x;\n\tmul.wide.u32 \t%rd5, %r1, {};\n\tadd.s64 \t%rd3, %rd1, %rd5;\n"
      "\tmul.wide.u32 \t%rd5, %r1, {};\n\tadd.s64 \t%rd4, %rd2, %rd5;\n",
      4 * words, 4 * c);
  for (std::size_t i = 0; i < words; ++i)
    body += fmt::format("\tld.global.u32 \t%r{}, [%rd3+{}];\n", 10 + i, 4 * i);
  const std::string sums = vector_text(10 + a + b, c);
  const std::string b_text = b == 1 ? fmt::format("{{%r{}}}", 10 + a) : vector_text(10 + a, b);
  body += fmt::format("\tmma.sync.aligned.{} \t{}, {}, {}, {};\n", p.opcode, sums, vector_text(10, a), b_text,
                      sums);
  for (std::size_t i = 0; i < c; ++i)
    body += fmt::format("\tst.global.u32 \t[%rd4+{}], %r{};\n", 4 * i, 10 + a + b + i);
  return body;
}

std::vector<std::uint32_t> run_product(const Product& p, const Matrices& m, const Generation& generation) {
  std::vector<std::uint32_t> in;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::vector<std::uint32_t> registers = registers_of(lane, p, m);
    in.insert(in.end(), registers.begin(), registers.end());
  }
  const std::size_t out = 32 * (p.sum == fp32 ? 4u : 2u);
  return run_in_out({product_kernel(p), in, out, 1, 32}, {Schedule::forward, 0, generation.capability});
}

float model_of(const Product& p, const Matrices& m, std::size_t row, std::size_t column,
               TensorCoreGeneration core) {
  std::vector<float> a, b;
  for (std::size_t k = 0; k < p.depth; ++k) {
    a.push_back(m.a[row * p.depth + k]);
    b.push_back(m.b[k * 8 + column]);
  }
  return dot(a, b, m.c[row * 8 + column], tensor_core_step({core}, p.input, p.sum));
}

/// The bits of an element of D in the registers that the kernel wrote.
std::uint32_t element_of(const std::vector<std::uint32_t>& out, const Product& p, std::size_t row,
                         std::size_t column) {
  const std::size_t lane = row % 8 * 4 + column / 2, element = row / 8 * 2 + column % 2;
  if (p.sum == fp32) return out[lane * 4 + element];
  return (out[lane * 2 + element / 2] >> (element % 2 * 16)) & 0xFFFF;
}

void check_product(const Product& p, const Generation& generation, const Matrices& m) {
  const std::vector<std::uint32_t> out = run_product(p, m, generation);
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      INFO(p.opcode << " on " << name_of(generation.core) << ", row " << row << ", column " << column);
      const float expected = model_of(p, m, row, column, generation.core);
      std::uint32_t bits = p.sum == fp32 ? to_bits(expected) : encode(expected, fp16);
      if (std::isnan(expected)) bits = p.sum == fp32 ? 0x7FFF'FFFF : 0x7FFF;
      CHECK(element_of(out, p, row, column) == bits);
    }
  }
}

TEST_CASE("mma.sync takes the steps of its generation's tensor core", "[ptx]") {
  std::mt19937 random(1);
  for (const Generation& generation : generations) {
    for (const Product& p : products) {
      const Matrices m = random_matrices(p, random);
      if (generation.capability.major == 7 && (p.depth == 16 || p.input == bf16)) {
        const std::string message = message_of<Fault>([&] { (void)run_product(p, m, generation); });
        check_says(message, {"needs compute capability 8.0"});
      } else {
        check_product(p, generation, m);
      }
    }
  }
}

TEST_CASE("the tables of warp-wide opcodes and of matrix tests are the same", "[ptx]") {
  std::size_t multiplications = 0;
  for (const Opcode& opcode : warp_opcodes())
    multiplications += opcode.name.starts_with("mma.sync") ? 1u : 0u;
  CHECK(multiplications == products.size());
}

}  // namespace
}  // namespace halfscope::ptx::matrix_test
