// Decodes the operands of a block-scaled product, splits it over the threads, and computes by its definition
// what the fast loops do not.
#include <halfscope/kernel/gemm/gemm.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/kernel/gemm/detail/gemm_blocks_simd.hpp>

namespace halfscope {
namespace {

void check_blocks(const BlockMatrix& x, const BlockScaledUnit& unit, std::string_view name) {
  check_block_elements(x.element, unit);
  const std::int64_t scales = x.rows * ((x.columns + unit.block - 1) / unit.block);
  if (std::ssize(x.elements) == x.rows * x.columns && std::ssize(x.scales) == scales) return;
  throw InvalidArgument(fmt::format(
      "gemm_blocks: {} of ({}, {}) in blocks of 1 x {} has {} elements and {} scales; {} and {} given", name,
      x.rows, x.columns, unit.block, x.rows * x.columns, scales, x.elements.size(), x.scales.size()));
}

struct DecodedScale {
  float value;
  std::int32_t exponent;
  bool is_nan;
};

/// The sign of a UE4M3 scale is ignored; its subnormal numbers have the smallest normal exponent.
DecodedScale decode_scale_of(std::uint32_t code, ScaleFormat format) {
  if (format == ScaleFormat::e8m0) {
    const auto exponent = static_cast<std::int32_t>(code & 0xFFu) - static_cast<std::int32_t>(e8m0::bias);
    const bool is_nan = (code & 0xFFu) == e8m0::nan_code;
    return {is_nan ? 1.0f : std::ldexp(1.0f, exponent), exponent, is_nan};
  }
  const std::uint32_t magnitude = code & 0x7Fu;
  const bool is_nan = magnitude == detail::nan_code(ue4m3);
  const float value = is_nan ? 1.0f : decode(magnitude, ue4m3);
  const int exponent = value == 0 ? ue4m3.min_exponent() : std::ilogb(value);
  return {value, std::max(exponent, ue4m3.min_exponent()), is_nan};
}

class RowsDecoder {
 public:
  RowsDecoder(const BlockMatrix& codes, const BlockScaledUnit& unit) : codes_(codes), unit_(unit) {
    const std::int64_t depth = codes.columns, unit_terms = BlockRows::padded_terms;
    rows_.element = codes.element;
    rows_.rows = codes.rows;
    rows_.depth = (depth + unit_terms - 1) / unit_terms * unit_terms;
    rows_.blocks = rows_.depth / unit.block;
    const auto size = [&](std::int64_t columns) { return static_cast<std::size_t>(rows_.rows * columns); };
    rows_.values = std::make_unique_for_overwrite<float[]>(size(rows_.depth));
    rows_.scales.resize(size(rows_.blocks));
    rows_.exponents.resize(size(rows_.blocks));
    rows_.nonzero.resize(size(rows_.depth / group));
    for (auto* of_row : {&rows_.least, &rows_.largest}) of_row->resize(size(1));
    rows_.special.resize(size(1));
  }

  [[nodiscard]] BlockRows decode_all() && {
    parallel_for(rows_.rows, [&](std::int64_t row) noexcept { decode_row(static_cast<std::size_t>(row)); });
    return std::move(rows_);
  }

 private:
  static constexpr std::int64_t group = 16;

  void decode_row(std::size_t row) {
    const auto depth = static_cast<std::size_t>(codes_.columns);
    const std::uint8_t* const from = codes_.elements.data() + row * depth;
    const auto padded = static_cast<std::size_t>(rows_.depth);
    float* const to = rows_.values.get() + row * padded;
    std::fill(to + depth, to + padded, 0.0f);
    std::uint32_t* const nonzero = rows_.nonzero.data() + row * static_cast<std::size_t>(rows_.depth / group);
    const bool special = dispatch_isa(
        [&]<Isa isa>() { return decode_elements_isa<isa>(from, depth, rows_.element, to, nonzero); });
    const bool has_nan_scale = decode_scales(row, nonzero);
    rows_.special[row] = special || has_nan_scale ? 1 : 0;
  }

  /// Whether one is NaN. Elements at a scale of zero count as zeros.
  bool decode_scales(std::size_t row, std::uint32_t* nonzero) {
    const auto all = static_cast<std::size_t>(rows_.blocks), block = static_cast<std::size_t>(unit_.block);
    const std::size_t given = (static_cast<std::size_t>(codes_.columns) + block - 1) / block;
    const std::size_t first = row * all, groups = block / group;
    DecodedScale last{1, 0, false};
    bool is_nan = false, any = false;
    std::int32_t least = 0, largest = 0;
    for (std::size_t i = 0; i < all; ++i) {
      const bool is_given = i < given;
      const DecodedScale scale =
          is_given ? decode_scale_of(codes_.scales[row * given + i], unit_.scale) : last;
      is_nan = is_nan || scale.is_nan;
      std::uint32_t elements = 0;
      for (std::uint32_t& bits : std::span(nonzero + i * groups, groups))
        elements |= bits = scale.value == 0 ? 0 : bits;
      if (elements != 0) {
        if (!any) fill_before(first, i, scale);
        last = scale;
        least = any ? std::min(least, scale.exponent) : scale.exponent;
        largest = any ? std::max(largest, scale.exponent) : scale.exponent;
        any = true;
      }
      rows_.scales[first + i] = scale.value == 0 ? 0 : last.value;
      rows_.exponents[first + i] = last.exponent;
    }
    rows_.least[row] = least;
    rows_.largest[row] = largest;
    return is_nan;
  }

  void fill_before(std::size_t first, std::size_t count, const DecodedScale& scale) {
    for (std::size_t i = 0; i < count; ++i) {
      if (rows_.scales[first + i] != 0) rows_.scales[first + i] = scale.value;
      rows_.exponents[first + i] = scale.exponent;
    }
  }

  const BlockMatrix& codes_;
  const BlockScaledUnit& unit_;
  BlockRows rows_{};
};

}  // namespace

void gemm_blocks(const BlockMatrix& a, const BlockMatrix& b, std::span<float> c,
                 const BlockScaledUnit& unit) {
  const std::int64_t rows = a.rows, columns = b.rows;
  if (a.columns != b.columns || std::ssize(c) != rows * columns) {
    throw InvalidArgument(
        fmt::format("gemm_blocks: ({}, {}) times ({}, {}) transposed does not give {} elements", rows,
                    a.columns, columns, b.columns, c.size()));
  }
  check_blocks(a, unit, "a");
  check_blocks(b, unit, "b");
  if (a.columns == 0) std::ranges::fill(c, 0.0f);
  if (a.columns == 0 || c.empty()) return;
  const BlockRows left = RowsDecoder(a, unit).decode_all();
  const BlockRows right = RowsDecoder(b, unit).decode_all();
  constexpr std::int64_t columns_at_once = 256;
  parallel_for_ranges(columns, columns_at_once, [&](std::int64_t first, std::int64_t count) {
    const bool is_partial = dispatch_isa([&]<Isa isa>() {
      return gemm_blocks_isa<isa>(left, right, unit, {first, first + count}, c.data());
    });
    for (std::int64_t m = 0; is_partial && m < rows; ++m) {
      for (std::int64_t n = first; n < first + count; ++n) {
        float& element = c[static_cast<std::size_t>(m * columns + n)];
        if (std::isnan(element)) element = block_dot(a.row(m, unit.block), b.row(n, unit.block), 0, unit);
      }
    }
  });
}

}  // namespace halfscope
