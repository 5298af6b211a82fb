// Composes row sums and row factors from the kernels of columns and of layer norm.
#include "sim/layers/rows.hpp"

#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/elementwise.hpp"
#include "lib/nn/layer_norm.hpp"
#include "sim/tape/filled.hpp"

namespace halfscope {
Array row_products(const Array& a, const Array& b) {
  const std::int64_t columns = a.shape().back(), rows = static_cast<std::int64_t>(a.size()) / columns;
  Array turned_a({columns, rows}), turned_b({columns, rows}), sums({rows});
  transpose(a.view(), rows, columns, turned_a.view());
  transpose(b.view(), rows, columns, turned_b.view());
  column_sums({.term = Term::product,
               .x = ElementReader(turned_a.view()),
               .y = ElementReader(turned_b.view()),
               .rows = columns,
               .columns = rows},
              AccumulateModel{}, sums.values());
  return sums;
}

void subtract_from_rows(const Array& offset, Array& x) {
  normalise_rows(offset.values(), filled(offset.shape(), 1).values(), x.values());
}

void scale_rows(const Array& factor, Array& x) {
  normalise_rows(Array::zeros(factor.shape()).values(), factor.values(), x.values());
}

}  // namespace halfscope
