// Reads one setting of Hugging Face's config.json; a file that is none of theirs says nothing.
#include <halfscope/io/detail/checkpoint_config.hpp>

#include <nlohmann/json.hpp>

#include <halfscope/core/error.hpp>
#include <halfscope/io/json/json_lines.hpp>

namespace halfscope {

std::optional<WeightBlock> weight_block_beside(const std::filesystem::path& file) {
  const std::filesystem::path path = file.parent_path() / "config.json";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  try {
    const Json config = read_json(path);
    if (!config.is_object()) return std::nullopt;
    const Json size = config.value(Json::json_pointer("/quantization_config/weight_block_size"), Json());
    if (!size.is_array() || size.size() != 2 || !is_integer(size[0]) || !is_integer(size[1]))
      return std::nullopt;
    return WeightBlock{size[0].get<std::int64_t>(), size[1].get<std::int64_t>()};
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

}  // namespace halfscope
