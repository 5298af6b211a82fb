// A CUDA block on host threads, one for each of its own: shared memory, barriers, ldmatrix, mma.sync and
// cp.async as the PTX manual defines them, with a tensor-core model for the arithmetic.
#pragma once

#include <halfscope/arithmetic/tensor_core.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/gemm/detail/gemm_ordered_block.cuh>

#include <array>
#include <barrier>
#include <cstring>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

namespace halfscope {

/// When an asynchronous copy takes place: a right kernel does not notice.
enum class CopyTime : std::uint8_t { when_issued, when_waited_for };

/// State that the threads of a block share.
struct SimulatedBlock {
  TensorCoreStep step;
  CopyTime copy_time = CopyTime::when_issued;
  std::int64_t block = 0;
  std::vector<std::uint16_t> shared = std::vector<std::uint16_t>(ordered::shared_bytes / 2, 0x7E01);
  std::barrier<> all{ordered::threads};
  std::int64_t terms = 0;  ///< that the first thread's products took

  /// One warp's exchange of registers; two, used in turn, so that one barrier per exchange is enough.
  struct Warp {
    std::array<std::array<std::array<std::uint32_t, 12>, 32>, 2> given{};
    std::array<std::array<const std::uint16_t*, 32>, 2> addresses{};
    std::barrier<> barrier{32};
  };
  std::array<Warp, ordered::threads / 32> warps{};
};

/// One thread of it: the machine that the kernel's body is written against.
class SimulatedThread {
 public:
  SimulatedThread(SimulatedBlock& block, int thread)
      : block_(block), warp_(block.warps.at(static_cast<std::size_t>(thread / 32))), thread_(thread) {}

  [[nodiscard]] int thread() const { return thread_; }
  [[nodiscard]] int lane() const { return thread_ % 32; }
  [[nodiscard]] std::int64_t block() const { return block_.block; }
  [[nodiscard]] std::uint16_t* shared() { return block_.shared.data(); }
  void synchronize() { block_.all.arrive_and_wait(); }

  void copy_chunk(std::uint16_t* to, const std::uint16_t* from, int count) {
    const auto copy = [to, from, count] {
      std::memset(to, 0, 16);
      std::memcpy(to, from, static_cast<std::size_t>(count) * 2);
    };
    if (block_.copy_time == CopyTime::when_issued) return copy();
    open_.emplace_back(copy);
  }
  void end_group() {
    groups_.push_back(std::move(open_));
    open_.clear();
  }
  template <int pending>
  void wait_for_groups() {
    for (; groups_.size() > pending; groups_.pop_front()) {
      for (const auto& copy : groups_.front()) copy();
    }
  }

  /// PTX, "ldmatrix": lane 8 q + r gives row r of matrix q, and receives two elements of row lane / 4, or
  /// transposed of column lane / 4.
  template <bool transposed>
  void load_matrices(std::uint32_t (&to)[4], const std::uint16_t* from) {
    warp_.addresses[turn_][index()] = from;
    const auto& rows = warp_.addresses[exchange()];
    const std::size_t line = index() / 4, pair = index() % 4 * 2;
    for (std::size_t q = 0; q < 4; ++q) {
      const auto element = [&](std::size_t i) -> std::uint32_t {
        return transposed ? rows[8 * q + pair + i][line] : rows[8 * q + line][pair + i];
      };
      to[q] = element(0) | element(1) << 16;
    }
  }

  template <typename V>
  void multiply_16(ordered::Sums<V>& sums, const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
    multiply<V, 16>(sums, {a[0], a[1], a[2], a[3], b0, b1});
  }
  template <typename V>
  void multiply_8(ordered::Sums<V>& sums, std::uint32_t a0, std::uint32_t a1, std::uint32_t b) {
    multiply<V, 8>(sums, {a0, a1, 0, 0, b, 0});
  }

  template <DType output>
  [[nodiscard]] std::uint16_t narrowed(float x) const {
    const FloatFormat format = format_of(output);
    return static_cast<std::uint16_t>(encode(round(x, {.format = format}), format));
  }

 private:
  [[nodiscard]] std::size_t index() const { return static_cast<std::size_t>(lane()); }

  /// Waits for the warp; the exchange that it may now read.
  std::size_t exchange() {
    warp_.barrier.arrive_and_wait();
    const std::size_t full = turn_;
    turn_ = 1 - turn_;
    return full;
  }

  /// PTX, "Matrix fragments for mma.m16n8k16" and "m16n8k8": element (row, k) of a is half k % 2 of register
  /// row / 8 + 2 (k / 8) of lane 4 (row % 8) + k % 8 / 2; (k, column) of b is half k % 2 of register k / 8 of
  /// lane 4 column + k % 8 / 2; a lane's sums are rows lane / 4 and 8 below, columns 2 (lane % 4) and the
  /// next.
  template <typename V, std::size_t terms>
  void multiply(ordered::Sums<V>& sums, const std::array<std::uint32_t, 6>& operands) {
    std::copy(operands.begin(), operands.end(), warp_.given[turn_][index()].begin());
    const auto& given = warp_.given[exchange()];
    if (thread_ == 0) block_.terms += static_cast<std::int64_t>(terms);
    const auto number = [](std::uint32_t pair, std::size_t half) {
      return decode(pair >> (16 * half) & 0xFFFFu, format_of(V::input));
    };
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t row = index() / 4 + i / 2 * 8, column = index() % 4 * 2 + i % 2;
      std::array<float, terms> a, b;
      for (std::size_t k = 0; k < terms; ++k) {
        a[k] = number(given[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], k % 2);
        b[k] = number(given[column * 4 + k % 8 / 2][4 + k / 8], k % 2);
      }
      if constexpr (V::sum == DType::f32) {
        sums.of[i] = dot(a, b, sums.of[i], block_.step);
      } else {
        const float c = decode(sums.of[i / 2] >> (16 * (i % 2)) & 0xFFFFu, fp16);
        const std::uint32_t code = encode(dot(a, b, c, block_.step), fp16);
        sums.of[i / 2] =
            i % 2 == 0 ? (sums.of[i / 2] & 0xFFFF0000u) | code : (sums.of[i / 2] & 0xFFFFu) | code << 16;
      }
    }
  }

  SimulatedBlock& block_;
  SimulatedBlock::Warp& warp_;
  int thread_;
  std::size_t turn_ = 0;
  std::vector<std::function<void()>> open_;
  std::deque<std::vector<std::function<void()>>> groups_;
};

/// Runs the kernel's body for every block of the product, one block after the other. Returns how many terms
/// the products of the blocks' first threads took.
template <typename V>
std::int64_t run_simulated(const ordered::Problem& problem, DType output, const TensorCoreStep& step,
                           CopyTime copy_time) {
  const std::int64_t blocks = ordered::block_count(problem.a.extent, problem.b.extent);
  std::int64_t terms = 0;
  for (std::int64_t index = 0; index < blocks; ++index) {
    SimulatedBlock block{.step = step, .copy_time = copy_time, .block = index};
    std::vector<std::jthread> threads;
    threads.reserve(ordered::threads);
    for (int thread = 0; thread < ordered::threads; ++thread) {
      threads.emplace_back([&block, &problem, output, thread] {
        SimulatedThread machine(block, thread);
        ordered::run_block<V>(machine, problem, output);
      });
    }
    threads.clear();  // joins them
    terms += block.terms;
  }
  return terms;
}

}  // namespace halfscope
