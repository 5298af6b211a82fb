// The experiments that have a name: one line per experiment.
#pragma once

#include <vector>

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// Adam at a small learning rate (1e-5): most updates are below half an ulp of their weight.
[[nodiscard]] Experiment make_master_copy();
/// The same ablation with SGD and momentum at 1e-4.
[[nodiscard]] Experiment make_master_copy_sgd();

/// A small U-Net, whose loss is averaged over every pixel of a batch that is made to look 256 times larger.
[[nodiscard]] Experiment make_segmentation_loss_scale();

/// A classifier at every constant scale from 2^-4 to 2^24, none of which skips a step; dynamic scaling; and
/// 2^18 with skipping but without backing off.
[[nodiscard]] Experiment make_scale_sweep();

/// The detector and the language model of the loss-scaling ablations, in FP32 and in FP16 under each scaler
/// with its own published defaults.
[[nodiscard]] Experiment make_scaler_comparison();

/// A GRU language model without loss scaling, its loss averaged over 1, 16, 64 and 256 times its batch's
/// positions, each beside FP32.
[[nodiscard]] Experiment make_averaging_sweep();

/// A classifier, a detector, a language model and a segmentation network whose losses average over no more
/// positions than their batches have: pairs of FP32 and of FP16 at loss scale 1.
[[nodiscard]] Experiment make_negative_controls();

/// Six tasks under Adam and SGD, each in FP32 and in FP16 at every fourth scale from 2^-10 to 2^16: which
/// number of the FP32 run tells the scales that do harm.
[[nodiscard]] Experiment make_advice_validity();

/// Batch norm statistics added up in FP32, in FP16 one after the other, and in FP16 pairwise.
[[nodiscard]] Experiment make_batchnorm_reduction();

/// A GRU language model whose softmax adds up 4,096 exponentials in FP32, or one after the other in FP16.
[[nodiscard]] Experiment make_softmax_reduction();

/// The classifier, and the table of sums and dot products against their length.
[[nodiscard]] Experiment make_accumulation_error();

/// AlexNet and VGG-D with updates so small that FP16 weights lose them: FP32, FP16 with an FP32 master copy,
/// FP16 without.
[[nodiscard]] Experiment make_image_master_copy();

/// The image classifiers of Table 1, each in FP32 and in FP16 without loss scaling.
[[nodiscard]] Experiment make_image_classifiers();

/// A small SSD, whose loss is averaged over every anchor of a batch that is made to look 256 times larger.
[[nodiscard]] Experiment make_detection_loss_scale();

/// SSD, whose loss is averaged over 3.9 million anchors, and Faster R-CNN, whose losses are over samples:
/// FP32, FP16 at constant loss scales, FP16 without a master copy.
[[nodiscard]] Experiment make_detectors();

/// A GRU language model whose loss is averaged over as many positions as large batches have: FP16 without
/// loss scaling against constant scales and a dynamic one.
[[nodiscard]] Experiment make_language_model_loss_scale();

/// Two LSTMs with projected states and a sampled softmax, the paper's bigLSTM in small, whose loss is
/// averaged over a batch that is made to look 256 times larger: FP32, FP16 at loss scale 1 and at 128.
[[nodiscard]] Experiment make_lstm_loss_scale();

/// A transformer and LSTMs with attention that translate, at four weights of the loss, with and without loss
/// scaling.
[[nodiscard]] Experiment make_translation_loss_scale();

/// ResNet-50, post- and pre-activation, at five weights of the loss, with and without loss scaling.
[[nodiscard]] Experiment make_resnet_loss_scale();

/// Deep Speech 2 on spoken digits, at a learning rate whose updates FP16 weights lose and at a normal one.
[[nodiscard]] Experiment make_speech_master_copy();

/// BERT, pre-trained once per seed and fine-tuned at two learning rates with and without FP32 master weights.
[[nodiscard]] Experiment make_bert_finetuning();

/// Shares of Deep Speech 2's weight gradients that FP16 flushes.
[[nodiscard]] Experiment make_speech_gradients();

/// CTC with FP16 inside: short utterances of Deep Speech 2, and the table of longer ones.
[[nodiscard]] Experiment make_ctc_precision();

/// The language model with each batch in 1, 4 or 16 micro-batches, whose gradients are added in FP32 or FP16.
[[nodiscard]] Experiment make_gradient_accumulation();

/// An RNN whose weights are used at each of 8, 32 or 128 time steps, under autocast with and without its
/// cache.
[[nodiscard]] Experiment make_cast_cache();

/// A detector, a language model and ResNet-50 in FP32, in the paper's recipe, under PyTorch's autocast and
/// under Apex's levels O1, O2 and O3.
[[nodiscard]] Experiment make_amp_levels();

/// DCGAN with two forms of its loss, in FP32 and in FP16 with constant and dynamic loss scales, and without a
/// master copy.
[[nodiscard]] Experiment make_dcgan_experiment();

/// Means of gradients over ranks, by order and division, and a classifier on 64 ranks.
[[nodiscard]] Experiment make_all_reduce();

/// A classifier and a language model on 1 to 512 virtual ranks, reduced in FP16 and in FP32.
[[nodiscard]] Experiment make_data_parallel();

/// In the order of the paper's sections: the master copy, loss scaling, reductions.
inline const std::vector<Experiment>& experiment_table() {
  static const std::vector<Experiment> table = [] {
    std::vector<Experiment> experiments{
        make_master_copy(),                // 3.1, Fig. 2
        make_master_copy_sgd(),            // 3.1
        make_image_master_copy(),          // 3.1, with networks of Table 1
        make_speech_master_copy(),         // 3.1, Fig. 2a, Table 3
        make_bert_finetuning(),            // 3.1, with a later network
        make_speech_gradients(),           // 3.1, Fig. 2b
        make_image_classifiers(),          // 4.1, Table 1
        make_detection_loss_scale(),       // 3.2, Table 2, Fig. 3
        make_detectors(),                  // 3.2, Table 2
        make_language_model_loss_scale(),  // 3.2, Fig. 5
        make_lstm_loss_scale(),            // the same figure
        make_translation_loss_scale(),     // 4.4, Fig. 4
        make_dcgan_experiment(),           // 4.6, Fig. 6
        make_segmentation_loss_scale(),    // 3.2
        make_resnet_loss_scale(),          // 3.2, with the network of Table 1
        make_scale_sweep(),                // 3.2: choosing the factor
        make_scaler_comparison(),          // 3.2: choosing it while training
        make_averaging_sweep(),            // 3.2: when it is needed
        make_negative_controls(),          // 3.2: when it is not
        make_advice_validity(),            // 3.2: what tells that a factor is enough
        make_gradient_accumulation(),      // 3.2: of batches in parts
        make_amp_levels(),                 // 3: the recipe and its relatives
        make_cast_cache(),                 // 3.3: sums over a weight's uses
        make_batchnorm_reduction(),        // 3.3
        make_softmax_reduction(),          // 3.3
        make_ctc_precision(),              // 3.3, with the paper's speech models
        make_accumulation_error(),         // 3.3
        make_all_reduce(),                 // 3.3: sums over ranks
        make_data_parallel(),              // 3.3: the same in training
    };
    int place = 0;
    for (Experiment& experiment : experiments) experiment.place = ++place;
    return experiments;
  }();
  return table;
}

}  // namespace halfscope
