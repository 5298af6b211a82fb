// Operations on columns of matrices on the device, one thread per number.
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/elementary.hpp"
#include "lib/nn/strided_elementwise.hpp"
#include "lib/nn/strided_elementwise_element.hpp"

namespace halfscope::cuda {
namespace {

/// ConstColumns without its size.
struct Place {
  std::int64_t first, row, matrix;

  HALFSCOPE_HD std::int64_t operator()(const ColumnExtents& extents, std::int64_t i) const {
    const std::int64_t column = i % extents.columns, q = i / extents.columns;
    return first + q / extents.rows * matrix + q % extents.rows * row + column;
  }
};

Place place_of(const ConstColumns& where) {
  return {where.first, where.row, where.matrix};
}

std::int64_t count_of(const ColumnExtents& extents) {
  return extents.batch * extents.rows * extents.columns;
}

template <Combination combination>
struct Combine {
  ColumnExtents extents;
  Place place_a, place_b, place_y;
  ElementReader a, b;
  ElementWriter y;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    y.set(place_y(extents, i), combined<combination>(a[place_a(extents, i)], b[place_b(extents, i)]));
  }
};

template <Elementary function>
struct Apply {
  ColumnExtents extents;
  Place place_x, place_y;
  ElementReader x;
  ElementWriter y;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    y.set(place_y(extents, i), elementary<function>(x[place_x(extents, i)]));
  }
};

struct Copy {
  ColumnExtents extents;
  Place place_x, place_y;
  ElementReader x;
  ElementWriter y;
  HALFSCOPE_HD void operator()(std::int64_t i) const { y.set(place_y(extents, i), x[place_x(extents, i)]); }
};

}  // namespace

void combine(Combination combination, const ColumnExtents& extents, const ConstColumns& a,
             const ConstColumns& b, const Columns& y) {
  with_combination(combination, [&]<Combination known>() {
    for_each(count_of(extents),
             Combine<known>{extents, place_of(a), place_of(b), place_of(y), on_device(a.values),
                            on_device(b.values), on_device(y.values)},
             "combine");
  });
}

void apply(Elementary function, const ColumnExtents& extents, const ConstColumns& x, const Columns& y) {
  with_elementary(function, [&]<Elementary known>() {
    for_each(count_of(extents),
             Apply<known>{extents, place_of(x), place_of(y), on_device(x.values), on_device(y.values)},
             "apply");
  });
}

void copy_columns(const ColumnExtents& extents, const ConstColumns& x, const Columns& y) {
  for_each(count_of(extents),
           Copy{extents, place_of(x), place_of(y), on_device(x.values), on_device(y.values)}, "copy_columns");
}

}  // namespace halfscope::cuda
