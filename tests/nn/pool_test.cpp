// Pooling over any windows: the same bits on every instruction set and number of threads, and sizes that are
// refused.
#include "lib/nn/pool.hpp"

#include <halfscope/core/isa.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::pool_test {
namespace {

struct Pooled {
  std::vector<float> largest, of_largest, mean, of_mean;
  std::vector<std::uint8_t> winner;
  bool operator==(const Pooled&) const = default;
};

Pooled pool_all(const ImageShape& shape, const PoolWindow& window) {
  const ImageShape small = pooled_shape(shape, window);
  const auto full = static_cast<std::size_t>(shape.batch * shape.height * shape.width * shape.channels);
  const auto count = static_cast<std::size_t>(small.batch * small.height * small.width * small.channels);
  const std::vector<float> x = uniform_floats(full, -1, 1, 3), gradient = uniform_floats(count, -1, 1, 4);
  Pooled made{std::vector<float>(count), std::vector<float>(full), std::vector<float>(count),
              std::vector<float>(full), std::vector<std::uint8_t>(count)};
  max_pool(x, shape, window, made.largest, made.winner);
  max_pool_gradient(gradient, shape, window, made.winner, made.of_largest);
  average_pool(x, shape, window, AverageOver::image, made.mean);
  average_pool_gradient(gradient, shape, window, AverageOver::image, made.of_mean);
  return made;
}

TEST_CASE("pooling has the same bits on every instruction set and number of threads", "[pool]") {
  constexpr PoolWindow window{.size = 3, .stride = 2, .padding = 1, .partial = PartialWindow::kept};
  for (const std::int64_t channels : {1, 15, 16, 37}) {
    const ImageShape shape{2, 6, 9, channels};
    const Pooled expected = pool_all(shape, window);
    for (const Isa isa : available_isas()) {
      for (const int threads : {1, 3}) {
        const ForcedIsa forced(isa);
        const Threads several(threads);
        INFO(name_of(isa) << ", " << threads << " threads, " << channels << " channels");
        CHECK((pool_all(shape, window) == expected));
      }
    }
  }
}

TEST_CASE("pooling refuses sizes that do not fit", "[pool]") {
  std::vector<float> x(2 * 4 * 4 * 3), y(2 * 2 * 2 * 3);
  std::vector<std::uint8_t> winner(y.size()), few(1);
  const ImageShape shape{2, 4, 4, 3};
  max_pool(x, shape, {}, y, winner);
  check_says(message_of<InvalidArgument>([&] { max_pool(x, shape, {}, y, few); }),
             {"max_pool", "1 winners of 24"});
  check_says(message_of<InvalidArgument>([&] { max_pool(y, shape, {}, y, winner); }), {"max_pool", "sizes"});
  check_says(
      message_of<InvalidArgument>([&] { average_pool(x, shape, {.size = 5}, AverageOver::window, y); }),
      {"average_pool", "windows of 5"});
  check_says(message_of<InvalidArgument>(
                 [&] { average_pool(x, shape, {.size = 5, .padding = 5}, AverageOver::window, y); }),
             {"average_pool", "padding 5"});
}

}  // namespace
}  // namespace halfscope::pool_test
