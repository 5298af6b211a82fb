// Sums of two numbers modulo a prime: a text that a network can learn by heart.
#include <utility>
#include <vector>

#include <halfscope/core/error.hpp>
#include <halfscope/core/random.hpp>

#include "sim/data/dataset_options.hpp"
#include "sim/data/datasets.hpp"

namespace halfscope {
namespace {

constexpr std::int64_t train_percent = 40;

struct Pair {
  std::int32_t first, second;
};

class ModularSums final : public Dataset {
 public:
  explicit ModularSums(std::int64_t modulus) : modulus_(static_cast<std::int32_t>(modulus)) {
    for (std::int32_t a = 0; a < modulus_; ++a)
      for (std::int32_t b = 0; b < modulus_; ++b)
        if (a != b) pairs_.push_back({a, b});
    constexpr std::string_view name = "modular_sums";
    const RandomStream stream{0, 0, site_hash(name.data(), name.size())};
    for (std::size_t i = pairs_.size(); i > 1; --i) std::swap(pairs_[i - 1], pairs_[stream.bits(i) % i]);
  }

  [[nodiscard]] std::int64_t size(Split split) const override {
    const std::int64_t all = std::ssize(pairs_), train = all * train_percent / 100;
    return split == Split::train ? train : all - train;
  }
  [[nodiscard]] Shape example_shape() const override { return {2}; }
  [[nodiscard]] std::int64_t class_count() const override { return modulus_; }

  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    Batch batch;
    const std::int64_t begin = split == Split::train ? 0 : size(Split::train);
    for (const std::int64_t index : indices) {
      check_index(*this, split, index, "example");
      const auto [a, b] = pairs_[static_cast<std::size_t>(begin + index)];
      batch.tokens.insert(batch.tokens.end(), {a, b});
      batch.labels.insert(batch.labels.end(), {a, (a + b) % modulus_});
    }
    return batch;
  }

 private:
  std::int32_t modulus_;
  std::vector<Pair> pairs_{};  ///< training examples, then those of the test
};

std::unique_ptr<Dataset> open_modular_sums(const DatasetSpec& spec) {
  if (!spec.data.empty()) throw InvalidArgument("data set modular_sums is computed; leave out data");
  return std::make_unique<ModularSums>(spec.whole(modulus_option));
}

}  // namespace

constexpr DatasetKind modular_sums_kind{
    .data = DataKind::none, .open = open_modular_sums, .options = {modulus_option}};

}  // namespace halfscope
