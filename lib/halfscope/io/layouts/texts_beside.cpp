// Texts in bytes beside codes, as ComfyUI writes them: an order of scales or a rotation may stand in one.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/io/layouts/detail/layouts.hpp>
#include <halfscope/io/layouts/detail/scale_names.hpp>

namespace halfscope {
namespace {

std::string text_of(const FileParts& parts, const StoredCodes& codes) {
  std::string text(codes.bytes, '\0');
  parts.file().read_bytes(codes, 0, std::as_writable_bytes(std::span(text)));
  return text;
}

/// Whether a text says no more than that codes are FP8.
bool says_fp8(const Json& text) {
  if (!text.is_object()) return false;
  for (const auto& [key, value] : text.items()) {
    const bool is_format =
        key == "format" && value.is_string() && value.get_ref<const std::string&>().starts_with("float8_");
    if (!is_format && key != "full_precision_matrix_mult") return false;
  }
  return true;
}

}  // namespace

void compare_with_texts(FileParts& parts) {
  constexpr std::uint64_t longest = 1 << 16;
  std::map<std::string, std::string, std::less<>> texts;  // by module
  for (const StoredCodes& codes : parts.file().codes()) {
    const bool is_row = codes.type == "U8" && codes.shape.size() == 1 && codes.bytes <= longest;
    if (!is_row || parts.is_taken(codes.name)) continue;
    const std::string text = text_of(parts, codes);
    if (text.starts_with('{')) texts.emplace(module_of(codes.name), text);
  }
  for (std::size_t i = 0; i < parts.tensors().size() && !texts.empty();) {
    const QuantizedTensor& tensor = *parts.tensors()[i];
    const auto text = texts.find(module_of(tensor.stored().name));
    const bool is_fp8 = tensor.kind().bits == 8 && !tensor.kind().are_integers;
    const bool fits = text == texts.end() || (is_fp8 && says_fp8(Json::parse(text->second, nullptr, false)));
    if (fits)
      ++i;
    else
      parts.take_back(i, fmt::format("a text beside it says {}, which may change the order of its scales or "
                                     "what its codes mean; save it in BF16 with the program that wrote it",
                                     excerpt(text->second)));
  }
}

}  // namespace halfscope
