// Reads settings of Hugging Face's configurations; a file that is none of theirs says nothing.
#include <halfscope/io/detail/checkpoint_config.hpp>

#include <nlohmann/json.hpp>

#include <halfscope/core/error.hpp>
#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {
namespace {

/// The object in a file beside another, null where there is none.
Json object_beside(const std::filesystem::path& file, const char* name) {
  const std::filesystem::path path = file.parent_path() / name;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  try {
    Json config = read_json(path);
    return config.is_object() ? config : Json();
  } catch (const InvalidArgument&) {
    return {};
  }
}

std::optional<WeightBlock> block_of(const Json& config) {
  const Json size = config.value("weight_block_size", Json());
  if (!size.is_array() || size.size() != 2 || !is_integer(size[0]) || !is_integer(size[1]))
    return std::nullopt;
  return WeightBlock{size[0].get<std::int64_t>(), size[1].get<std::int64_t>()};
}

/// GPTQ's form; a configuration of before there were two has no name for it.
std::optional<bool> zeros_as_are(const Json& config, bool is_of_gptq) {
  const Json form = config.value("checkpoint_format", Json());
  if (form.is_null() && is_of_gptq) return false;
  if (form == "gptq") return false;
  return form == "gptq_v2" ? std::optional(true) : std::nullopt;
}

}  // namespace

StatedQuantization quantization_beside(const std::filesystem::path& file) {
  const Json model = object_beside(file, "config.json");
  Json config = model.is_object() ? model.value("quantization_config", Json()) : Json();
  bool is_of_gptq = config.is_object() && config.value("quant_method", Json()) == "gptq";
  const Json own = object_beside(file, "quantize_config.json");
  if (!config.is_object() || (is_of_gptq && !config.contains("checkpoint_format") && own.is_object())) {
    config = own;
    is_of_gptq = config.is_object() && config.contains("bits");
  }
  if (!config.is_object()) return {};
  StatedQuantization stated{.block = block_of(config), .zeros_as_are = zeros_as_are(config, is_of_gptq)};
  const Json symmetric = config.value("sym", Json());
  if (symmetric.is_boolean()) stated.is_symmetric = symmetric.get<bool>();
  return stated;
}

}  // namespace halfscope
