// Matrix products as tensor cores add them up, compiled once per instruction set: passes over the terms,
// tiles of rows by a vector of columns.
#include <halfscope/kernel/gemm/detail/gemm_tensor_core_simd.hpp>

#include <halfscope/kernel/detail/scratch.hpp>
#include <halfscope/kernel/detail/vector.hpp>
#include <halfscope/kernel/gemm/detail/tensor_core_lanes.hpp>
#include <halfscope/kernel/gemm/detail/tensor_core_pack.hpp>

namespace halfscope {
namespace {

constexpr std::size_t tile_strips = 8, tile_rows = tile_strips * strip_rows;

/// A tile's sums, and for the steps whose exponents share words what their products' exponents allow.
struct Tile {
  Strip c[tile_strips];
  Ints products[4][tile_strips][strip_rows];
  bool special[tile_strips];
};

template <typename Scales, std::size_t most_products>
class Kernel {
 public:
  Kernel(const GatherMatrix& a, const RightMatrix& b, float* c, const TensorCoreStep& step)
      : a_(a), b_(b), c_(c), columns_(static_cast<std::size_t>(b.columns)), step_(step) {}

  void run(const OutputRange& range) const {
    const auto first = static_cast<std::size_t>(range.rows.first);
    const std::size_t rows = static_cast<std::size_t>(range.rows.last) - first;
    const std::size_t padded = rounded_up(rows, strip_rows), depth = a_.column.size();
    const Scratch<float> values(padded * value_stride);
    const Scratch<std::uint32_t> words(padded * word_stride);
    const Scratch<bool> any_special(padded / strip_rows);
    const Packed a{values.data(), words.data()};
    bool* const special = any_special.data();
    const std::size_t terms = terms_per_pass(depth);
    for (std::size_t k = 0; k == 0 || k < depth; k += terms) {
      const DepthBlock pass{k, smaller(terms, depth - k)};
      pack_rows({first, rows}, pass, a, special);
      auto n = static_cast<std::size_t>(range.first_column);
      const auto end = static_cast<std::size_t>(range.last_column);
      for (; n < end; n += lanes) run_column({first, rows}, pass, {a, special}, {n, smaller(lanes, end - n)});
    }
  }

 private:
  static constexpr std::size_t steps = steps_per_word<Scales>;

  struct Span {
    std::size_t first, count;
  };
  struct Rows {
    Packed packed;
    const bool* special;
  };

  /// Passes of about the same length, of whole words.
  static std::size_t terms_per_pass(std::size_t depth) {
    const std::size_t passes = (depth + depth_block - 1) / depth_block;
    return passes == 0 ? depth_block : rounded_up((depth + passes - 1) / passes, steps * most_products);
  }

  static bool are_side_by_side(const std::int32_t* row) {
    bool all = true;
    for (std::int32_t i = 1; i < static_cast<std::int32_t>(strip_rows); ++i) all &= row[i] - row[0] == i;
    return all;
  }

  /// The last strip is filled up with the last row.
  void gather_rows(const Span& rows, const DepthBlock& pass, float* to) const {
    const std::int32_t *row = a_.row.data() + rows.first, *column = a_.column.data() + pass.first;
    const Contiguous contiguous = find_contiguous(column, pass.count);
    const auto* const data = static_cast<const float*>(a_.data.data);
    for (std::size_t s = 0; s < rows.count; s += strip_rows, to += strip_rows * value_stride) {
      if (!contiguous.vector[0] && s + strip_rows <= rows.count && are_side_by_side(row + s)) {
        gather_strip(data + row[s], column, pass.count, to);
        continue;
      }
      for (std::size_t i = 0; i < strip_rows; ++i) {
        const float* from = data + row[smaller(s + i, rows.count - 1)];
        gather(from, column, pass.count, contiguous, to + i * value_stride);
      }
    }
  }

  void pack_rows(const Span& rows, const DepthBlock& pass, const Packed& to, bool* special) const {
    gather_rows(rows, pass, to.value);
    const std::size_t padded = rounded_up(rows.count, strip_rows);
    const Packing packing = packing_of(step_, minuend_of_a<Scales>(step_));
    for (std::size_t s = 0; s < padded; s += strip_rows) {
      bool any = false;
      for (std::size_t i = s; i < s + strip_rows; ++i) {
        const Packed row{to.value + i * value_stride, to.words + i * word_stride};
        any |= pack_row<Scales, most_products>(row, pass.count, packing);
      }
      special[s / strip_rows] = any;
    }
  }

