// The layouts of quantized tensors: a new one is a file and a line.
#pragma once

#include <array>
#include <string_view>

#include <halfscope/io/layouts/detail/file_parts.hpp>

namespace halfscope {

/// Each takes its tensors from the parts, or leaves them out with a line.
void read_gguf_blocks(FileParts& parts);
void read_gpt_oss(FileParts& parts);
void read_gptq_and_awq(FileParts& parts);
void read_bitsandbytes(FileParts& parts);
void read_compressed_tensors(FileParts& parts);
void read_integers(FileParts& parts);
void read_scaled_codes(FileParts& parts);
/// Leaves out what was read and the configuration contradicts.
void compare_with_configuration(FileParts& parts);
/// Leaves out what was read and a text beside it may change.
void compare_with_texts(FileParts& parts);
/// Leaves out FP8 whose scales may lie elsewhere: in a state of its module, in a list, behind a
/// configuration.
void refuse_codes_with_states(FileParts& parts);
/// Leaves out what has a scale beside it and is of no layout above.
void refuse_unknown_codes(FileParts& parts);

struct QuantizedLayout {
  std::string_view name;
  void (*read)(FileParts& parts);
};

/// In the order in which they look: a layout by certain names before one by names that others use too.
inline constexpr std::array quantized_layouts{
    QuantizedLayout{"blocks of GGUF", read_gguf_blocks},
    QuantizedLayout{"gpt-oss", read_gpt_oss},
    QuantizedLayout{"GPTQ and AWQ", read_gptq_and_awq},
    QuantizedLayout{"bitsandbytes", read_bitsandbytes},
    QuantizedLayout{"compressed-tensors", read_compressed_tensors},
    QuantizedLayout{"integers with scales", read_integers},
    QuantizedLayout{"codes with scales", read_scaled_codes},
    QuantizedLayout{"what the configuration says", compare_with_configuration},
    QuantizedLayout{"what texts beside codes say", compare_with_texts},
    QuantizedLayout{"codes whose scales lie elsewhere", refuse_codes_with_states},
    QuantizedLayout{"layouts that are not known", refuse_unknown_codes},
};

}  // namespace halfscope
