// The part of an experiment's file that says what its results are judged by.
#pragma once

#include "experiments/definition/experiment_file.hpp"
#include "experiments/definition/toml_file.hpp"

namespace halfscope {

/// Keys of a file that `read_judgement` reads.
inline constexpr std::array<std::string_view, 5> judgement_keys{"claim", "published", "harm_task", "analyses",
                                                                "verdict"};

/// Reads claim, published, harm_task, analyses and verdict into `experiment`, whose arms are read. Throws
/// InvalidArgument with line and column.
void read_judgement(const TomlFile& file, const KnownNames& known, Experiment& experiment);

/// The parts of `experiment` as lines of a file: analyses and verdict for its head, before any table, and the
/// tables.
[[nodiscard]] std::string judgement_head(const Experiment& experiment);
[[nodiscard]] std::string judgement_tables(const Experiment& experiment);

}  // namespace halfscope
