// One block's tile of the ordered product, written against a machine: the device's instructions, or in the
// tests a model of them.
#pragma once

#include <cstdint>
#include <type_traits>

#include <halfscope/core/dtype.hpp>
#include <halfscope/core/host_device.hpp>

namespace halfscope::ordered {

/// A block of four warps, 2 by 2, computes (128, 128); each copy brings 32 terms.
inline constexpr int threads = 128, tile_extent = 128, tile_depth = 32, warp_extent = 64, stages = 3;
/// Stored rows lie 16 bytes further apart than they are long: eight of them, as ldmatrix reads, are then in
/// different banks.
inline constexpr int pitch_along_depth = tile_depth + 8, pitch_across_depth = tile_extent + 8;
inline constexpr int tile_elements = tile_extent * pitch_along_depth;  // the larger of the two layouts
inline constexpr int stage_elements = 2 * tile_elements;
inline constexpr int shared_bytes = stages * stage_elements * 2;
static_assert(tile_depth * pitch_across_depth <= tile_elements);

/// Whether a factor's stored rows run along the terms (k), or across them.
enum class Along : std::uint8_t { depth, across };

struct Factor {
  const std::uint16_t* data;
  std::int64_t stride;
  int extent;         ///< a's rows, b's columns
  bool whole_chunks;  ///< every stored row starts on a 16-byte boundary
};

struct Problem {
  Factor a;
  Factor b;
  int depth;
  void* c;
  std::int64_t c_stride;
  bool c_pairs;  ///< two neighbouring elements, the first of even column, can be stored at once
};

/// Which kernel: the numbers, and how the factors lie.
template <DType input_, DType sum_, Along a_, Along b_>
struct Variant {
  static constexpr DType input = input_, sum = sum_;
  static constexpr Along a = a_, b = b_;
  using Register = std::conditional_t<sum == DType::f32, float, std::uint32_t>;
  static constexpr int registers = sum == DType::f32 ? 4 : 2;
};

/// Sixteen rows by eight columns of sums, spread over a warp as mma.sync does.
template <typename V>
struct Sums {
  typename V::Register of[V::registers];
};

/// Where a lane's address points in the (16, 16) that one ldmatrix.x4 reads: stored row and element in it.
struct LanePlace {
  int row;
  int element;
};

/// Quarters in the order: upper rows, lower rows, then the same eight elements on.
HALFSCOPE_HD constexpr LanePlace rows_first(int lane) {
  return {lane % 16, lane / 16 * 8};
}
/// Quarters in the order: upper rows, the same eight elements on, then lower rows.
HALFSCOPE_HD constexpr LanePlace elements_first(int lane) {
  return {lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8};
}

/// Element of a tile in shared memory: (x, k) of a factor.
template <Along along>
HALFSCOPE_HD constexpr int place_in_tile(int x, int k) {
  return along == Along::depth ? x * pitch_along_depth + k : k * pitch_across_depth + x;
}

/// a's (16, 16) fragment wants rows first, b's terms first; a factor stored the other way is transposed by
/// ldmatrix, and the quarters' order with it.
template <Along along>
HALFSCOPE_HD constexpr int a_address(int lane, int row, int k) {
  if constexpr (along == Along::depth) {
    const LanePlace place = rows_first(lane);
    return place_in_tile<along>(row + place.row, k + place.element);
  } else {
    const LanePlace place = elements_first(lane);
    return place_in_tile<along>(row + place.element, k + place.row);
  }
}
template <Along along>
HALFSCOPE_HD constexpr int b_address(int lane, int column, int k) {
  if constexpr (along == Along::depth) {
    const LanePlace place = elements_first(lane);
    return place_in_tile<along>(column + place.row, k + place.element);
  } else {
    const LanePlace place = rows_first(lane);
    return place_in_tile<along>(column + place.element, k + place.row);
  }
}

HALFSCOPE_HD constexpr int smaller(int x, int y) {
  return x < y ? x : y;
}
HALFSCOPE_HD constexpr int clamped_to_chunk(int x) {
  return x < 0 ? 0 : smaller(x, 8);
}

/// Copies (128, 32) of a factor, from (first, k0) on, to shared memory, zeros where it ends.
template <Along along, typename Machine>
HALFSCOPE_HD void copy_tile(Machine& machine, const Factor& factor, int first, int k0, int depth,
                            std::uint16_t* to) {
  constexpr int chunks_per_row = (along == Along::depth ? tile_depth : tile_extent) / 8;
  constexpr int chunks = tile_extent * tile_depth / 8;
  const int row0 = along == Along::depth ? first : k0, rows = along == Along::depth ? factor.extent : depth;
  const int element0 = along == Along::depth ? k0 : first,
            elements = along == Along::depth ? depth : factor.extent;
#pragma unroll
  for (int chunk = 0; chunk < chunks; chunk += threads) {
    const int row = (chunk + machine.thread()) / chunks_per_row,
              element = (chunk + machine.thread()) % chunks_per_row * 8;
    const int count = row0 + row < rows ? clamped_to_chunk(elements - element0 - element) : 0;
    const std::uint16_t* from =
        count == 0 ? factor.data : factor.data + (row0 + row) * factor.stride + element0 + element;
    std::uint16_t* place = to + (along == Along::depth ? place_in_tile<along>(row, element)
                                                       : place_in_tile<along>(element, row));
    if (factor.whole_chunks) {
      machine.copy_chunk(place, from, count);
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) place[i] = i < count ? from[i] : std::uint16_t{0};
    }
  }
}

