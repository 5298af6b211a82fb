// Settings of the classifier that SGD trains.
#include "experiments/ablations/sgd_classifier.hpp"

namespace halfscope {

Settings sgd_classifier_settings() {
  return {{"model", "cnn_bn"},       {"dataset", "fashion_mnist"}, {"steps", "200"},
          {"batch", "64"},           {"optimizer", "sgd"},         {"momentum", "0.9"},
          {"learning_rate", "0.05"}, {"schedule", "constant"}};
}

}  // namespace halfscope
