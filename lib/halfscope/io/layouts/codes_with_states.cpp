// FP8 without scales of its own, where something that is not read may hold them: pickled or byte states, as
// TransformerEngine has them, lists for all layers, a configuration that calls the file quantized.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <halfscope/core/escape.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/layouts/detail/layouts.hpp>
#include <halfscope/io/layouts/detail/scale_names.hpp>
#include <halfscope/io/safetensors/detail/safetensors_header.hpp>

namespace halfscope {
namespace {

/// Finds what may hold the scales of a payload.
class StateFinder {
 public:
  explicit StateFinder(const FileParts& parts) : parts_(parts) {
    for (const SkippedTensor& skipped : parts.file().skipped())
      if (is_bytes(skipped)) states_.insert(skipped.name);
  }

  /// Its name; empty where there is none.
  [[nodiscard]] std::string state_of(const std::string& payload) const {
    const std::string module(module_of(payload)), texts(safetensors_metadata_key);
    if (states_.contains(texts)) return texts;
    for (const std::string& name : names_with(module))
      if (name != payload && is_state_in(name, std::string_view(name).substr(module.size()))) return name;
    for (std::string_view above = module; !above.empty();) {
      above = module_of(above.substr(0, above.size() - 1));
      if (std::string found = list_in(above); !found.empty()) return found;
    }
    return "";
  }

 private:
  /// Scales of all layers, or a state of them, in a module above theirs.
  [[nodiscard]] std::string list_in(std::string_view module) const {
    constexpr std::array<std::string_view, 3> words{"fp8", "quant", "scale"};
    for (const char* const list : {"scales", "scale", "scale_inv", "weight_scales", "weight_scale",
                                   "fp8_scales", "fp8_scale", "scaled_fp8"}) {
      std::string name = std::string(module) + list;
      if (parts_.holds(name) || parts_.is_skipped(name)) return name;
    }
    for (const std::string& state : states_)
      if (module_of(state) == module && has_any_word(std::string_view(state).substr(module.size()), words) &&
          state.find("scaler") == std::string::npos)
        return state;
    return "";
  }

  /// Bytes, pickled objects and integers of 8 bits in a row: a text of another format.
  [[nodiscard]] bool is_bytes(const SkippedTensor& skipped) const {
    if (const StoredCodes* codes = parts_.find_codes(skipped.name))
      return codes->type == "U8" && codes->shape.size() == 1;
    return skipped.reason == "dtype uint8" || !skipped.reason.starts_with("dtype ");
  }

  /// Whether `rest`, the name behind the module's, is that of a state, or of a number within one.
  [[nodiscard]] bool is_state_in(const std::string& name, std::string_view rest) const {
    constexpr std::array<std::string_view, 4> states{"extra_state", "fp8", "quant", "meta"};
    constexpr std::array<std::string_view, 3> factors{"scal", "amax", "zero"};
    const std::size_t dot = rest.find('.');
    const bool is_of_file = rest.size() == name.size();  // beside it may lie anything
    if (dot == std::string_view::npos)
      return states_.contains(name) && (!is_of_file || has_any_word(rest, states));
    return has_any_word(rest.substr(0, dot), states) && has_any_word(rest.substr(dot), factors);
  }

  /// Names of tensors and of states that begin so.
  [[nodiscard]] std::vector<std::string> names_with(const std::string& prefix) const {
    std::vector<std::string> names = parts_.names_with(prefix);
    for (auto at = states_.lower_bound(prefix); at != states_.end() && at->starts_with(prefix); ++at)
      names.push_back(*at);
    return names;
  }

  const FileParts& parts_;
  std::set<std::string> states_{};
};

void refuse_with_state(FileParts& parts, const StateFinder& states, const std::string& name,
                       const std::vector<std::int64_t>& shape) {
  if (shape.size() < 2 || elements_of_shape(shape) < 2 || parts.is_taken(name) || is_named_scale(name))
    return;
  if (const std::string state = states.state_of(name); !state.empty())
    return parts.refuse(name,
                        fmt::format("its scales may be in {}, which is not read; save the weights in BF16 "
                                    "with the library that wrote them",
                                    excerpt(state)));
  const StatedQuantization& stated = parts.reading().stated;
  if (!stated.method.empty() || !stated.bits.empty())
    parts.refuse(name, fmt::format("{} says that weights are quantized, and no scale of it is in the file",
                                   stated.source));
}

}  // namespace

void refuse_codes_with_states(FileParts& parts) {
  const TensorFile& file = parts.file();
  const StateFinder states(parts);
  for (const StoredTensor& tensor : file.tensors())
    if (tensor.type == DType::f8_e4m3 || tensor.type == DType::f8_e5m2)
      refuse_with_state(parts, states, tensor.name, tensor.shape);
  for (const StoredCodes& codes : file.codes())
    if (codes.type != "U8" && codes.type != "F8_E8M0" && source_of(codes))
      refuse_with_state(parts, states, codes.name, codes.shape);
}

}  // namespace halfscope
