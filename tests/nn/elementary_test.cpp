// Elementary functions of arrays give the bits of the scalar ones on every instruction set.
#include <halfscope/core/isa.hpp>

#include "lib/nn/elementary.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::elementary_test {
namespace {

constexpr float (*scalar[])(float) = {elementary<Elementary::exp>,   elementary<Elementary::log>,
                                      elementary<Elementary::tanh>,  elementary<Elementary::erf>,
                                      elementary<Elementary::rsqrt>, elementary<Elementary::sigmoid>};
static_assert(std::size(scalar) == enum_names<Elementary>.size());

/// Specials, random bits, and numbers of the size at which the functions bend.
std::vector<float> arguments(std::size_t count) {
  std::vector<float> values = special_floats();
  const std::vector<float> random = random_floats(count, 7);
  for (std::size_t i = 0; values.size() < count; ++i) {
    values.push_back(i % 2 == 0 ? random[i] : 240.0f * RandomStream{8}.uniform(i) - 120.0f);
  }
  values.resize(count);
  return values;
}

TEST_CASE("arrays have the elementary functions of scalars", "[kernel][elementary]") {
  const Threads threads(2);
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    for (std::size_t f = 0; f < std::size(scalar); ++f) {
      for (const std::size_t size :
           {std::size_t{0}, std::size_t{1}, std::size_t{31}, std::size_t{257 * 259}}) {
        const std::vector<float> x = arguments(size);
        std::vector<float> y = x;
        apply(static_cast<Elementary>(f), y, y);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < size; ++i) wrong += same_bits(y[i], scalar[f](x[i])) ? 0u : 1u;
        INFO(name_of(isa) << " " << enum_names<Elementary>[f] << " of " << size);
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("elementary functions refuse sizes that differ", "[kernel][elementary]") {
  const std::vector<float> x(3);
  std::vector<float> y(4);
  check_says(message_of<InvalidArgument>([&] { apply(Elementary::tanh, x, y); }), {"tanh", "3", "4"});
}

}  // namespace
}  // namespace halfscope::elementary_test
