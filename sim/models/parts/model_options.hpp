// Options that several models take: name, default, range and text, each once.
#pragma once

#include <limits>

#include "sim/options/entry_options.hpp"

namespace halfscope {

inline constexpr EntryOption embedding_size_option{
    "embedding_size", 64, {1, 1e5}, "width of the embeddings", OptionKind::whole_number};
inline constexpr EntryOption hidden_size_option{
    "hidden_size",
    64,
    {1, 1e5},
    "states of a recurrent cell, or width between a transformer's two matrices",
    OptionKind::whole_number};
inline constexpr EntryOption layers_option{
    "layers", 2, {1, 1000}, "layers of the encoder, and of the decoder", OptionKind::whole_number};
inline constexpr EntryOption heads_option{
    "heads", 4, {1, 1000}, "heads of attention", OptionKind::whole_number};
inline constexpr EntryOption dropout_option{"dropout", 0, {0, 0.99}, "probability of a zero"};
inline constexpr EntryOption label_smoothing_option{
    "label_smoothing", 0, {0, 0.99}, "share of the target that is spread over all classes"};
inline constexpr EntryOption batch_norm_epsilon_option{
    "batch_norm_epsilon",
    1e-5,
    {std::numeric_limits<double>::denorm_min(), std::numeric_limits<float>::max()},
    "added to variances"};
inline constexpr EntryOption residual_gamma_option{
    "residual_gamma", 1, {0, 1}, "at the start, of the batch norm that ends each residual branch"};

/// Each entry has the default of its small version.
inline constexpr EntryOption width_option{"width",
                                          1,
                                          {std::numeric_limits<double>::min(), 16, "more than 0, up to 16"},
                                          "share of the published channels"};

}  // namespace halfscope
