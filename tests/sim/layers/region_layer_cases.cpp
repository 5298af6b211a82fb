// Max pooling over regions and taking rows, and naive loops that say what each should give.
#include <algorithm>
#include <array>
#include <limits>

#include "sim/layers/layers.hpp"
#include "tests/sim/layers/layer_case.hpp"

namespace halfscope::region_layer_cases {
namespace {

void no_parameters(ParameterStore& /*store*/) {}

/// Whether pixel `at` of `count` is in part `part` of `size`: the unit interval is cut into as many pixels
/// and as many parts, and a part has the pixels that it touches.
bool touches(std::int64_t part, std::int64_t size, std::int64_t at, std::int64_t count) {
  return at * size < (part + 1) * count && (at + 1) * size > part * count;
}

double largest_of_part(const Array& x, const Region& region, std::array<std::int64_t, 3> part,
                       std::int64_t size) {
  const auto [down, across, channel] = part;
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t r = region.top; r < region.bottom; ++r) {
    for (std::int64_t c = region.left; c < region.right; ++c) {
      if (!touches(down, size, r - region.top, region.bottom - region.top) ||
          !touches(across, size, c - region.left, region.right - region.left))
        continue;
      const std::int64_t at = ((region.image * x.extent(1) + r) * x.extent(2) + c) * x.extent(3) + channel;
      largest = std::max(largest, static_cast<double>(x[static_cast<std::size_t>(at)]));
    }
  }
  return largest;
}

LayerCase region_case(std::string name, Shape input, std::vector<Region> regions, std::int64_t size) {
  return {std::move(name), std::move(input), no_parameters,
          [regions, size](Tape& t, TensorRef x, ParameterStore&) {
            return roi_max_pool(t, "y", x, {regions, size});
          },
          [regions, size](const ParameterStore& s) {
            std::vector<double> y;
            const Array& x = master(s, 0);
            for (const Region& region : regions)
              for (std::int64_t r = 0; r < size; ++r)
                for (std::int64_t c = 0; c < size; ++c)
                  for (std::int64_t k = 0; k < x.extent(3); ++k)
                    y.push_back(largest_of_part(x, region, {r, c, k}, size));
            return y;
          }};
}

LayerCase rows_case(std::string name, Shape input, std::vector<std::int32_t> rows, std::int64_t columns) {
  return {std::move(name), std::move(input), no_parameters,
          [rows, columns](Tape& t, TensorRef x, ParameterStore&) {
            return take_rows(t, "y", x, {rows, columns});
          },
          [rows, columns](const ParameterStore& s) {
            std::vector<double> y;
            for (const std::int32_t row : rows)
              for (std::int64_t c = 0; c < columns; ++c)
                y.push_back(static_cast<double>(master(s, 0)[static_cast<std::size_t>(row * columns + c)]));
            return y;
          }};
}

std::vector<LayerCase> cases() {
  return {region_case("roi_max_pool of a whole image", {1, 4, 6, 2}, {{0, 0, 0, 4, 6}}, 2),
          region_case("roi_max_pool of regions that overlap", {2, 7, 5, 3},
                      {{0, 0, 0, 6, 4}, {0, 2, 1, 7, 5}, {0, 0, 0, 6, 4}, {1, 1, 2, 4, 5}}, 2),
          region_case("roi_max_pool of regions smaller than their parts", {3, 5, 6, 2},
                      {{0, 4, 5, 5, 6}, {2, 1, 0, 3, 5}, {2, 0, 3, 3, 4}}, 4),
          region_case("roi_max_pool of uneven parts", {1, 7, 8, 2}, {{0, 0, 1, 7, 8}, {0, 1, 0, 6, 8}}, 3),
          rows_case("take_rows", {5, 3}, {4, 0, 2}, 3),
          rows_case("take_rows that come twice", {2, 3, 4}, {1, 5, 1, 0}, 4),
          rows_case("take_rows of a part of a row", {3, 8}, {5, 2, 0}, 4)};
}
const LayerCases registered(cases);

}  // namespace
}  // namespace halfscope::region_layer_cases
