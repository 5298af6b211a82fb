// The models that have a name: one line per model.
#pragma once

#include <array>

#include "sim/models/cnn_bn.hpp"
#include "sim/models/language_model.hpp"
#include "sim/models/resnet18.hpp"
#include "sim/models/ssd.hpp"
#include "sim/models/unet.hpp"

namespace halfscope {

struct ModelEntry {
  std::string_view name;
  std::string_view summary;
  Model (*make)(const ModelSpec& spec);
};

inline constexpr std::array model_table{
    ModelEntry{"cnn_bn", "two 3x3 convolutions with batch norm, two linear layers", make_cnn_bn},
    ModelEntry{"resnet18", "ResNet-18 with the stem for small images", make_resnet18},
    ModelEntry{"resnet18_narrow", "the same with an eighth of the channels", make_narrow_resnet18},
    ModelEntry{"ssd", "a single-shot detector with two feature maps", make_ssd},
    ModelEntry{"unet", "a class for each pixel: three pools, one skip connection", make_unet},
    ModelEntry{"gru_lm", "word language model: embedding, GRU, logits over the vocabulary", make_gru_lm},
    ModelEntry{"lstm_lm", "word language model: embedding, LSTM, logits over the vocabulary", make_lstm_lm},
};

}  // namespace halfscope