/// Where a block's, and in it a warp's, elements begin.
struct Origin {
  int row;
  int column;
};

/// Adds the next 16 products of every element, or with terms == 8 the next 8.
template <int terms, typename V, typename Machine>
HALFSCOPE_HD void add_products(Machine& machine, const std::uint16_t* stage, const Origin& warp, int k,
                               Sums<V> (&sums)[4][8]) {
  std::uint32_t a[4][4], b[4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int place = a_address<V::a>(machine.lane(), warp.row + 16 * i, k);
    machine.template load_matrices<V::a == Along::across>(a[i], stage + place);
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int place = b_address<V::b>(machine.lane(), warp.column + 16 * j, k);
    machine.template load_matrices<V::b == Along::across>(b[j], stage + tile_elements + place);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const std::uint32_t(&factor)[4] = b[j / 2];
      if constexpr (terms == 16) {
        machine.template multiply_16<V>(sums[i][j], a[i], factor[j % 2 * 2], factor[j % 2 * 2 + 1]);
      } else {
        machine.template multiply_8<V>(sums[i][j], a[i][0], a[i][1], factor[j % 2 * 2]);
      }
    }
  }
}

/// The sums of the block at `block`, k ascending: while a stage is added up, the next ones are copied.
template <typename V, typename Machine>
HALFSCOPE_HD void add_up(Machine& machine, const Problem& problem, const Origin& block, const Origin& warp,
                         Sums<V> (&sums)[4][8]) {
  const int tiles = (problem.depth + tile_depth - 1) / tile_depth;
  const auto copy = [&](int tile) {
    if (tile < tiles) {
      std::uint16_t* stage = machine.shared() + tile % stages * stage_elements;
      copy_tile<V::a>(machine, problem.a, block.row, tile * tile_depth, problem.depth, stage);
      copy_tile<V::b>(machine, problem.b, block.column, tile * tile_depth, problem.depth,
                      stage + tile_elements);
    }
    machine.end_group();
  };
  for (int tile = 0; tile < stages - 1; ++tile) copy(tile);
  for (int tile = 0; tile < tiles; ++tile) {
    machine.template wait_for_groups<stages - 2>();
    machine.synchronize();  // the tile is there for all, and all are done with the stage that is filled next
    copy(tile + stages - 1);
    const std::uint16_t* stage = machine.shared() + tile % stages * stage_elements;
    const int terms = problem.depth - tile * tile_depth;
    if (terms >= tile_depth) {
      add_products<16, V>(machine, stage, warp, 0, sums);
      add_products<16, V>(machine, stage, warp, 16, sums);
      continue;
    }
    int k = 0;
    if (terms > 8) add_products<16, V>(machine, stage, warp, k, sums), k = 16;
    if (terms > 24) add_products<16, V>(machine, stage, warp, k, sums), k = 32;
    if (k < terms) add_products<8, V>(machine, stage, warp, k, sums);
  }
}

