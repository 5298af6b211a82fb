// Tensors that were read, beside what the configuration says of them: one that it contradicts is left out.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <halfscope/core/escape.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/layouts/detail/layouts.hpp>

namespace halfscope {
namespace {

/// Codes that a method of a configuration writes.
struct KnownMethod {
  std::string_view name, library;  ///< library empty: parts that several write
  unsigned bits;                   ///< 0: any
  bool has_integers, has_floats;
};
constexpr std::array known_methods{
    KnownMethod{"gptq", "GPTQ", 0, true, false},
    KnownMethod{"awq", "AWQ", 0, true, false},
    KnownMethod{"bitsandbytes", "bitsandbytes", 0, true, true},
    KnownMethod{"fp8", "", 8, false, true},
    KnownMethod{"fbgemm_fp8", "", 8, false, true},
    KnownMethod{"mxfp4", "", 4, false, true},
};

std::string words_of(const CodeKind& kind) {
  return fmt::format("{}{} of {} bits", kind.library.empty() ? "" : fmt::format("{}'s ", kind.library),
                     kind.are_integers ? "integers" : "floats", kind.bits);
}

/// Method, kind or bits that the configuration states, where those of the codes are others; else empty.
std::string contradiction(const StatedQuantization& stated, const QuantizedTensor& tensor,
                          const TensorFile& file) {
  const CodeKind kind = tensor.kind();
  const auto* const method = std::ranges::find(known_methods, stated.method, &KnownMethod::name);
  if (method != known_methods.end()) {
    const bool fits = method->library == kind.library && (method->bits == 0 || method->bits == kind.bits) &&
                      (kind.are_integers ? method->has_integers : method->has_floats);
    if (!fits) return fmt::format("quant_method {}", excerpt(stated.method));
  }
  const bool names_kind = stated.has_integers || stated.has_floats;
  if (names_kind && !(kind.are_integers ? stated.has_integers : stated.has_floats))
    return kind.are_integers ? "floats" : "integers";
  if (stated.bits.empty() || stated.bits.contains(kind.bits)) return "";
  const auto fits = [&](std::int64_t bits) {
    return bits > 0 && bits < kind.bits && tensor.fit_in(file, static_cast<unsigned>(bits));
  };
  if (kind.are_integers && std::ranges::any_of(stated.bits, fits)) return "";
  return fmt::format("{} bits", fmt::join(stated.bits, " or "));
}

/// Whether the scales are those of one of the stated groups.
bool has_stated_groups(const StatedQuantization& stated, const CodeKind& kind) {
  if (stated.groups.empty() || kind.groups == 0) return true;
  return std::ranges::any_of(stated.groups, [&](std::int64_t group) {
    return group <= 0 ? kind.groups == 1 : (kind.inputs + group - 1) / group == kind.groups;
  });
}

}  // namespace

void compare_with_configuration(FileParts& parts) {
  const StatedQuantization& stated = parts.reading().stated;
  for (std::size_t i = 0; i < parts.tensors().size();) {
    const QuantizedTensor& tensor = *parts.tensors()[i];
    const CodeKind kind = tensor.kind();
    const std::string said = kind.bits == 0 ? "" : contradiction(stated, tensor, parts.file());
    if (!said.empty()) {
      parts.take_back(i, fmt::format("its codes are {}, and {} says {}: correct {}, or quantize again",
                                     words_of(kind), stated.source, said, stated.source));
      continue;
    }
    if (!has_stated_groups(stated, kind))
      parts.note(
          tensor.stored().name,
          fmt::format("has {} scale{} for {} inputs, and is read so; {} says groups of {}: correct {}, or "
                      "quantize again",
                      kind.groups, kind.groups == 1 ? "" : "s", kind.inputs, stated.source,
                      fmt::join(stated.groups, " or "), stated.source));
    ++i;
  }
}

}  // namespace halfscope
