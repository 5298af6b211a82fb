// Names of Hugging Face checkpoints: DeepSeek's, ModelOpt's, compressed-tensors', gpt-oss'.
#include <halfscope/io/detail/quantized_names.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include <halfscope/core/escape.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/io/detail/parse_error.hpp>

namespace halfscope {
namespace {

bool is_eight_bits(DType type) {
  return type == DType::f8_e4m3 || type == DType::f8_e5m2;
}

/// `name` without `suffix`; nothing where it has another end.
std::optional<std::string> without(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix) || name.size() == suffix.size()) return std::nullopt;
  return std::string(name.substr(0, name.size() - suffix.size()));
}

/// Finds and pairs the parts of one file.
class Pairing {
 public:
  Pairing(const TensorFile& file, const std::string& file_name, const QuantizedReading& reading)
      : file_(file), file_name_(file_name), reading_(reading), names_(file) {}

  QuantizedParts parts() {
    for (const StoredCodes& codes : file_.codes()) {
      pair_blocks(codes);
      pair_scale(codes.name);
    }
    for (const StoredTensor& tensor : file_.tensors()) pair_scale(tensor.name);
    if (reading_.beside) leave_out_codes();
    return std::move(parts_);
  }

 private:
  std::optional<CodeSource> find(const std::string& name, std::string_view byte_type) const {
    if (const auto tensor = names_.tensors.find(name); tensor != names_.tensors.end())
      return source_of(file_, tensor->second);
    const auto codes = names_.codes.find(name);
    return codes == names_.codes.end() ? std::nullopt : source_of(file_.codes()[codes->second], byte_type);
  }

  [[noreturn]] void refuse_tensor(const std::string& name, const std::string& problem) const {
    refuse(fmt::format("{}: tensor {}", file_name_, excerpt(name)), problem);
  }

  /// A part that means nothing by itself; the rest of the file is read.
  void leave_out(const std::string& name, std::string_view lacks, const std::string& other) {
    const auto file = reading_.beside ? reading_.beside(other, name) : std::nullopt;
    leave_out_for(name, fmt::format("{} {}", lacks, excerpt(other)), file);
  }

  void leave_out_for(const std::string& name, const std::string& lacks,
                     const std::optional<std::string>& file) {
    parts_.problems.push_back(fmt::format("{}: tensor {} is not read: {}, which is {}", file_name_,
                                          excerpt(name), lacks,
                                          file ? fmt::format("in {}; give that file too", *file)
                                               : "not in the file; give the one that has it too"));
    parts_.consumed.push_back(name);
  }

  /// Codes that another file has scales for are no weights; without such a file they are numbers.
  void leave_out_codes() {
    const std::set<std::string> taken(parts_.consumed.begin(), parts_.consumed.end());
    const auto look = [&](const std::string& name) {
      if (taken.contains(name)) return;
      for (const char* const suffix : {"_scale_inv", "_scale"}) {
        const auto file = reading_.beside(name + suffix, name);
        if (file) return leave_out_for(name, fmt::format("its scales are {}", excerpt(name + suffix)), file);
      }
    };
    for (const StoredTensor& tensor : file_.tensors())
      if (is_eight_bits(tensor.type)) look(tensor.name);
    for (const StoredCodes& codes : file_.codes()) look(codes.name);
  }

  void pair_blocks(const StoredCodes& codes) {
    if (const auto base = without(codes.name, "_scales"); base && !find(*base + "_blocks", "F4"))
      return leave_out(codes.name, "its payload is", *base + "_blocks");
    const auto base = without(codes.name, "_blocks");
    if (!base || codes.type != "U8") return;
    const auto scales = find(*base + "_scales", "F8_E8M0");
    if (!scales) return leave_out(codes.name, "its scales are", *base + "_scales");
    CodeSource payload = *source_of(codes, "F4");
    std::vector<std::int64_t> shape = payload.shape;
    if (shape.size() >= 2) {
      const std::int64_t block = shape.back();
      shape.pop_back();
      shape.back() *= block;
    }
    add(*base, std::move(shape), std::move(payload), *scales);
  }

  void pair_scale(const std::string& name) {
    auto payload_name = without(name, "_scale_inv");
    if (!payload_name) payload_name = without(name, "_scale");
    if (!payload_name) return check_second(name);
    const auto payload = find(*payload_name, "F4");
    const bool is_stray = !payload && payload_name->ends_with("weight") && !is_skipped(*payload_name);
    if (is_stray) return leave_out(name, "its payload is", *payload_name);
    if (!payload || (payload->type == nullptr && !is_eight_bits(file_.tensors()[payload->index].type)))
      return;
    const auto scales = find(name, "F8_E8M0");
    if (scales) add(*payload_name, payload->shape, *payload, *scales);
  }

  void check_second(const std::string& name) {
    const auto payload = without(name, "_scale_2");
    if (payload && payload->ends_with("weight") && !find(*payload + "_scale", "F8_E8M0"))
      leave_out(name, "the scales of its blocks are", *payload + "_scale");
  }

  /// Integers, say: a quantization that is not read.
  bool is_skipped(const std::string& name) const { return names_.skipped.contains(name); }

