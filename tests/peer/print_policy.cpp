// Prints the policies that settings say, for a peer that reads the same settings by another door.
//
//   print_policy      a line of stdin is {"settings": [[KEY, VALUE], ...], "layers": [NAME, ...]}; of stdout
//                     {"roles", "order", "sum_orders", "operands"}, the latter two by layer, or {"error"}
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <string>

#include <halfscope/core/error.hpp>

#include "sim/train/run_settings.hpp"

namespace halfscope {
namespace {

Json formats_of(const LayerOperands& operands) {
  Json formats = Json::object();
  for (const OperandPlace& place : operand_places)
    if (operands[place]) formats[to_string(place)] = to_string(*operands[place]);
  return formats;
}

Json resolved(const Json& asked) {
  TrainConfig config;
  for (const Json& setting : asked.at("settings"))
    set_field(config, setting.at(0).get<std::string>(), setting.at(1).get<std::string>());
  const PrecisionPolicy policy = parsed(config).policy;
  Json roles = Json::object(), sums = Json::object(), operands = Json::object();
  for (std::size_t role = 0; role < policy.quantizers.size(); ++role)
    roles[std::string(enum_names<Role>[role])] = to_string(policy.quantizers[role]);
  for (const Json& name : asked.at("layers")) {
    const auto layer = name.get<std::string>();
    sums[layer] = to_string(policy.reductions_in(layer));
    operands[layer] = formats_of(operands_of(policy.operands, OperationId("linear"), layer));
  }
  return {
      {"roles", roles}, {"order", to_string(policy.products)}, {"sum_orders", sums}, {"operands", operands}};
}

Json answer(const std::string& line) {
  try {
    return resolved(Json::parse(line));
  } catch (const InvalidArgument& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace
}  // namespace halfscope

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << halfscope::answer(line).dump() << "\n";
}
