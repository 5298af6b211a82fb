// Names of the orders and wires of an all-reduce, and the check of its ranks.
#include <halfscope/arithmetic/all_reduce.hpp>

#include <fmt/format.h>

namespace halfscope {
namespace {

struct WireFormat {
  std::string_view name;
  DType storage;
};
constexpr std::array wire_formats{WireFormat{"fp16", DType::f16}, WireFormat{"bf16", DType::bf16},
                                  WireFormat{"fp32", DType::f32}};

}  // namespace

std::string to_string(const AllReduceModel& model) {
  std::string text(model.order->name);
  for (const WireFormat& wire : wire_formats) {
    if (wire.storage == model.wire && wire.storage != DType::f16)
      text = fmt::format("{}/{}", text, wire.name);
  }
  return text;
}

AllReduceModel parse_all_reduce(std::string_view text) {
  const std::size_t slash = text.find('/');
  AllReduceModel model{.order = &find_in_table("all-reduce order", text.substr(0, slash), all_reduce_orders)};
  if (slash != std::string_view::npos)
    model.wire = find_in_table("format on the wire", text.substr(slash + 1), wire_formats).storage;
  return model;
}

AddPlan make_plan(const AllReduceModel& model, AllReduceBuffer buffer) {
  if (buffer.ranks < 1 || buffer.ranks > most_ranks) {
    throw InvalidArgument(
        fmt::format("an all-reduce of {} ranks: give 1 to {} ranks", buffer.ranks, most_ranks));
  }
  buffer.element_bytes = static_cast<std::int64_t>(bytes_per_element(model.wire));
  return model.order->plan(buffer);
}

}  // namespace halfscope
