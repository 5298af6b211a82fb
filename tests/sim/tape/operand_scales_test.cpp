// Delayed scales as state of a run.
#include "sim/tape/operand_scales.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::operand_scales_test {
namespace {

TEST_CASE("delayed scales come back from their state", "[operands]") {
  OperandScales scales;
  for (const float amax : {1.0f, 8.0f, 2.0f})
    scales.update({{"fc.forward.left", {amax, 448, {.history = 2}}}, {"fc.forward.right", {amax, 448, {}}}});
  CHECK(scales.scale("fc.forward.left") == 56);
  CHECK(scales.scale("another") == 1);
  OperandScales restored;
  for (const auto& [operand, state] : scales.state()) restored.restore(operand, state);
  for (OperandScales* each : {&scales, &restored})
    each->update({{"fc.forward.left", {1, 448, {.history = 2}}}});
  CHECK(scales.scale("fc.forward.left") == 224);
  CHECK(restored.scale("fc.forward.left") == 224);
  CHECK(restored.scale("fc.forward.right") == 56);
  check_says(message_of<InvalidArgument>([&] {
               restored.restore("fc.forward.left", Array::zeros({2, 2}));
             }),
             {"fc.forward.left", "row of floats"});
}

}  // namespace
}  // namespace halfscope::operand_scales_test
