// Quantized tensors whose payload and scales were sharded apart, in the file of the payload.
#include <halfscope/io/detail/joined_file.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace halfscope {
namespace {

/// Endings of the names of a payload and of one of its parts; the rest of the two is one.
struct PartEndings {
  std::string_view payload, part;
};
constexpr std::array part_endings{
    PartEndings{"qweight", "qzeros"},
    PartEndings{"qweight", "scales"},
    PartEndings{"qweight", "g_idx"},
    PartEndings{"weight_packed", "weight_scale"},
    PartEndings{"weight_packed", "weight_zero_point"},
    PartEndings{"weight_packed", "weight_shape"},
    PartEndings{"weight_packed", "weight_g_idx"},
    PartEndings{"weight_packed", "weight_global_scale"},
    PartEndings{"weight_packed", "input_global_scale"},
    PartEndings{"_blocks", "_scales"},
    PartEndings{"weight", "input_scale"},
    PartEndings{"weight", "scale_weight"},
    PartEndings{"weight", "qscale_weight"},
    PartEndings{"weight", "SCB"},
    PartEndings{".weight", ".scale"},
    PartEndings{"", "_scale_inv"},
    PartEndings{"", "_scale"},
    PartEndings{"", "_scale_2"},
    PartEndings{"", "_zero_point"},
    PartEndings{"", ".absmax"},
    PartEndings{"", ".quant_map"},
    PartEndings{"", ".nested_absmax"},
    PartEndings{"", ".nested_quant_map"},
    PartEndings{"", ".quant_state.bitsandbytes__nf4"},
    PartEndings{"", ".quant_state.bitsandbytes__fp4"},
};

std::string with_ending(std::string_view name, std::string_view old_ending, std::string_view ending) {
  return std::string(name.substr(0, name.size() - old_ending.size())) + std::string(ending);
}

/// Names of the parts that a payload may have.
std::vector<std::string> parts_of_payload(const std::string& payload) {
  std::vector<std::string> names;
  for (const auto& [end, part] : part_endings)
    if (payload.ends_with(end)) names.push_back(with_ending(payload, end, part));
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
    const auto is_kept = [&](const std::string& name) {
      return std::ranges::none_of(payloads_of(name),
                                  [&](const std::string& payload) { return payloads.contains(payload); });
    };
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

std::vector<std::string> payloads_of(std::string_view name) {
  std::vector<std::string> payloads;
  for (const auto& [end, part] : part_endings)
    if (name.ends_with(part) && name.size() > part.size()) payloads.push_back(with_ending(name, part, end));
  return payloads;
}

bool has_payload(const TensorFile& file, std::string_view name) {
  bool found = false;
  for_names(file, [&](const std::string& held, bool coded) { found = found || (coded && held == name); });
  return found;
}

AbsentParts absent_parts(const TensorFile& file) {
  std::set<std::string_view> held;
  for_names(file, [&](const std::string& name, bool) { held.insert(name); });
  AbsentParts absent;
  for_names(file, [&](const std::string& name, bool coded) {
    const std::vector<std::string> payloads = payloads_of(name);
    for (const std::string& payload : payloads)
      if (!held.contains(payload)) absent.payloads.emplace(payload, name);
    if (!coded || !payloads.empty()) return;
    for (std::string& part : parts_of_payload(name))
      if (!held.contains(part)) absent.scales.emplace_back(std::move(part), name);
  });
  return absent;
}

std::unique_ptr<TensorFile> join_parts(std::unique_ptr<TensorFile> file, std::vector<LentPart> parts,
                                       const std::set<std::string>& payloads) {
  return std::make_unique<JoinedFile>(std::move(file), std::move(parts), payloads);
}

}  // namespace halfscope
