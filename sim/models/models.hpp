// The models that have a name: one line per model.
#pragma once

#include <array>

#include "sim/models/model.hpp"

namespace halfscope {

/// conv 3x3 to 16, batch norm, ReLU, max pool 2; the same to 32; linear to 128, ReLU; linear to the classes.
/// He initialisation, the last layer's halved. Throws InvalidArgument for images whose sides are no multiples
/// of 4.
extern const ModelKind cnn_bn_kind;

/// conv 3x3 to 64 with stride 1 and no pool behind it, the stem that is usual for images of some thirty
/// pixels (at ImageNet's 224 it is 7x7 with stride 2 and a max pool); four stages of two basic blocks with
/// 64, 128, 256 and 512 channels, from the second on with stride 2 in the first convolution and a 1x1
/// projection around it; global average pool and a linear layer to the classes. Batch norm behind every
/// convolution. He initialisation, the last layer's halved. Throws InvalidArgument for what are no images.
extern const ModelKind resnet18_kind;

/// The same with an eighth of the channels, which a CPU trains in minutes.
extern const ModelKind resnet18_narrow_kind;

/// After Krizhevsky et al., NIPS 2012, at width 1: conv 11x11/4 to 96, 5x5 in 2 groups to 256, 3x3 to 384,
/// 3x3 in 2 groups to 384 and to 256; local response normalisation behind the first two; max pools 3/2 behind
/// those and the last; linear layers to 4096, 4096 and the classes, with dropout before the first two. Images
/// below 128 pixels a side have a first convolution of 5x5/1. He initialisation, the last layer's halved,
/// biases of the grouped convolutions 0.1. Throws InvalidArgument for what are no images.
extern const ModelKind alexnet_kind;

/// After Simonyan & Zisserman, ICLR 2015, configuration D, at width 1: 3x3 convolutions, 2 to 64, 2 to 128, 3
/// to 256, 3 to 512, 3 to 512, a max pool 2/2 behind each five; linear layers to 4096, 4096 and the classes,
/// with dropout behind the first two. He initialisation, the last layer's halved. Throws InvalidArgument for
/// what are no images.
extern const ModelKind vgg_d_kind;

/// After He et al., CVPR 2016, at width 1: conv 7x7/2 to 64, max pool 3/2, bottlenecks of 1x1, 3x3 and 1x1 to
/// 64, 128, 256 and 512 channels and four times those, 3, 4, 6 and 3 of them, from the second stage on with
/// stride 2 in the first 1x1, and a 1x1 projection around the first of each stage; global average pool and a
/// linear layer to the classes. Batch norm behind every convolution; the last gamma of each branch begins at
/// `residual_gamma`. Images below 128 pixels a side have a first convolution of 3x3/1. He initialisation, the
/// linear layer's halved. Throws InvalidArgument for what are no images.
extern const ModelKind resnet50_kind;

/// The same after He et al., ECCV 2016: batch norm and ReLU before every convolution but the first, none
/// behind an addition, projections behind the first ReLU and without batch norm, and a last batch norm and
/// ReLU before the average. `residual_gamma` is not for it: a batch norm that is 0 before a ReLU never
/// learns.
extern const ModelKind resnet50_preact_kind;

/// After Szegedy et al., CVPR 2015, at width 1: conv 7x7/2 to 64, 1x1 to 64 and 3x3 to 192 with a max pool
/// 3/2 behind the first and the last and local response normalisation beside each; nine inception modules, of
/// 1x1, 1x1-3x3, 1x1-5x5 and pool-1x1 side by side, with max pools behind the second and the seventh; global
/// average pool, dropout and a linear layer to the classes. In training two auxiliary heads, behind the third
/// and the sixth module, add 0.3 times their losses; where there is dropout theirs is 0.7. Images below 128
/// pixels a side have a first convolution of 3x3/1 and one pool less. He initialisation, the last layers'
/// halved, biases 0.2. Throws InvalidArgument for what are no images.
extern const ModelKind googlenet_kind;

/// After Ioffe & Szegedy, ICML 2015: GoogLeNet with batch norm behind every convolution in place of its bias
/// and of the local response norms, 3x3 behind 3x3 for 5x5, a third module on the largest maps, and modules
/// with stride 2 instead of the pools between modules; no dropout. The two auxiliary heads are GoogLeNet's.
extern const ModelKind inception_v2_kind;

/// After Szegedy et al., CVPR 2016, at width 1: 3x3 convolutions to 32, 32 and 64, 1x1 to 80 and 3x3 to 192;
/// three modules with 5x5 and double 3x3, four with 7x7 as 1x7 and 7x1, two with 3x3 as 1x3 beside 3x1, and a
/// module with stride 2 before each of the latter two kinds; global average pool, dropout and a linear layer
/// to the classes. Batch norm behind every convolution. In training one auxiliary head, behind the seventh
/// module of stride 1, adds 0.3 times its loss. Images below 128 pixels a side are padded everywhere, and
/// shrink in the stem by its first pool alone. He initialisation, the last layers' halved. Throws
/// InvalidArgument for what are no images.
extern const ModelKind inception_v3_kind;

/// After "SSD: Single Shot MultiBox Detector" (Liu et al., ECCV 2016), small: 3x3 convolutions with bias and
/// ReLU, 1 to 16, pool, to 32, pool, to 64 (the first map, a quarter of the image), pool, to 64 (the second,
/// an eighth); on each a 3x3 head that predicts the classes (background first) and 4 box offsets of 3 anchors
/// per cell. The loss is the cross entropy of all anchors plus the smooth L1 of the matched ones' offsets,
/// divided by the number of anchors in the batch; the metric is AP50. Throws InvalidArgument for images whose
/// sides are no multiples of 8, and in `forward` for a batch with labels instead of boxes or a box of no
/// known class.
extern const ModelKind ssd_kind;

/// The same on a backbone after VGG: two convolutions where that has one.
extern const ModelKind ssd_vgg_kind;

/// After Ren et al., NIPS 2015, small: two 3x3 convolutions to 16, pool, two to 32, pool, two to 64 (the map,
/// a quarter of the image). The first stage: 3x3 to 64, then 1x1 to 2 logits and 4 box offsets of 3 anchors
/// per cell; 64 anchors of an image at most are sampled. Its 20 best proposals (12 in evaluation), which
/// carry no gradient, and the boxes themselves give 16 regions of an image at most. The second stage: RoI max
/// pooling to 4x4, linear layers to 128 and 128, then the classes (background first) and 4 offsets per class.
/// The loss is the sum of two cross entropies and two smooth L1, each a mean over what was sampled; the
/// metric is AP50. The samples are a function of the run's seed and the step. Throws InvalidArgument for
/// images whose sides are no multiples of 4 from 16 on, and in `forward` as `ssd_kind` does.
extern const ModelKind faster_rcnn_kind;

/// The same with the mask head of He et al., ICCV 2017, small: regions with an object, RoI max pooling to
/// 4x4, 3x3 to 64, pixels doubled, 3x3 to 32, then 1x1 to a logit per class and cell of 8x8. To the loss it
/// adds the mean binary cross entropy of the object's own class, nothing where no region has an object.
/// The metric stays AP50 of the boxes. Throws as `faster_rcnn_kind` does, and in `forward` for a batch
/// without masks.
extern const ModelKind mask_rcnn_kind;

/// 3x3 convolutions with bias and ReLU: 1 to 16 (kept), pool, to 32, pool, to 64, pool, to 64, to 32;
/// enlarged by 8 and put beside what was kept; to 16, and 1x1 to the classes. The loss is the cross entropy,
/// averaged over all pixels of the batch; the metric is the share of pixels that are right, in percent.
/// Throws InvalidArgument for images whose sides are no multiples of 8, and in `forward` for a batch without
/// a label per pixel.
extern const ModelKind unet_kind;

/// Embedding N(0, 0.1), a GRU from a zero state with weights uniform on +-1 / sqrt(hidden_size), output
/// N(0, 0.05) with a bias of its own; dropout, if any, before and after the recurrent layer. Examples are
/// (time) tokens, their labels the next ones; judged by perplexity. Throws InvalidArgument where the data set
/// is no text.
extern const ModelKind gru_lm_kind;
/// The same with an LSTM.
extern const ModelKind lstm_lm_kind;
/// The same with a tanh RNN whose cell is called step by step.
extern const ModelKind rnn_lm_kind;

/// After Jozefowicz et al., 2016 (LSTM-8192-1024): an embedding of `embedding_size`, two LSTMs of
/// `hidden_size` cells whose states are projected to `embedding_size`, and in training a softmax over the
/// label and an eighth of the vocabulary (of a small one 16 words), sampled log-uniformly and corrected for
/// that; in evaluation one over all words. The samples are a function of the run's seed and the step. The
/// metric is perplexity. Throws InvalidArgument for what is no text and for a vocabulary of one word.
extern const ModelKind big_lstm_kind;

/// After Touvron et al., "LLaMA", 2023: an embedding of `embedding_size`, `layers` blocks, an RMS norm and a
/// matrix of its own to the words. A block adds to its input what grouped-query attention (Ainslie et al.,
/// 2023) of `heads` heads over `key_value_heads` heads of keys and values makes of its RMS norm, with rotary
/// positions and a look back alone, then what a SwiGLU network of `hidden_size` makes of the sum's. No biases
/// and no dropout; epsilon of the norms is 1e-6. Embeddings are N(0, 0.02 sqrt(embedding_size)), other
/// weights N(0, 1 / inputs), those that end a branch divided by sqrt(2 layers) too. The metric is perplexity.
/// Throws InvalidArgument where the data set is no text, and for heads that do not divide what they cut.
extern const ModelKind llama_kind;

/// After Amodei et al., "Deep Speech 2", ICML 2016, small: convolutions 5x5 to 16 channels with bias and
/// ReLU, the first with stride 2 in time and frequency, the second with stride 2 in frequency; a
/// bidirectional GRU of hidden_size states each way; a linear layer to the labels; CTC. Frames of padding are
/// zeros behind each convolution, and the second direction begins at each utterance's own last frame, so that
/// no utterance depends on its batch. He initialisation of the convolutions; the other weights uniform on +-1
/// / sqrt(inputs), of the states' on +-1 / sqrt(hidden_size); biases 0. The metric is the character error
/// rate in percent. Throws InvalidArgument where the data set is no speech.
extern const ModelKind deep_speech_2_kind;

/// After Li et al., "Jasper", Interspeech 2019, at width 1 Jasper DR 10x5 without its dilation: convolutions
/// over time alone, the features as channels: 11 frames to 256 channels with stride 2; ten blocks of five
/// convolutions, two each of 11 to 256, 13 to 384, 17 to 512, 21 to 640 and 25 to 768 channels; 29 to 896, 1
/// to 1024, and 1 to the labels with a bias. Batch norm, ReLU and dropout, if any, behind every convolution
/// but the last. To each block's last batch norm the outputs of all blocks before it and of the first
/// convolution are added, each through 1 to its channels and batch norm (dense residuals). The statistics are
/// of frames that are no padding, which are zeros before each convolution. CTC; the metric is the character
/// error rate in percent. He initialisation. Throws InvalidArgument where the data set is no speech.
extern const ModelKind jasper_kind;

/// After Vaswani et al., NIPS 2017: an encoder and a decoder of `layers` layers each, `embedding_size` wide,
/// with attention of `heads` heads and feed-forward networks of `hidden_size`; layer norms before each part
/// and behind the last layer (pre-LN), sinusoidal positions, a matrix of its own for each embedding and for
/// the output; dropout, if any, of embeddings, attention weights and parts. Embeddings are N(0, 0.1), beside
/// positions of amplitude 0.1; the output is N(0, 0.05), other weights N(0, 1 / inputs). The loss is the mean
/// cross entropy over the target tokens, the metric perplexity. Throws InvalidArgument where the data set is
/// no translation, and unless `heads` divides `embedding_size`.
extern const ModelKind transformer_kind;

/// After Luong et al., EMNLP 2015: an encoder and a decoder of `layers` LSTMs of `hidden_size` states each,
/// from zero states; attention whose scores are "general"; tanh of a matrix times context and state, then the
/// output. From the third on, a layer's states are added to its input, as in Wu et al., 2016 (GNMT).
/// Embeddings are N(0, 0.1), the output N(0, 0.05), other weights uniform on +-1 / sqrt(inputs), of the LSTMs
/// +-1 / sqrt(hidden_size). Loss and metric are the transformer's. Throws InvalidArgument where the data set
/// is no translation.
extern const ModelKind seq2seq_attention_kind;

/// After Devlin et al., NAACL 2019: embeddings of tokens, positions and segments, added and normalised;
/// `layers` layers of attention with `heads` heads and of a feed-forward network of hidden_size with GELU,
/// each added to its input and normalised; a matrix and tanh of the first position's state. Where the labels
/// are masked words, a matrix, GELU, a layer norm and the token embeddings predict them, a matrix whether the
/// second sentence follows the first, and the loss is the sum of both cross entropies; where they are
/// classes, a matrix behind dropout. Weights are normal, with 0.02 sqrt(768 / embedding_size); epsilon of the
/// layer norms is 1e-12. The metric is the share of right words or classes in percent. Throws InvalidArgument
/// where the data set has neither.
extern const ModelKind bert_kind;

/// After Sanh et al., "DistilBERT", 2019: BERT without segments, pooler and next sentences. Where the labels
/// are masked words and there is a teacher, a bert with at least as many layers and otherwise of the same
/// sizes, its layers begin as evenly spaced ones of the teacher, the rest as the teacher's; in training the
/// loss is 5 times the divergence from the teacher's distributions of the masked words at temperature 2, plus
/// twice the cross entropy, plus the mean of 1 - cosine between the last layers' states. Without a teacher,
/// and in evaluation, it is the cross entropy. The teacher computes in FP32, without dropout. Where the
/// labels are classes, a matrix, ReLU, dropout and a matrix of the first position's state. Throws
/// InvalidArgument where the data set has neither, and for a teacher of other sizes.
extern const ModelKind distil_bert_kind;

/// After Radford et al., ICLR 2016, small. The generator makes images of 64 normal numbers: transposed
/// convolutions to 64 channels on an eighth of the pixels each way, then 4x4 with stride 2 to 32, 16 and the
/// images' channels; batch norm and ReLU behind all but the last, tanh behind that. The discriminator:
/// convolutions 4x4 with stride 2 to 16, 32 and 64 channels, leaky ReLU of 0.2, batch norm behind the second
/// and third; a linear layer and a sigmoid. No biases but the linear layer's; weights N(0, 0.02), gammas
/// N(1, 0.02). Its first loss, the discriminator's: the binary cross entropy of real images and that of made
/// ones, added; its second, called generator: that of made images which are to pass for real. The metric is
/// the Fréchet distance to the test images, by the features of `spec.teacher`, a cnn_bn, or without one of a
/// cnn_bn that has not learnt. Throws InvalidArgument for images whose sides are no multiples of 8, and for
/// another teacher.
extern const ModelKind dcgan_kind;
/// The same with the cross entropy of logits, without the sigmoid.
extern const ModelKind dcgan_logits_kind;

struct ModelEntry {
  std::string_view name;
  std::string_view summary;
  const ModelKind& kind;
};

inline constexpr std::array model_table{
    ModelEntry{"cnn_bn", "two 3x3 convolutions with batch norm, two linear layers", cnn_bn_kind},
    ModelEntry{"resnet18", "ResNet-18 with the stem for small images", resnet18_kind},
    ModelEntry{"resnet18_narrow", "the same with an eighth of the channels", resnet18_narrow_kind},
    ModelEntry{"alexnet", "AlexNet: grouped convolutions, local response norm, overlapping pools",
               alexnet_kind},
    ModelEntry{"vgg_d", "VGG-D: thirteen 3x3 convolutions, three linear layers", vgg_d_kind},
    ModelEntry{"googlenet", "GoogLeNet: nine inception modules, two auxiliary heads", googlenet_kind},
    ModelEntry{"inception_v2", "Inception v2: GoogLeNet with batch norm, after Ioffe & Szegedy",
               inception_v2_kind},
    ModelEntry{"inception_v3", "Inception v3: kernels of 1xn and nx1, batch norm, an auxiliary head",
               inception_v3_kind},
    ModelEntry{"resnet50", "ResNet-50: bottlenecks, batch norm and ReLU behind the convolutions",
               resnet50_kind},
    ModelEntry{"resnet50_preact", "ResNet-50 with batch norm and ReLU before the convolutions",
               resnet50_preact_kind},
    ModelEntry{"ssd", "a single-shot detector with two feature maps", ssd_kind},
    ModelEntry{"ssd_vgg", "the same on a backbone after VGG", ssd_vgg_kind},
    ModelEntry{"faster_rcnn", "Faster R-CNN: proposals, RoI pooling, two heads, four losses",
               faster_rcnn_kind},
    ModelEntry{"mask_rcnn", "the same with a mask head, a fifth loss", mask_rcnn_kind},
    ModelEntry{"unet", "a class for each pixel: three pools, one skip connection", unet_kind},
    ModelEntry{"dcgan", "DCGAN: a generator of images and a discriminator, cross entropy of probabilities",
               dcgan_kind},
    ModelEntry{"dcgan_logits", "the same with the cross entropy of logits", dcgan_logits_kind},
    ModelEntry{"rnn_lm", "word language model with a tanh RNN, its cell called step by step", rnn_lm_kind},
    ModelEntry{"gru_lm", "word language model: embedding, GRU, logits over the vocabulary", gru_lm_kind},
    ModelEntry{"lstm_lm", "word language model: embedding, LSTM, logits over the vocabulary", lstm_lm_kind},
    ModelEntry{"big_lstm", "the same with two LSTMs, their states projected, and a sampled softmax",
               big_lstm_kind},
    ModelEntry{"llama", "word language model: RMS norms, rotary positions, grouped queries, SwiGLU",
               llama_kind},
    ModelEntry{"seq2seq_attention", "translation: LSTMs that encode and decode, with attention",
               seq2seq_attention_kind},
    ModelEntry{"transformer", "translation: encoder and decoder of attention and feed-forward networks",
               transformer_kind},
    ModelEntry{"bert", "BERT: masked words and next sentences, or classes of texts", bert_kind},
    ModelEntry{"distil_bert", "DistilBERT: masked words learnt from a BERT, or classes of texts",
               distil_bert_kind},
    ModelEntry{"deep_speech_2", "Deep Speech 2: two convolutions, a bidirectional GRU, CTC",
               deep_speech_2_kind},
    ModelEntry{"jasper", "Jasper: 54 convolutions over time, dense residuals between blocks, CTC",
               jasper_kind},
};

}  // namespace halfscope
