// Tensors of files one after the other: small ones side by side, large ones by all threads.
#include <halfscope/passes/file_formats.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include <halfscope/core/escape.hpp>
#include <halfscope/device/array.hpp>
#include <halfscope/io/detail/file_pair.hpp>
#include <halfscope/io/detail/tensor_parts.hpp>
#include <halfscope/kernel/block/detail/matrix_size.hpp>
#include <halfscope/passes/detail/tensor_matrix.hpp>

namespace halfscope {
namespace {

/// Tensors of so many elements share the threads one by one; larger ones take all of them.
constexpr std::int64_t most_of_small = std::int64_t{1} << 20;

/// Throws InvalidArgument where a tensor that is held is larger than the machine's memory.
void require_room(const StoredTensor& tensor, std::int64_t axis) {
  if (!is_held(tensor)) return;
  const detail::AroundAxis around = *detail::around_axis(tensor.shape, axis);
  const double copies = around.inner == 1 ? 1 : 2;  // one more while the axis is brought to the end
  const double needed = copies * sizeof(float) * static_cast<double>(tensor.elements);
  const double memory =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (needed <= memory) return;
  constexpr double gib = 1 << 30;
  throw InvalidArgument(fmt::format(
      "'{}' of shape {} is too large for blocks along axis {}: it would be held in memory, which takes "
      "{:.0f} GiB of this machine's {:.0f}; save it in row-major order and uncompressed",
      escaped(tensor.name), to_string(tensor.shape), axis, needed / gib, memory / gib));
}

/// A tensor of one of the files.
struct Place {
  std::size_t file = 0, index = 0;
};

/// Counts of a tensor; an error where its file is damaged there.
struct TensorFound {
  MatrixShape shape{};
  std::vector<FormatCounts> formats{};
  std::exception_ptr error{};
};

class FormatsPass {
 public:
  FormatsPass(std::span<const ChosenTensors> files, const FormatRequest& request, const FormatsSink& sink)
      : files_(files), request_(request), sink_(sink) {}

  void run() {
    std::vector<Place> small;
    for (std::size_t file = 0; file < files_.size(); ++file) {
      for (const std::size_t index : files_[file].tensors) {
        const Place place{file, index};
        if (stored(place).elements <= most_of_small) {
          small.push_back(place);
          continue;
        }
        count_side_by_side(small);
        if (failed_ != file) take(place, count(place, count_on_all_threads));
      }
    }
    count_side_by_side(small);
  }

 private:
  [[nodiscard]] const StoredTensor& stored(const Place& place) const {
    return files_[place.file].file->tensors()[place.index];
  }

  template <typename Count>
  [[nodiscard]] TensorFound count(const Place& place, const Count& count_matrix) const {
    try {
      const TensorMatrix matrix(*files_[place.file].file, place.index, request_.axis);
      return {.shape = matrix.shape(), .formats = count_matrix(matrix, request_.formats, request_.exponents)};
    } catch (...) {
      return {.error = std::current_exception()};
    }
  }

  void count_side_by_side(std::vector<Place>& places) {
    work_through(
        std::span<const Place>(places), [&](const Place& place) { return count(place, count_on_one_thread); },
        [&](const Place& place, TensorFound&& found) { take(place, found); });
    places.clear();
  }

  void take(const Place& place, const TensorFound& found) {
    if (failed_ == place.file) return;
    if (sink_.progress) sink_.progress(place.file, stored(place).elements);
    if (found.error) {
      failed_ = place.file;
      return sink_.failed(place.file, found.error);
    }
    sink_.tensor({place.file, place.index, found.shape, found.formats});
  }

  std::span<const ChosenTensors> files_;
  const FormatRequest& request_;
  const FormatsSink& sink_;
  std::optional<std::size_t> failed_;  ///< the last file that did
};

}  // namespace

MatrixShape matrix_along(const std::vector<std::int64_t>& shape, std::int64_t axis, const std::string& name) {
  const std::optional<detail::AroundAxis> around = detail::around_axis(shape, axis);
  if (!around) {
    const std::int64_t axes = std::max<std::int64_t>(1, std::ssize(shape));
    throw InvalidArgument(fmt::format("axis {} of '{}', which has {} ax{}s: give one from {} to {}", axis,
                                      escaped(name), axes, axes == 1 ? "i" : "e", -axes, axes - 1));
  }
  if (around->length == 0) return {0, 0};
  return {around->outer * around->inner, around->length};
}

void count_formats(std::span<const ChosenTensors> files, const FormatRequest& request,
                   const FormatsSink& sink) {
  for (const ChosenTensors& file : files) {
    for (const std::size_t index : file.tensors) {
      const StoredTensor& tensor = file.file->tensors().at(index);
      static_cast<void>(matrix_along(tensor.shape, request.axis, tensor.name));
      require_room(tensor, request.axis);
    }
  }
  FormatsPass(files, request, sink).run();
}

std::vector<FormatCounts> count_formats(std::span<const float> values, const MatrixShape& shape,
                                        std::span<const TensorFormat> formats, ScaledExponents exponents) {
  detail::check_matrix_size("count_formats", values.size(), shape);
  const TensorMatrix matrix(values, shape);
  return std::ssize(values) <= most_of_small ? count_on_one_thread(matrix, formats, exponents)
                                             : count_on_all_threads(matrix, formats, exponents);
}

}  // namespace halfscope
