// Pairs of tensors whose files have their elements in different orders.
#include <halfscope/passes/file_comparison.hpp>
#include <halfscope/passes/file_updates.hpp>

#include <fmt/format.h>

#include <halfscope/format/formats.hpp>
#include <halfscope/io/detail/element_order.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/read_tensors.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tensor_bytes.hpp"
#include "tests/support/zip_bytes.hpp"

namespace halfscope::file_pair_test {
namespace {

using Shape = std::vector<std::int64_t>;

/// The numbers 0, 0.25, 0.5 ... in the order of `shape`, as an .npy array in the given order.
std::string counted(const Shape& shape, bool fortran) {
  StoredTensor tensor;
  tensor.shape = shape;
  tensor.elements = 1;
  for (const std::int64_t extent : shape) tensor.elements *= extent;
  if (fortran) tensor.axes = column_major(shape);
  RowMajorIndex place(tensor);
  std::vector<float> values(static_cast<std::size_t>(tensor.elements));
  for (float& value : values) value = 0.25f * static_cast<float>(place.next());
  return npy_with_header(fmt::format("{{'descr': '<f4', 'fortran_order': {}, 'shape': ({},)}}\n",
                                     fortran ? "True" : "False", fmt::join(shape, ", ")),
                         bytes_of(values));
}

TEST_CASE("the elements of a column-major array are found by their place in the shape", "[file_pair]") {
  const TemporaryFolder folder;
  // Written down by hand: rows (0 1 2) and (3 4 5), column by column.
  const std::vector<float> columns{0, 3, 1, 4, 2, 5};
  const auto file = open_tensor_file(folder.put(
      "f.npy",
      npy_with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}\n", bytes_of(columns))));
  CHECK(file->tensors()[0].axes == std::vector<std::size_t>{1, 0});
  CHECK(elements_of(*file) == columns);
  std::vector<float> rows(6);
  file->read_row_major(0, rows);
  CHECK(rows == std::vector<float>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("an order that moves no element is none", "[file_pair]") {
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{1, 5}, Shape{5, 1, 1}, Shape{0, 3}, Shape{3, 0}})
    CHECK(column_major(shape).empty());
  CHECK(column_major({2, 1, 3}) == std::vector<std::size_t>{2, 0, 1});
}

TEST_CASE("a tensor differs in nothing from itself in another order", "[file_pair]") {
  const TemporaryFolder folder;
  for (const Shape& shape : {Shape{2, 3}, Shape{3, 1, 5}, Shape{40, 41, 41}, Shape{1, 5}, Shape{0, 3}}) {
    const std::string rows = counted(shape, false), columns = counted(shape, true);
    const std::vector<std::filesystem::path> files{
        folder.put("rows.npy", rows), folder.put("columns.npy", columns),
        folder.put("rows.npz", zip_bytes({deflated_part("a.npy", rows)})),
        folder.put("columns.npz",
                   zip_bytes({stored_part("b.npy", "no array"), deflated_part("a.npy", columns)}))};
    const NameFilter wanted = [](std::string_view name) { return name != "b"; };
    for (const auto& one : files) {
      for (const auto& other : files) {
        INFO(one << " " << other << " " << shape.size());
        const auto first = open_tensor_file(one, {}, wanted), second = open_tensor_file(other, {}, wanted);
        const ReferenceComparison found = compare_with_reference({*first, 0}, {*second, 0});
        CHECK(found.elements == first->tensors()[0].elements);
        CHECK(found.dd == 0);
        // w + w is no weight of FP16 that stayed, but for 0.
        const LostUpdates updates = count_lost_updates({*first, 0}, {*second, 0}, fp16);
        CHECK(updates.elements == found.elements);
        CHECK(updates.lost == 0);
      }
    }
  }
}

TEST_CASE("lost updates are those of the weight in their place", "[file_pair]") {
  const TemporaryFolder folder;
  // FP16 loses an update of 2^-12 to the weight 1, and keeps it in the weight 2^-12.
  const std::vector<float> rows{1, 0x1p-12f, 1, 0x1p-12f}, columns{0x1p-12f, 0x1p-12f, 1, 1};
  const auto weights = open_tensor_file(folder.put("w.npy", npy_bytes("<f4", "(2, 2)", bytes_of(rows))));
  const auto updates = open_tensor_file(folder.put(
      "u.npy",
      npy_with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}\n", bytes_of(columns))));
  CHECK(count_lost_updates({*weights, 0}, {*updates, 0}, fp16).lost == 2);
}

TEST_CASE("a tensor too large to be reordered in memory is refused", "[file_pair]") {
  const TemporaryFolder folder;
  const std::string shape = "'shape': (32768, 32768)}\n";
  const auto sparse = [&](const char* name, const char* order) {
    const auto path = folder.put(
        name, npy_with_header("{'descr': '<f1', 'fortran_order': " + std::string(order) + ", " + shape, ""));
    std::filesystem::resize_file(path, std::filesystem::file_size(path) + (std::uintmax_t{1} << 30));
    return open_tensor_file(path);
  };
  const auto rows = sparse("r.npy", "False"), columns = sparse("c.npy", "True");
  check_says(message_of<InvalidArgument>([&] {
               (void)compare_with_reference({*columns, 0}, {*rows, 0});
             }),
             {"another order", "1073741824", "numpy.ascontiguousarray"});
}

}  // namespace
}  // namespace halfscope::file_pair_test
