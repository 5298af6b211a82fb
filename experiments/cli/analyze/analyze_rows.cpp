// Keeps the sums of groups, and of single tensors nothing but their reports.
#include "experiments/cli/analyze/analyze_rows.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace halfscope {

void GroupSums::add(const GroupSums& other) {
  summary.merge(other.summary);
  tensors += other.tensors;
  beyond_fp32 += other.beyond_fp32;
  if (!other.reference) return;
  if (reference) {
    *reference += *other.reference;
  } else {
    reference = other.reference;
  }
}

SummaryRows::SummaryRows(const AnalyzeRequest& request, Analysis& analysis)
    : request_(request), analysis_(analysis) {
  if (!request.against.empty()) references_.emplace(request.against, request.input.selection);
}

void SummaryRows::count(std::span<const ChosenTensors> files, const CountEvents& events) {
  const auto taken = [&](const SummarisedTensor& found) {
    events.enter(found.file);
    take(found);
  };
  summarise_files(files, request_.format, {taken, events.failed, events.progress});
}

void SummaryRows::take(const SummarisedTensor& found) {
  const std::string& name = file_->file->tensors()[found.index].name;
  const std::optional<std::string> group = request_.groups.group_of(name);
  const std::optional<TensorInFile> original = reference_of(found.index);
  const TensorInFile tensor{*file_->file, found.index, file_->name};
  const GroupSums sums{*found.summary, 1, found.beyond_fp32,
                       original ? std::optional(compare_with_reference(tensor, *original)) : std::nullopt};
  const bool has_blocks = file_->file->has_blocks(found.index);
  analysis_.is_quantized = analysis_.is_quantized || has_blocks;
  const ExponentHistogram& histogram = found.summary->histogram();
  analysis_.signs.look_at({.name = name,
                           .file = file_->name,
                           .axes = file_->file->tensors()[found.index].shape.size(),
                           .elements = histogram.elements(),
                           .lies_around_1 = lie_around_1(histogram)});
  if (!group) {
    AnalyzedTensor& single = analysis_.tensors.emplace_back(row(name, file_->name, sums));
    if (has_blocks)
      single.blocks = std::make_unique<BlockFindings>(file_->file->findings(found.index, original));
    return;
  }
  const auto [entry, is_new] = of_file_.try_emplace(*group, sums);
  if (!is_new) entry->second.add(sums);
}

/// Room for all tensors of a large file at once: a list that grows is in memory twice.
void SummaryRows::begin(const SelectedFile& file) {
  file_ = &file;
  begin_ = analysis_.tensors.size();
  const std::size_t needed = begin_ + file.tensors.size(), held = analysis_.tensors.capacity();
  if (request_.groups.patterns.empty() && needed > held)
    analysis_.tensors.reserve(std::max(needed, 2 * held));
}

void SummaryRows::end() {
  begin_ = analysis_.tensors.size();
  groups_.merge(of_file_);  // leaves the groups that other files have too
  for (const auto& [group, sums] : of_file_) groups_.at(group).add(sums);
  drop();
}

void SummaryRows::drop() {
  analysis_.tensors.erase(analysis_.tensors.begin() + static_cast<std::ptrdiff_t>(begin_),
                          analysis_.tensors.end());
  of_file_.clear();
}

void SummaryRows::finish() {
  while (!groups_.empty()) {  // a row takes less memory than its sums
    const auto group = groups_.extract(groups_.begin());
    analysis_.tensors.push_back(row(group.key(), "", group.mapped()));
  }
  if (references_) references_->require_used();
}

std::optional<TensorInFile> SummaryRows::reference_of(std::size_t index) {
  if (!references_) return std::nullopt;
  // Two files of one array each need no common name.
  const bool one_each =
      analysis_.read.files == 1 && file_->file->tensors().size() == 1 && references_->is_single_array();
  return one_each ? references_->front() : references_->find(file_->file->tensors()[index].name);
}

AnalyzedTensor SummaryRows::row(const std::string& name, const std::string& file,
                                const GroupSums& sums) const {
  AnalyzedTensor tensor{.name = name,
                        .file = file,
                        .tensors = sums.tensors,
                        .beyond_fp32 = sums.beyond_fp32,
                        .report = report_tensor(name, sums.summary, request_.advisor),
                        .reference = sums.reference};
  if (!request_.page.empty()) {
    tensor.counts = std::make_unique<BinadeTotals>();
    tensor.counts->add(sums.summary.histogram());
  }
  return tensor;
}

void analyze_files(const AnalyzeRequest& request, Analysis& analysis) {
  SummaryRows rows(request, analysis);
  read_files(request.input, analysis.read, rows);
  rows.finish();
  analysis.is_quantized = analysis.is_quantized || analysis.read.unread > 0;
}

void label_tensors(Analysis& analysis, Labels kind) {
  TensorLabels labels(kind, analysis.read.files);
  for (const AnalyzedTensor& tensor : analysis.tensors) labels.see(tensor.name, tensor.file);
  for (AnalyzedTensor& tensor : analysis.tensors)
    tensor.report.name = tensor.report.fit.name = labels.of(tensor.name, tensor.file);
  labels.label(analysis.read.skipped);
}

}  // namespace halfscope
