// The data sets: one line per data set.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "sim/data/dataset.hpp"
#include "sim/data/fashion_mnist.hpp"

namespace halfscope {

/// Source of a data set, as `--data` names it: a folder of images, a text file, a folder of recordings, a
/// file of sentence pairs; none of one that is computed.
enum class DataKind : std::uint8_t { images, text, speech, pairs, none };
template <>
inline constexpr std::array<std::string_view, 5> enum_names<DataKind>{"images", "text", "speech", "pairs",
                                                                      "none"};

/// A data set as its own file defines it.
struct DatasetKind {
  DataKind data;
  std::unique_ptr<Dataset> (*open)(const DatasetSpec& spec);
  OptionTable options{};
  std::string_view default_data{};   ///< the file or folder where its package puts it
  std::string (*maker)() = nullptr;  ///< program and version that make the default data, where one does
};

/// Reads train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte,
/// each plain or with .gz, from the folder `spec.data`. Pixels x of 0..255 become (x / 255 - 0.286) / 0.353,
/// which has mean 0 and variance 1 over the training set. Source: Xiao, Rasul, Vollgraf, "Fashion-MNIST",
/// 2017. Throws InvalidArgument with the file and what is wrong with it: missing, damaged, a label that is
/// not 0..9, counts or image sizes that disagree.
extern const DatasetKind fashion_mnist_kind;

/// The same with two black pixels more on each side, 32x32 of files of 28x28, and pixels x / 127.5 - 1, from
/// -1 to 1: the images that a generator whose last layer is tanh can make.
extern const DatasetKind fashion_mnist_32_kind;

/// Images (batch, image_size, image_size, 1) and boxes labelled with their item's class, 0 to 9; 3000 train
/// and 200 test scenes. Throws InvalidArgument as `Scenes` does.
extern const DatasetKind detection_scenes_kind;

/// Images (batch, image_size, image_size, 1) and labels (batch, image_size, image_size): 0 is the background,
/// else 1 + the item's class; 3000 train and 200 test scenes. Throws InvalidArgument as `Scenes` does.
extern const DatasetKind segmentation_scenes_kind;

/// An example is a window of sequence_length tokens with the token that follows each as its label; see
/// sim/data/tokenizer.hpp for what a token is. The last 5 % of the tokens are the test split, cut into
/// consecutive windows; training windows start at every token before. `spec.data` is a text, or empty for
/// what the program `bible` prints. Throws InvalidArgument where there is no text, no word in it or not
/// enough of them, and for a vocabulary below 2.
extern const DatasetKind kjv_text_kind;

/// An example is a pair (a, b) of different numbers below `modulus`; its labels are a and (a + b) mod
/// modulus, the sums so far: attention to two equal tokens is attention to one. 40 % of all pairs, the same
/// at every opening, are training examples (Power et al., 2022, learn such sums; Prieto et al., 2025, watch a
/// softmax round them to certainty). Throws InvalidArgument where `spec.data` is given.
extern const DatasetKind modular_sums_kind;

/// An example is a verse of the King James Bible, its label the class of its book (see `Genre`): [CLS], the
/// verse's first sequence_length - 2 tokens, [SEP], and padding up to sequence_length. 1000 verses are test
/// examples; see sim/data/verses.hpp. `spec.data` is a text of verses with their labels, as the program
/// `bible` prints it, or empty for what it prints. Throws InvalidArgument as `read_verses` does, for a verse
/// of no known book and for a sequence_length below 3.
extern const DatasetKind verse_genre_kind;

/// An example is a pair of verses, or of lines: [CLS], the first, [SEP], the second, [SEP], and padding up to
/// sequence_length; where they are longer together, the longer one loses its end, token by token. In half of
/// the pairs the second follows the first in the text, in the others it is any other of the split. In either
/// sequence 15 % of the tokens are to be predicted (Devlin et al., NAACL 2019, section 3.1): 80 % of those
/// are [MASK] instead, 10 % a random word, 10 % themselves. All is a function of the split and the example's
/// number. The vocabulary is that of verse_genre. `spec.data` is a text of lines. Throws InvalidArgument as
/// `read_verses` does, and for a sequence_length below 5.
extern const DatasetKind masked_verses_kind;

/// Utterances with their transcripts as labels: see sim/data/speech.hpp. 6000 train and 500 test utterances
/// of 2 to 4 English digits, spoken by espeak-ng in 8 accents and 14 voices, with white noise of 5 to 25 dB
/// below them; made once, and kept in the user's cache folder. `spec.data` is a folder of recordings NAME.wav
/// (16 kHz, 16 bits, one channel), each beside its transcript NAME.txt, of which every tenth is a test.
/// Throws InvalidArgument where espeak-ng is not installed, and for recordings and transcripts that cannot be
/// used.
extern const DatasetKind spoken_digits_kind;

/// Numbers from 10 to 1,000,000 in English words and in French ones: see sim/data/sentence_pairs.hpp. 20,000
/// train and 1000 test pairs, the same on every machine. Throws InvalidArgument as `make_sentence_pairs`
/// does.
extern const DatasetKind numbers_to_words_kind;

/// English messages of programs and their French translations, from installed message catalogues, or from
/// those that the tools keep in the user's cache folder where too few are installed: see
/// sim/data/catalogue_pairs.hpp. `spec.data` as above. Throws InvalidArgument, naming Debian packages, where
/// there are too few pairs, and as `read_sentence_pairs` and `make_sentence_pairs` do.
extern const DatasetKind gettext_en_fr_kind;

struct DatasetEntry {
  std::string_view name;
  std::string_view summary;
  const DatasetKind& kind;
};

inline constexpr std::array datasets{
    DatasetEntry{"fashion_mnist", "60,000 + 10,000 grey images of 28x28, 10 classes of clothing",
                 fashion_mnist_kind},
    DatasetEntry{"fashion_mnist_32", "the same images on 32x32 pixels from -1 to 1, for generators",
                 fashion_mnist_32_kind},
    DatasetEntry{"detection_scenes",
                 "3,000 + 200 scenes of Fashion-MNIST items, 1 to 3 on 64x64 pixels, with their boxes",
                 detection_scenes_kind},
    DatasetEntry{"segmentation_scenes", "the same scenes with a class for each pixel",
                 segmentation_scenes_kind},
    DatasetEntry{"kjv_text", "words of the King James Bible, or of any UTF-8 text given with --data",
                 kjv_text_kind},
    DatasetEntry{"modular_sums", "pairs of numbers below a modulus, with their sums modulo it",
                 modular_sums_kind},
    DatasetEntry{"verse_genre", "30,102 + 1,000 verses of the King James Bible, 6 classes of books",
                 verse_genre_kind},
    DatasetEntry{"masked_verses",
                 "pairs of its verses with masked words, or of the lines of a text given with --data",
                 masked_verses_kind},
    DatasetEntry{"spoken_digits",
                 "6,000 + 500 utterances of 2 to 4 digits by espeak-ng, or recordings given with --data",
                 spoken_digits_kind},
    DatasetEntry{"numbers_to_words",
                 "20,000 + 1,000 numbers in English and in French, or sentence pairs given with --data",
                 numbers_to_words_kind},
    DatasetEntry{"gettext_en_fr",
                 "messages of installed programs in English and in French, or pairs given with --data",
                 gettext_en_fr_kind},
};

/// Opens the data set called `name` from `spec.data`, or from where its package puts it. Throws
/// InvalidArgument for an unknown name and for files that are missing or wrong.
[[nodiscard]] std::unique_ptr<Dataset> open_dataset(std::string_view name, DatasetSpec spec);
/// The program, with its version, that makes the data which `open_dataset` opens; empty where `data` names a
/// file or folder, and for data sets that no program makes. Throws as `open_dataset` does.
[[nodiscard]] std::string data_maker(std::string_view name, const std::filesystem::path& data);

}  // namespace halfscope
