// bitsandbytes: NF4 and FP4 by a table of sixteen numbers, with scales that may be quantized themselves, and
// INT8 with a scale for each row.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include <halfscope/core/error.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/io/layouts/detail/grouped_integers.hpp>
#include <halfscope/io/layouts/detail/layouts.hpp>

namespace halfscope {
namespace {

constexpr std::size_t table_size = 16;
constexpr std::int64_t table_step = 16384;

/// Numbers of the state that stands beside a weight.
struct TableState {
  std::string type;
  std::vector<std::int64_t> shape;
  std::int64_t block = 0, nested_block = 0;
  float offset = 0;
};

/// Parts of one weight; scales are numbers, or codes of numbers of their own.
struct TableParts {
  TableState state;
  const StoredCodes* codes = nullptr;
  std::array<float, table_size> table{};
  CodeSource scales{};                          ///< where they are numbers
  const StoredCodes* scale_codes = nullptr;     ///< where they are codes
  std::vector<float> nested{}, nested_table{};  ///< scales of the codes, and their numbers
};

std::int64_t blocks_for(std::int64_t elements, std::int64_t block) {
  return (elements + block - 1) / block;
}

class TableCodes : public QuantizedTensor {
 public:
  TableCodes(std::string name, TableParts parts)
      : QuantizedTensor(std::move(name), parts.state.shape), parts_(std::move(parts)) {}

  CodeKind kind() const override { return {.library = "bitsandbytes", .bits = 4}; }

  void read(const TensorFile& file, std::int64_t first, std::span<float> values) const override {
    go_over(file, first, std::ssize(values), [&](float number, float scale, std::int64_t) {
      values.front() = number * scale;
      values = values.subspan(1);
    });
  }

  BlockFindings findings(const TensorFile& file) const override {
    const std::int64_t blocks = blocks_for(stored().elements, parts_.state.block);
    BlockFindings found{.layout = fmt::format(
                            "{} in blocks of {}, scales {}", parts_.state.type, parts_.state.block,
                            parts_.scale_codes != nullptr ? "quantized themselves" : parts_.scales.type_name),
                        .blocks = blocks};
    std::vector<float> largest(static_cast<std::size_t>(blocks), 0.0f), scales(largest);
    go_over(file, 0, stored().elements, [&](float number, float scale, std::int64_t element) {
      const auto block = static_cast<std::size_t>(element / parts_.state.block);
      largest[block] = std::max(largest[block], std::abs(number));
      scales[block] = scale;
    });
    float most = 0;
    for (const float number : parts_.table) most = std::max(most, std::abs(number));
    for (std::size_t i = 0; i < largest.size(); ++i)
      judge_block({static_cast<std::int64_t>(i), largest[i], scales[i]}, {most, HUGE_VALF}, found);
    return found;
  }

 private:
  [[nodiscard]] std::vector<float> scales_of(const TensorFile& file, std::int64_t first,
                                             std::int64_t count) const {
    std::vector<float> scales(static_cast<std::size_t>(count));
    if (parts_.scale_codes == nullptr) {
      parts_.scales.read(file, first, scales);
      return scales;
    }
    std::vector<std::byte> codes(scales.size());
    file.read_bytes(*parts_.scale_codes, static_cast<std::uint64_t>(first), codes);
    for (std::size_t i = 0; i < scales.size(); ++i) {
      const auto of_nested =
          static_cast<std::size_t>((first + static_cast<std::int64_t>(i)) / parts_.state.nested_block);
      const float number = parts_.nested_table[std::to_integer<std::size_t>(codes[i])];
      scales[i] = number * parts_.nested[of_nested] + parts_.state.offset;
    }
    return scales;
  }

  /// take(number of the table, scale, element); the first element of a byte is in its high nibble.
  template <typename Take>
  void go_over(const TensorFile& file, std::int64_t first, std::int64_t count, Take&& take) const {
    std::vector<std::byte> bytes;
    for (const std::int64_t end = first + count; first < end;) {
      const std::int64_t step = std::min(table_step, end - first), block = parts_.state.block;
      const std::int64_t first_block = first / block;
      const auto scales = scales_of(file, first_block, (first + step - 1) / block - first_block + 1);
      bytes.resize(static_cast<std::size_t>((first + step - 1) / 2 - first / 2 + 1));
      file.read_bytes(*parts_.codes, static_cast<std::uint64_t>(first / 2), bytes);
      const std::int64_t first_byte = first / 2;
      for (const std::int64_t stop = first + step; first < stop; ++first) {
        const auto byte = std::to_integer<unsigned>(bytes[static_cast<std::size_t>(first / 2 - first_byte)]);
        take(parts_.table[first % 2 == 0 ? byte >> 4 : byte & 15u],
             scales[static_cast<std::size_t>(first / block - first_block)], first);
      }
    }
  }

