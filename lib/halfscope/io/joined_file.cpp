// Quantized tensors whose payload and scales were sharded apart, in the file of the payload.
#include <halfscope/io/detail/joined_file.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace halfscope {
namespace {

constexpr std::array<std::string_view, 3> scale_endings{"_scale_inv", "_scale", "_scale_2"};
constexpr std::string_view blocks_ending = "_blocks", block_scales_ending = "_scales",
                           input_ending = "input_scale";

std::string stem_of(std::string_view name, std::string_view ending) {
  return std::string(name.substr(0, name.size() - ending.size()));
}

/// Names of the scales that a payload may have.
std::vector<std::string> scales_of(const std::string& payload) {
  if (payload.ends_with(blocks_ending))
    return {stem_of(payload, blocks_ending) + std::string(block_scales_ending)};
  std::vector<std::string> names;
  for (const std::string_view ending : scale_endings) names.push_back(payload + std::string(ending));
  return names;
}

bool is_coded(const StoredTensor& tensor) {
  return tensor.type == DType::f8_e4m3 || tensor.type == DType::f8_e5m2;
}

template <typename Visit>
void for_names(const TensorFile& file, Visit&& visit) {
  for (const StoredTensor& tensor : file.tensors()) visit(tensor.name, is_coded(tensor));
  for (const StoredCodes& codes : file.codes()) visit(codes.name, true);
}

class JoinedFile : public TensorFile {
 public:
  JoinedFile(std::unique_ptr<TensorFile> file, std::vector<LentPart> parts,
             const std::set<std::string>& payloads)
      : own_(std::move(file)), parts_(std::move(parts)) {
    const auto is_kept = [&](const std::string& name) { return !payloads.contains(payload_of(name)); };
    add(*own_, is_kept);
    for (const SkippedTensor& skipped : own_->skipped())
      if (is_kept(skipped.name)) skipped_.push_back(skipped);
    for (const LentPart& part : parts_)
      add(*part.file, [&](const std::string& name) { return name == part.name; });
  }

  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  const std::vector<SkippedTensor>& skipped() const override { return skipped_; }
  const std::vector<StoredCodes>& codes() const override { return codes_; }

  void read_bytes(const StoredCodes& tensor, std::uint64_t first, std::span<std::byte> to) const override {
    file_of_codes_.at(tensor.name)->read_bytes(tensor, first, to);
  }
  void read_stored(std::size_t index, std::int64_t first, std::int64_t count,
                   const StoredSink& sink) const override {
    const auto& [file, place] = places_.at(index);
    file->read_stored(place, first, count, sink);
  }

 private:
  template <typename IsTaken>
  void add(const TensorFile& file, IsTaken&& is_taken) {
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
      if (!is_taken(file.tensors()[i].name)) continue;
      tensors_.push_back(file.tensors()[i]);
      places_.emplace_back(&file, i);
    }
    for (const StoredCodes& codes : file.codes()) {
      if (!is_taken(codes.name)) continue;
      codes_.push_back(codes);
      file_of_codes_[codes.name] = &file;
    }
  }

  std::unique_ptr<TensorFile> own_;
  std::vector<LentPart> parts_;
  std::vector<StoredTensor> tensors_;
  std::vector<SkippedTensor> skipped_;
  std::vector<StoredCodes> codes_;
  std::vector<std::pair<const TensorFile*, std::size_t>> places_;  // places of tensors_
  std::map<std::string, const TensorFile*> file_of_codes_;
};

}  // namespace

std::string payload_of(std::string_view name) {
  if (name.ends_with(block_scales_ending))
    return stem_of(name, block_scales_ending) + std::string(blocks_ending);
  if (name.ends_with(input_ending)) return stem_of(name, input_ending) + "weight";
  for (const std::string_view ending : scale_endings)
    if (name.ends_with(ending)) return stem_of(name, ending);
  return "";
}

bool has_payload(const TensorFile& file, std::string_view name) {
  bool found = false;
  for_names(file, [&](const std::string& held, bool coded) { found = found || (coded && held == name); });
  return found;
}

AbsentParts absent_parts(const TensorFile& file) {
  std::set<std::string> held;
  for_names(file, [&](const std::string& name, bool) { held.insert(name); });
  AbsentParts absent;
  for_names(file, [&](const std::string& name, bool coded) {
    const std::string payload = payload_of(name);
    if (!payload.empty() && !held.contains(payload)) absent.payloads.emplace(payload, name);
    if (!coded || !payload.empty()) return;
    const bool is_scaled = held.contains(name + "_scale_inv") || held.contains(name + "_scale");
    for (const std::string& scales : scales_of(name))
      if (!held.contains(scales) && (!is_scaled || scales.ends_with("_scale_2")))
        absent.scales.emplace_back(scales, name);
  });
  return absent;
}

std::unique_ptr<TensorFile> join_parts(std::unique_ptr<TensorFile> file, std::vector<LentPart> parts,
                                       const std::set<std::string>& payloads) {
  return std::make_unique<JoinedFile>(std::move(file), std::move(parts), payloads);
}

}  // namespace halfscope
