// Counts of the tensors of files, row by row.
#include "experiments/cli/formats/formats.hpp"

namespace halfscope {
namespace {

class RowsInFormats final : public TensorRows {
 public:
  RowsInFormats(const FormatsRequest& request, std::vector<TensorInFormats>& rows)
      : request_(request), rows_(rows) {}

  void count(std::span<const ChosenTensors> files, const CountEvents& events) override {
    const auto taken = [&](const CountedTensor& found) {
      events.enter(found.file);
      take(found);
    };
    count_formats(files, request_.counted, {taken, events.failed, events.progress});
  }
  void begin(const SelectedFile& file) override {
    file_ = &file;
    end();
  }
  void end() override { begin_ = rows_.size(); }
  void drop() override { rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(begin_), rows_.end()); }

 private:
  void take(const CountedTensor& found) {
    const StoredTensor& tensor = file_->file->tensors()[found.index];
    const auto compared = found.formats.first(request_.compared.formats.size());
    const auto counted = found.formats.first(request_.page.empty() ? 0 : found.formats.size());
    rows_.push_back({.name = tensor.name,
                     .file = file_->name,
                     .matrix = found.shape,
                     .is_vector = tensor.shape.size() < 2,
                     .formats = {compared.begin(), compared.end()},
                     .counted = {counted.begin(), counted.end()}});
  }

  const FormatsRequest& request_;
  std::vector<TensorInFormats>& rows_;
  const SelectedFile* file_ = nullptr;
  std::size_t begin_ = 0;  // place of the file's first tensor among all
};

}  // namespace

FormatsFound count_files(const FormatsRequest& request) {
  FormatsFound found{request.compared, request.max_error};
  RowsInFormats rows(request, found.tensors);
  read_files(request.input, found.read, rows);
  return found;
}

}  // namespace halfscope
