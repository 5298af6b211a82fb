// Patterns of --group: which names they take, and what the group is called.
#include "experiments/cli/analyze/tensor_groups.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::tensor_groups_test {
namespace {

std::string group(std::string_view pattern, std::string_view name) {
  return GroupPattern(pattern).group_of(name).value_or("-");
}

TEST_CASE("stars are added up, braces are kept apart", "[groups]") {
  CHECK(group("layers.*.{attn,mlp}", "layers.0.attn.q.weight") == "layers.*.attn");
  CHECK(group("layers.*.{attn,mlp}", "layers.11.mlp") == "layers.*.mlp");
  CHECK(group("layers.*.{attn,mlp}", "layers.0.norm.weight") == "-");
  CHECK(group("layers.{*}", "layers.12.attn.weight") == "layers.12");
  CHECK(group("*.{q,k}_proj", "model.layers.0.q_proj.weight") == "*.q_proj");
  CHECK(group("h/?/w", "h/3/w") == "h/?/w");
  CHECK(group("{a,ab}c", "abc") == "abc");
}

TEST_CASE("a pattern ends where a part of the name does", "[groups]") {
  CHECK(group("layers.1", "layers.1.weight") == "layers.1");
  CHECK(group("layers.1", "layers.12.weight") == "-");
  CHECK(group("layers.1", "layers.1/weight") == "layers.1");
  CHECK(group("layers", "model.layers") == "-");
}

TEST_CASE("a part is not longer than up to the next dot", "[groups]") {
  CHECK(group("layers.{*}.weight", "layers.0.weight") == "layers.0.weight");
  CHECK(group("layers.{*}.weight", "layers.0.attn.weight") == "-");
  CHECK(group("layers.*.weight", "layers.0.attn.weight") == "layers.*.weight");
  CHECK(group("{*}.w", ".w") == "-");
  CHECK(group("a{*}/w", "a/x/w") == "-");
}

TEST_CASE("all parts are the whole rest of the name", "[groups]") {
  CHECK(group("{**}", "layers.0.attn.weight") == "layers.0.attn.weight");
  CHECK(group("layers.{**}", "layers.0.attn.weight") == "layers.0.attn.weight");
  CHECK(group("{**}.weight", "layers.0/attn.weight") == "layers.0/attn.weight");
  CHECK(group("?.{**}.{q,k}", "a.b.q.c.k.w") == "?.b.q.c.k");
  CHECK(group("layers.{**}", "layers.") == "-");
}

TEST_CASE("the first pattern that matches counts", "[groups]") {
  const TensorGroups groups{{GroupPattern("a.*"), GroupPattern("{*}")}};
  CHECK(groups.group_of("a.b") == "a.*");
  CHECK(groups.group_of("b.c") == "b");
  CHECK_FALSE(TensorGroups{}.group_of("a"));
}

TEST_CASE("patterns that are none are refused with what one looks like", "[groups]") {
  for (const char* pattern : {"", "a{b", "a}b", "{}", "{a{b}}"}) {
    check_says(message_of<InvalidArgument>([&] { static_cast<void>(GroupPattern(pattern)); }),
               {"--group", "layers.{*}"});
  }
}

}  // namespace
}  // namespace halfscope::tensor_groups_test