/// Stores one lane's two neighbours of a row, as far as c has them.
template <typename Out>
HALFSCOPE_HD void store_pair(const Problem& problem, int row, int column, Out first, Out second) {
  if (row >= problem.a.extent || column >= problem.b.extent) return;
  Out* to = static_cast<Out*>(problem.c) + row * problem.c_stride + column;
  struct alignas(2 * sizeof(Out)) Pair {
    Out first, second;
  };
  if (problem.c_pairs && column + 1 < problem.b.extent) {
    *reinterpret_cast<Pair*>(to) = Pair{first, second};
    return;
  }
  to[0] = first;
  if (column + 1 < problem.b.extent) to[1] = second;
}

template <typename V, DType output, typename Machine>
HALFSCOPE_HD void store_sums(Machine& machine, const Problem& problem, const Origin& at,
                             const Sums<V>& sums) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = at.row + machine.lane() / 4 + 8 * half, column = at.column + machine.lane() % 4 * 2;
    if constexpr (V::sum == DType::f16) {
      const std::uint32_t pair = sums.of[half];
      store_pair(problem, row, column, static_cast<std::uint16_t>(pair & 0xFFFFu),
                 static_cast<std::uint16_t>(pair >> 16));
    } else if constexpr (output == DType::f32) {
      store_pair(problem, row, column, sums.of[2 * half], sums.of[2 * half + 1]);
    } else {
      store_pair(problem, row, column, machine.template narrowed<output>(sums.of[2 * half]),
                 machine.template narrowed<output>(sums.of[2 * half + 1]));
    }
  }
}

/// Blocks that run at the same time lie close together, so that they share rows and columns in the cache:
/// eight tiles of rows, then the next tile of columns.
HALFSCOPE_HD constexpr Origin block_origin(std::int64_t block, int rows, int columns) {
  constexpr int group = 8;
  const std::int64_t row_tiles = (std::int64_t{rows} + tile_extent - 1) / tile_extent,
                     column_tiles = (std::int64_t{columns} + tile_extent - 1) / tile_extent;
  const std::int64_t first = block / (group * column_tiles) * group,
                     in_group = block % (group * column_tiles);
  const std::int64_t height = row_tiles - first < group ? row_tiles - first : group;
  return {static_cast<int>((first + in_group % height) * tile_extent),
          static_cast<int>(in_group / height * tile_extent)};
}

HALFSCOPE_HD constexpr std::int64_t block_count(std::int64_t rows, std::int64_t columns) {
  return (rows + tile_extent - 1) / tile_extent * ((columns + tile_extent - 1) / tile_extent);
}

/// All that a thread of the kernel does.
template <typename V, typename Machine>
HALFSCOPE_HD void run_block(Machine& machine, const Problem& problem, DType output) {
  const Origin block = block_origin(machine.block(), problem.a.extent, problem.b.extent);
  const int index = machine.thread() / 32;
  const Origin warp{index / 2 * warp_extent, index % 2 * warp_extent};
  Sums<V> sums[4][8] = {};
  add_up<V>(machine, problem, block, warp, sums);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const Origin at{block.row + warp.row + 16 * i, block.column + warp.column + 8 * j};
      if (V::sum == DType::f32 && output == DType::f32) {
        store_sums<V, DType::f32>(machine, problem, at, sums[i][j]);
      } else {
        store_sums<V, V::input>(machine, problem, at, sums[i][j]);
      }
    }
  }
}

}  // namespace halfscope::ordered
