// The update rules of optimizers: one line per rule, which the loops of every instruction set and of the
// device are made for.
#pragma once

#include <variant>

#include "lib/nn/update_rules/adagrad.hpp"
#include "lib/nn/update_rules/adam.hpp"
#include "lib/nn/update_rules/adamw.hpp"
#include "lib/nn/update_rules/muon.hpp"
#include "lib/nn/update_rules/rmsprop.hpp"
#include "lib/nn/update_rules/sgd.hpp"

namespace halfscope {

/// A rule with its constants of one step. `slots` is its number of state arrays, and `Element<Round>` its
/// arithmetic of one weight: called with the gradient the weight and a reference to each slot's number, it
/// returns the update.
using UpdateRule = std::variant<SgdStep,   //
                                AdamStep,  //
                                AdamwStep, AdagradStep, RmspropStep, MuonStep>;

}  // namespace halfscope