  TableParts parts_;
};

/// The state, a text of JSON stored as bytes.
Json read_state(const TensorFile& file, const StoredCodes& codes) {
  constexpr std::uint64_t longest = 1 << 16;
  std::string text(std::min(codes.bytes, longest), ' ');
  file.read_bytes(codes, 0, std::as_writable_bytes(std::span(text)));
  return Json::parse(text, nullptr, false);
}

std::int64_t extent_in(const Json& state, const char* key) {
  const Json value = state.value(key, Json());
  return is_integer(value) ? value.get<std::int64_t>() : 0;
}

std::optional<TableState> state_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  TableState state{.type = json.value("quant_type", Json("")).is_string()
                               ? json.value("quant_type", std::string())
                               : std::string(),
                   .shape = {},
                   .block = extent_in(json, "blocksize"),
                   .nested_block = extent_in(json, "nested_blocksize")};
  const Json shape = json.value("shape", Json());
  constexpr std::int64_t longest = std::int64_t{1} << 48;
  if (state.block > longest || state.nested_block > longest) return std::nullopt;
  if ((state.type != "nf4" && state.type != "fp4") || state.block <= 0 || !shape.is_array())
    return std::nullopt;
  std::int64_t elements = 1;
  for (const Json& extent : shape) {
    if (!is_integer(extent) || extent.get<std::int64_t>() < 0) return std::nullopt;
    state.shape.push_back(extent.get<std::int64_t>());
    if (__builtin_mul_overflow(elements, state.shape.back(), &elements) || elements > longest)
      return std::nullopt;
  }
  const Json offset = json.value("nested_offset", Json(0.0));
  if (!offset.is_number()) return std::nullopt;
  state.offset = offset.get<float>();
  std::ranges::transform(state.type, state.type.begin(),
                         [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  return state;
}

/// All numbers of a small tensor; empty where it is missing or has another size.
std::vector<float> small_table(const FileParts& parts, const std::string& name, std::int64_t elements) {
  const auto source = parts.find_numbers(name);
  if (!source || source->elements() != elements) return {};
  std::vector<float> values(static_cast<std::size_t>(elements));
  source->read(parts.file(), 0, values);
  return values;
}

/// Fills in the scales; false where they do not fit.
bool add_table_scales(const FileParts& parts, const std::string& name, TableParts& found) {
  const std::int64_t blocks = blocks_for(elements_of_shape(found.state.shape), found.state.block);
  if (const auto scales = parts.find_numbers(name + ".absmax")) {
    found.scales = *scales;
    return scales->elements() == blocks;
  }
  found.scale_codes = parts.find_codes(name + ".absmax", "U8");
  if (found.scale_codes == nullptr || found.state.nested_block <= 0) return false;
  if (found.scale_codes->bytes != static_cast<std::uint64_t>(blocks)) return false;
  constexpr std::int64_t codes = 256;
  found.nested = small_table(parts, name + ".nested_absmax", blocks_for(blocks, found.state.nested_block));
  found.nested_table = small_table(parts, name + ".nested_quant_map", codes);
  return (blocks == 0 || !found.nested.empty()) && !found.nested_table.empty();
}

void read_table_codes(FileParts& parts, const StoredCodes& codes, const StoredCodes& state) {
  const std::string& name = codes.name;
  const auto read = state_of(read_state(parts.file(), state));
  TableParts found{.state = read.value_or(TableState{}), .codes = &codes};
  const std::vector<float> table = small_table(parts, name + ".quant_map", table_size);
  const bool fits =
      read && !table.empty() &&
      codes.bytes == static_cast<std::uint64_t>((elements_of_shape(found.state.shape) + 1) / 2) &&
      add_table_scales(parts, name, found);
  for (const std::string& part : parts.names_with(name + ".")) parts.take(part);
  if (!fits)
    return parts.refuse(
        name,
        "its absmax, quant_map and quant_state are not those of bitsandbytes' NF4 or FP4; save "
        "it again with the library that wrote it, or its model after model.dequantize()");
  parts.take(name);
  std::ranges::copy(table, found.table.begin());
  parts.add(std::make_unique<TableCodes>(name, std::move(found)));
}

/// `weight` I8 with `SCB`: a row's largest magnitude, which the code 127 stands for.
void read_row_integers(FileParts& parts, const StoredCodes& codes) {
  const auto module = without_ending(codes.name, "weight");
  const auto scales = module ? parts.find_numbers(*module + "SCB") : std::nullopt;
  if (!scales || codes.shape.size() != 2) return;
  GroupedParts tensor{
      .name = codes.name, .method = "INT8 of bitsandbytes", .library = "bitsandbytes", .shape = codes.shape};
  tensor.integers = {&codes, 8, true, BitPacking::along_columns, codes.shape[0], codes.shape[1]};
  const auto layout = fit_blocks(codes.shape, {codes.shape[0], 1});
  if (!layout || scales->elements() != codes.shape[0] || !tensor.integers.fits()) return;
  tensor.layout = *layout;
  tensor.scales = *scales;
  tensor.last_factor = 7.874015718698502e-3f;
  for (const std::string& part : {codes.name, *module + "SCB", *module + "weight_format"}) parts.take(part);
  parts.add(grouped_integers(std::move(tensor)));
}

}  // namespace

void read_bitsandbytes(FileParts& parts) {
  for (const StoredCodes& codes : parts.file().codes()) {
    if (parts.is_taken(codes.name)) continue;
    if (codes.type == "I8") read_row_integers(parts, codes);
    if (codes.type != "U8") continue;
    for (const char* const kind : {"nf4", "fp4"}) {
      const std::string state = codes.name + ".quant_state.bitsandbytes__" + kind;
      if (const StoredCodes* held = parts.find_codes(state, "U8")) read_table_codes(parts, codes, *held);
    }
  }
}

}  // namespace halfscope
