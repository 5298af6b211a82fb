// The convolutional classifier with batch norm, trained by SGD on Fashion-MNIST.
#pragma once

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// The settings that every experiment on it starts from: 200 steps of 64 images at a constant learning rate.
[[nodiscard]] Settings sgd_classifier_settings();

}  // namespace halfscope
