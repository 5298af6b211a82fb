// Operations on columns of matrices on the device, one thread per number.
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/strided_elementwise.hpp"

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

template <Combination combination>
void launch(const ColumnExtents& extents, const ConstColumns& a, const ConstColumns& b, const Columns& y) {
  for_each(count_of(extents),
           Combine<combination>{extents, place_of(a), place_of(b), place_of(y), on_device(a.values),
                                on_device(b.values), on_device(y.values)},
           "combine");
}

template <Elementary function>
void launch(const ColumnExtents& extents, const ConstColumns& x, const Columns& y) {
  for_each(count_of(extents),
           Apply<function>{extents, place_of(x), place_of(y), on_device(x.values), on_device(y.values)},
           "apply");
}

}  // namespace

void combine(Combination combination, const ColumnExtents& extents, const ConstColumns& a,
             const ConstColumns& b, const Columns& y) {
  switch (combination) {
    case Combination::sum:
      return launch<Combination::sum>(extents, a, b, y);
    case Combination::difference:
      return launch<Combination::difference>(extents, a, b, y);
    case Combination::product:
      return launch<Combination::product>(extents, a, b, y);
    case Combination::tanh_gradient:
      return launch<Combination::tanh_gradient>(extents, a, b, y);
    case Combination::sigmoid_gradient:
      return launch<Combination::sigmoid_gradient>(extents, a, b, y);
  }
}

void apply(Elementary function, const ColumnExtents& extents, const ConstColumns& x, const Columns& y) {
  switch (function) {
    case Elementary::exp:
      return launch<Elementary::exp>(extents, x, y);
    case Elementary::log:
      return launch<Elementary::log>(extents, x, y);
    case Elementary::tanh:
      return launch<Elementary::tanh>(extents, x, y);
    case Elementary::erf:
      return launch<Elementary::erf>(extents, x, y);
    case Elementary::rsqrt:
      return launch<Elementary::rsqrt>(extents, x, y);
    case Elementary::sigmoid:
      return launch<Elementary::sigmoid>(extents, x, y);
  }
}

void copy_columns(const ColumnExtents& extents, const ConstColumns& x, const Columns& y) {
  for_each(count_of(extents),
           Copy{extents, place_of(x), place_of(y), on_device(x.values), on_device(y.values)}, "copy_columns");
}

}  // namespace halfscope::cuda