  void add(std::string name, std::vector<std::int64_t> shape, CodeSource payload, const CodeSource& scales) {
    const auto layout = fit_blocks(shape, scales.shape);
    if (!layout)
      refuse_tensor(
          name, fmt::format("scales {} of shape {} do not fit its shape {}; a scale for each block of rows "
                            "and columns would",
                            excerpt(scales.name), to_string(scales.shape), to_string(shape)));
    QuantizedTensor tensor{name, std::move(shape), std::move(payload), scales, std::nullopt, *layout};
    add_tensor_scale(tensor);
    if (reading_.block && scales.name.ends_with("_scale_inv")) apply_stated_block(tensor);
    parts_.consumed.push_back(tensor.payload.name);
    parts_.consumed.push_back(scales.name);
    if (const auto module = without(name, "weight")) parts_.consumed.push_back(*module + "input_scale");
    parts_.tensors.push_back(std::move(tensor));
  }

  /// Takes DeepSeek's blocks from the model's configuration, where the shapes allow several.
  void apply_stated_block(QuantizedTensor& tensor) {
    const auto [rows, columns] = *reading_.block;
    if (blocks_fit(tensor.shape, tensor.scales.shape, rows, columns)) {
      tensor.layout.block_rows = rows;
      tensor.layout.block_columns = columns;
      return;
    }
    parts_.problems.push_back(
        fmt::format("{}: tensor {}: config.json says weight_block_size [{}, {}], its scales of shape {} are "
                    "of blocks of {} x {} and are read so; correct config.json, or quantize again",
                    file_name_, excerpt(tensor.name), rows, columns, to_string(tensor.scales.shape),
                    tensor.layout.block_rows, tensor.layout.block_columns));
  }

  void add_tensor_scale(QuantizedTensor& tensor) {
    const std::string name = tensor.name + "_scale_2";
    const auto scale = find(name, "F8_E8M0");
    if (!scale) return;
    if (scale->elements() != 1)
      refuse_tensor(name, fmt::format("shape {}; one number is right", to_string(scale->shape)));
    float value = 0;
    scale->read(file_, 0, {&value, 1});
    tensor.tensor_scale = value;
    parts_.consumed.push_back(name);
  }

  const TensorFile& file_;
  const std::string& file_name_;
  const QuantizedReading& reading_;
  NamesOfFile names_;
  QuantizedParts parts_;
};

}  // namespace

void CodeSource::read(const TensorFile& file, std::int64_t first, std::span<float> values) const {
  if (type != nullptr) return read_codes(file, *codes, *type, first, values);
  auto next = values.begin();
  file.read(index, first, static_cast<std::int64_t>(values.size()),
            [&](std::span<const float> piece) { next = std::ranges::copy(piece, next).out; });
}

std::int64_t CodeSource::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

CodeSource source_of(const TensorFile& file, std::size_t index) {
  const StoredTensor& tensor = file.tensors()[index];
  std::string type(name_of(tensor.type));
  std::ranges::transform(type, type.begin(), [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  const FloatFormat format = tensor.type == DType::f64 ? fp32 : format_of(tensor.type);
  return {.name = tensor.name,
          .type_name = std::move(type),
          .shape = tensor.shape,
          .index = index,
          .largest = from_bits(format.max_finite_bits()),
          .limit = static_cast<float>(overflow_limit(format))};
}

std::optional<CodeSource> source_of(const StoredCodes& codes, std::string_view byte_type) {
  const bool is_byte = codes.type == "U8";
  const CodeType* type = find_code_type(is_byte ? byte_type : std::string_view(codes.type));
  if (type == nullptr) return std::nullopt;
  CodeSource source{.name = codes.name,
                    .type_name = std::string(type->name),
                    .shape = codes.shape,
                    .type = type,
                    .codes = &codes,
                    .largest = type->largest,
                    .limit = type->limit};
  if (is_byte && type->bits == 4 && !source.shape.empty()) source.shape.back() *= 2;
  return source;
}

QuantizedParts find_quantized(const TensorFile& file, const std::string& file_name,
                              const QuantizedReading& reading) {
  return Pairing(file, file_name, reading).parts();
}

NamesOfFile::NamesOfFile(const TensorFile& file) {
  const auto add = [](auto& places, const auto& list) {
    for (std::size_t i = 0; i < list.size(); ++i) places.emplace(list[i].name, i);
  };
  add(tensors, file.tensors());
  add(codes, file.codes());
  add(skipped, file.skipped());
}

std::string_view byte_type_of(const NamesOfFile& names, const StoredCodes& codes, const FileBeside& beside) {
  const std::string_view name = codes.name;
  if (name.ends_with("_scales") || name.ends_with("_scale") || name.ends_with("_scale_inv")) return "F8_E8M0";
  if (name.ends_with("_blocks")) return "F4";
  const std::string scale = codes.name + "_scale";
  const bool is_payload =
      names.tensors.contains(scale) || names.codes.contains(scale) || (beside && beside(scale, codes.name));
  return is_payload ? "F4" : std::string_view();
}

}  // namespace halfscope