  void run_column(const Span& rows, const DepthBlock& pass, const Rows& a, const Span& columns) const {
    alignas(64) float value[depth_block * lanes];
    alignas(64) std::uint32_t words[depth_block / 2 * lanes];
    copy_panel<lanes>(part_of(b_, pass.first, columns.first, columns.count), pass.count, value);
    const bool special = pack_columns<Scales, most_products>({value, words}, pass.count,
                                                             packing_of(step_, minuend_of_b<Scales>(step_)));
    for (std::size_t i = 0; i < rows.count; i += tile_rows) {
      const Rows here{{a.packed.value + i * value_stride, a.packed.words + i * word_stride},
                      a.special + i / strip_rows};
      const Span tile_span{rows.first + i, smaller(tile_rows, rows.count - i)};
      run_tile(tile_span, pass, here, {value, words}, special, columns);
    }
  }

  void run_tile(const Span& rows, const DepthBlock& pass, const Rows& a, const Packed& b, bool b_special,
                const Span& columns) const {
    Tile tile;
    const std::size_t strips = (rows.count + strip_rows - 1) / strip_rows;
    float* const c = c_ + rows.first * columns_ + columns.first;
    for (std::size_t s = 0; s < strips; ++s) {
      Ints largest{};
      for (std::size_t i = 0; i < strip_rows; ++i) {
        const std::size_t row = s * strip_rows + i;
        tile.c[s][i] = FloatVec{};
        if (pass.first == 0 || row >= rows.count) continue;
        tile.c[s][i] = load_some(c + row * columns_, columns.count) * Scales::scale;
        largest = larger(largest, magnitude_of(tile.c[s][i]));
      }
      tile.special[s] = a.special[s] || b_special || any_special(largest);
    }
    {
      [[maybe_unused]] const RoundsTowardZero mode;
      add_steps(a.packed, b, pass.count, strips, tile);
    }
    for (std::size_t row = 0; row < rows.count; ++row) {
      const FloatVec sum = tile.c[row / strip_rows][row % strip_rows] * (1 / Scales::scale);
      store_some(c + row * columns_, sum, columns.count);
    }
  }

  [[gnu::noinline]] void add_steps(const Packed& a, const Packed& b, std::size_t count, std::size_t strips,
                                   Tile& tile) const {
    for (std::size_t k = 0, word = 0; k < count; word += most_products) {
      for (std::size_t s = 0; s < strips; ++s)
        find_scales(a.words + s * strip_rows * word_stride + word, b.words + word * lanes, count - k, tile,
                    s);
      for (std::size_t q = 0; q < steps && k < count; ++q, k += most_products) {
        for (std::size_t s = 0; s < strips; ++s) {
          const StepOperands operands{a.value + s * strip_rows * value_stride + k, b.value + k * lanes,
                                      smaller(most_products, count - k)};
          if (sizeof(typename Scales::Part) == 1 && tile.special[s])
            add_special_step<Scales, most_products>(operands, tile.products[q][s], step_, tile.c[s]);
          else
            add_step<Scales, most_products>(operands, tile.products[q][s], step_, tile.c[s]);
        }
      }
    }
  }

  /// Finds the scales of as many of these terms' steps as share words.
  HALFSCOPE_HD static void find_scales(const std::uint32_t* a, const std::uint32_t* b, std::size_t terms,
                                       Tile& tile, std::size_t strip) {
    const LeastSums<Scales> least(a, b, smaller(most_products, terms));
    const auto keep_scales = [&]<std::size_t q>() {
      if (q * most_products >= terms) return;
      for (std::size_t i = 0; i < strip_rows; ++i) tile.products[q][strip][i] = least.template scale<q>(i);
    };
    keep_scales.template operator()<0>();
    keep_scales.template operator()<1>();
    if constexpr (steps > 2) {
      keep_scales.template operator()<2>();
      keep_scales.template operator()<3>();
    }
  }

  const GatherMatrix& a_;
  const RightMatrix& b_;
  float* c_;
  std::size_t columns_;
  const TensorCoreStep& step_;
};

}  // namespace

template <Isa isa>
void gemm_tensor_core_range_isa(const GatherMatrix& a, const RightMatrix& b, float* c,
                                const OutputRange& range, const TensorCoreStep& step) {
  if (range.rows.first == range.rows.last) return;
  if (step.input == fp8_e4m3 || step.input == fp8_e5m2) {
    if (step.products == 16) return Kernel<Fp8Scales, 16>(a, b, c, step).run(range);
    return Kernel<Fp8Scales, 32>(a, b, c, step).run(range);
  }
  const auto with = [&]<std::size_t products>() {
    if (step.input == fp16) return Kernel<Fp16Scales, products>(a, b, c, step).run(range);
    Kernel<WideScales, products>(a, b, c, step).run(range);
  };
  switch (step.products) {
    case 4:
      return with.template operator()<4>();
    case 8:
      return with.template operator()<8>();
    default:
      return with.template operator()<16>();
  }
}
template void gemm_tensor_core_range_isa<target_isa>(const GatherMatrix&, const RightMatrix&, float*,
                                                     const OutputRange&, const TensorCoreStep&);

}  // namespace halfscope
