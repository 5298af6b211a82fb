// Reads settings of Hugging Face's configurations; a file that is none of theirs says nothing.
#include <halfscope/io/detail/checkpoint_config.hpp>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include <halfscope/core/error.hpp>
#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/io/layouts/detail/scale_names.hpp>

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

/// Settings of weights in an object of a configuration, and in the objects within it.
class WeightSettings {
 public:
  explicit WeightSettings(StatedQuantization& stated) : stated_(stated) {}

  void look_at(const Json& config) {
    look_into(config, 0);
    if (leaves_groups_open_) stated_.groups.clear();
  }

 private:
  void look_into(const Json& value, int depth) {
    constexpr int deepest = 8;
    if (depth > deepest) return;
    if (value.is_array())
      for (const Json& item : value) look_into(item, depth + 1);
    if (!value.is_object()) return;
    const bool has_bits = take_bits(value);
    if (has_bits) take_group(value);
    for (const auto& [key, item] : value.items())
      if (!is_of_activations(key)) look_into(item, depth + 1);
  }

  /// Settings of inputs, outputs and caches, which are no weights'.
  static bool is_of_activations(const std::string& key) {
    constexpr std::array<std::string_view, 4> words{"activation", "input", "output", "kv_cache"};
    return has_any_word(key, words);
  }

  bool take_bits(const Json& object) {
    const std::size_t before = stated_.bits.size();
    bool has_any = false;
    for (const char* const key : {"bits", "num_bits", "w_bit", "wbits", "weight_bits"}) {
      const Json bits = object.value(key, Json());
      if (!is_integer(bits)) continue;
      stated_.bits.insert(bits.get<std::int64_t>());
      has_any = true;
    }
    for (const auto& [key, bits] : {std::pair("load_in_4bit", 4), std::pair("load_in_8bit", 8)})
      if (object.value(key, Json()) == true) stated_.bits.insert(bits);
    const Json type = object.value("type", Json());
    if (has_any && type == "int") stated_.has_integers = true;
    if (has_any && type == "float") stated_.has_floats = true;
    if (const Json algorithm = object.value("quant_algo", Json()); algorithm.is_string())
      take_algorithm(algorithm.get<std::string>());
    return has_any || stated_.bits.size() > before;
  }

  /// ModelOpt's "FP8", "NVFP4", "W4A8_AWQ", "INT4_AWQ": a number of bits behind the type of the weights.
  void take_algorithm(std::string_view name) {
    for (const std::string_view type : {"FP", "INT", "W"}) {
      const std::size_t at = name.find(type);
      if (at == std::string_view::npos || at + type.size() >= name.size()) continue;
      const char digit = name[at + type.size()];
      if (digit < '1' || digit > '9') continue;
      stated_.bits.insert(digit - '0');
      if (type == "FP") stated_.has_floats = true;
      if (type == "INT") stated_.has_integers = true;
      return;
    }
  }

  void take_group(const Json& object) {
    bool has_any = false;
    for (const char* const key : {"group_size", "q_group_size"}) {
      const Json size = object.value(key, Json());
      if (!is_integer(size)) continue;
      stated_.groups.insert(size.get<std::int64_t>());
      has_any = true;
    }
    leaves_groups_open_ = leaves_groups_open_ || !has_any;
  }

  StatedQuantization& stated_;
  bool leaves_groups_open_ = false;
};

}  // namespace

StatedQuantization quantization_beside(const std::filesystem::path& file) {
  const Json model = object_beside(file, "config.json");
  Json config;
  std::string source = "config.json";
  for (const char* const key : {"quantization_config", "compression_config"})
    if (model.is_object() && !config.is_object()) config = model.value(key, Json());
  const auto take_file = [&](const char* name, const Json& other) {
    config = other;
    source = name;
  };
  const Json own = object_beside(file, "quantize_config.json");
  bool is_gptq = config.is_object() && config.value("quant_method", Json()) == "gptq";
  if (!config.is_object() || (is_gptq && !config.contains("checkpoint_format") && own.is_object())) {
    take_file("quantize_config.json", own);
    is_gptq = config.is_object() && config.contains("bits");
  }
  if (!config.is_object())
    if (const Json other = object_beside(file, "hf_quant_config.json"); other.is_object())
      take_file("hf_quant_config.json", other.value("quantization", Json()));
  if (!config.is_object()) return {};
  StatedQuantization stated{
      .source = std::move(source), .block = block_of(config), .zeros_as_are = zeros_as_are(config, is_gptq)};
  const Json method = config.value("quant_method", Json());
  if (method.is_string()) stated.method = method.get<std::string>();
  const Json symmetric = config.value("sym", Json());
  if (symmetric.is_boolean()) stated.is_symmetric = symmetric.get<bool>();
  WeightSettings(stated).look_at(config);
  return stated;
}

}  // namespace halfscope
