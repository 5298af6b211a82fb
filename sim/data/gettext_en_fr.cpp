// Messages of the programs on this machine, with their translations.
#include <halfscope/core/error.hpp>

#include "sim/data/cache_folder.hpp"
#include "sim/data/catalogue_pairs.hpp"
#include "sim/data/dataset_options.hpp"
#include "sim/data/datasets.hpp"
#include "sim/data/sentence_pairs.hpp"

namespace halfscope {
namespace {

std::vector<std::filesystem::path> catalogue_folders() {
  constexpr std::string_view french = "locale/fr/LC_MESSAGES";
  std::vector<std::filesystem::path> folders{std::filesystem::path("/usr/share") / french};
  if (const auto cache = cache_folder(); !cache.empty()) folders.push_back(cache / french);
  return folders;
}

std::unique_ptr<Dataset> open_gettext_en_fr(const DatasetSpec& spec) {
  if (!spec.data.empty()) return open_given_pairs("gettext_en_fr", spec);
  SentencePairs pairs = read_first_catalogues(catalogue_folders());
  pairs.origin = "gettext_en_fr: " + pairs.origin;
  return make_sentence_pairs(std::move(pairs), spec.whole(vocabulary_option));
}

}  // namespace

constexpr DatasetKind gettext_en_fr_kind{
    .data = DataKind::pairs, .open = open_gettext_en_fr, .options = {vocabulary_option}};

}  // namespace halfscope
