// Counts of several formats over files: those of whole matrices, for any tiles, axes and threads.
#include <halfscope/passes/file_formats.hpp>

#include <cmath>
#include <map>

#include <halfscope/core/isa.hpp>
#include <halfscope/format/round.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/file_in_memory.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::file_formats_test {
namespace {

using Found = std::map<std::string, std::vector<FormatCounts>>;

FormatRequest request_of(const std::vector<std::string>& names, std::int64_t axis = -1) {
  FormatRequest request{.formats = {}, .axis = axis};
  for (const std::string& name : names) request.formats.push_back(parse_tensor_format(name));
  return request;
}

Found count(const FileInMemory& file, const FormatRequest& request) {
  std::vector<std::size_t> all(file.tensors().size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const ChosenTensors chosen{&file, all};
  Found found;
  count_formats(
      {&chosen, 1}, request,
      {.tensor =
           [&](const CountedTensor& tensor) {
             found[file.tensors()[tensor.index].name] = {tensor.formats.begin(), tensor.formats.end()};
           },
       .failed = [](std::size_t, const std::exception_ptr& error) { std::rethrow_exception(error); },
       .progress = {}});
  return found;
}

BlockCounts without_exponents(BlockCounts counts) {
  counts.exponents = {};
  return counts;
}

const std::vector<std::string> in_blocks{"mxfp8_e4m3",  "mxfp4/floor", "nvfp4",         "nvfp4_16x16",
                                         "fp8_128x128", "fp8_1x128",   "nvfp4/modelopt"};

TEST_CASE("tiles of a file count as whole matrices do", "[formats]") {
  struct Shape {
    std::int64_t rows, columns;
  };
  // Small ones, one with several tiles, ones that no block divides, rows beyond a tile.
  for (const Shape shape : {Shape{3, 40}, Shape{260, 300}, Shape{300, 5000}, Shape{3, 700001}}) {
    std::vector<float> values = normal_floats(static_cast<std::size_t>(shape.rows * shape.columns), 1);
    values[7] = 40;
    FileInMemory file;
    file.add_shaped("w", values, {shape.rows, shape.columns});
    for (const int threads : {1, 3}) {
      const Threads in_use(threads);
      const Found found = count(file, request_of(in_blocks));
      for (std::size_t i = 0; i < in_blocks.size(); ++i) {
        INFO(in_blocks[i] << " " << shape.rows << " x " << shape.columns << ", " << threads);
        const BlockCounts whole =
            count_blocks(values, {shape.rows, shape.columns}, parse_block_format(in_blocks[i]));
        CHECK(found.at("w")[i].counts == without_exponents(whole));
      }
      FormatRequest with_exponents = request_of(in_blocks);
      with_exponents.exponents = ScaledExponents::counted;
      const Found complete = count(file, with_exponents);
      for (std::size_t i = 0; i < in_blocks.size(); ++i) {
        INFO(in_blocks[i] << " " << shape.rows << " x " << shape.columns << ", " << threads);
        const MatrixShape matrix{shape.rows, shape.columns};
        CHECK(complete.at("w")[i].counts == count_blocks(values, matrix, parse_block_format(in_blocks[i])));
      }
    }
  }
}

TEST_CASE("a matrix in memory counts as the same tensor of a file", "[formats]") {
  std::vector<std::string> names = in_blocks;
  names.insert(names.end(), {"fp8_e4m3", "bf16"});
  for (const MatrixShape shape :
       {MatrixShape{0, 0}, MatrixShape{3, 40}, MatrixShape{300, 5000}, MatrixShape{3, 700001}}) {
    const auto values = normal_floats(static_cast<std::size_t>(shape.rows * shape.columns), 4);
    FileInMemory file;
    file.add_shaped("w", values, {shape.rows, shape.columns});
    FormatRequest request = request_of(names);
    for (const ScaledExponents exponents : {ScaledExponents::left_out, ScaledExponents::counted}) {
      request.exponents = exponents;
      const std::vector<FormatCounts> of_file = count(file, request).at("w");
      const std::vector<FormatCounts> found = count_formats(values, shape, request.formats, exponents);
      for (std::size_t i = 0; i < names.size(); ++i) {
        INFO(names[i] << " " << shape.rows << " x " << shape.columns);
        CHECK(found[i].counts == of_file[i].counts);
        CHECK(found[i].scale_log2 == of_file[i].scale_log2);
      }
    }
  }
  const std::vector<float> five(5);
  CHECK(message_of<InvalidArgument>([&] {
          (void)count_formats(five, {2, 3}, request_of({"mxfp4"}).formats);
        }) == "count_formats: 5 values are no matrix of 2 x 3");
}

TEST_CASE("exponents under formats without blocks are those over the tensor's scale", "[formats]") {
  std::vector<float> values = normal_floats(300 * 700, 5);
  for (std::size_t i = 0; i < values.size(); i += 3)
    values[i] = std::ldexp(values[i], static_cast<int>(i % 90) - 60);
  values[0] = 0;
  values[1] = -0.0f;
  FileInMemory file;
  file.add_shaped("w", values, {300, 700});
  const std::vector<std::string> names{"fp8_e4m3", "fp8_e5m2", "fp6_e2m3", "bf16", "fp16", "fp32"};
  FormatRequest request = request_of(names);
  request.exponents = ScaledExponents::counted;
  const Found found = count(file, request);
  for (std::size_t i = 0; i < names.size(); ++i) {
    INFO(names[i]);
    const FormatCounts& counts = found.at("w")[i];
    std::map<int, std::int64_t> expected, actual;
    for (const float x : values) {
      if (x != 0) ++expected[std::ilogb(x) - counts.scale_log2.value_or(0)];
    }
    for (std::size_t at = 0; at < counts.counts.exponents.size(); ++at) {
      if (counts.counts.exponents[at] > 0)
        actual[static_cast<int>(at) + BlockCounts::first_exponent] = counts.counts.exponents[at];
    }
    CHECK(actual == expected);
  }
}

TEST_CASE("counts are those of every instruction set", "[formats]") {
  FileInMemory file;
  file.add_shaped("w", normal_floats(70 * 1100, 2), {70, 1100});
  std::vector<std::string> names = in_blocks;
  names.insert(names.end(), {"fp8_e4m3", "fp8_e5m2", "bf16", "fp16", "fp6_e2m3", "fp8_e4m3fnuz"});
  std::vector<std::vector<FormatCounts>> all;
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    all.push_back(count(file, request_of(names)).at("w"));
  }
  for (const auto& found : all) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      INFO(names[i]);
      CHECK(found[i].counts == all[0][i].counts);
      CHECK(found[i].scale_log2 == all[0][i].scale_log2);
    }
  }
}

TEST_CASE("blocks run along the axis that is asked for, in whatever order the file has it", "[formats]") {
  constexpr std::int64_t a = 5, b = 48, c = 7;
  const std::vector<float> values = normal_floats(static_cast<std::size_t>(a * b * c), 3);
  std::vector<float> moved(values.size()), column_major(values.size());
  for (std::int64_t i = 0; i < a; ++i) {
    for (std::int64_t j = 0; j < b; ++j) {
      for (std::int64_t k = 0; k < c; ++k) {
        const float x = values[static_cast<std::size_t>((i * b + j) * c + k)];
        moved[static_cast<std::size_t>((i * c + k) * b + j)] = x;
        column_major[static_cast<std::size_t>((k * b + j) * a + i)] = x;
      }
    }
  }
  FileInMemory file;
  file.add_shaped("row_major", values, {a, b, c});
  file.add_shaped("column_major", column_major, {a, b, c}, {2, 1, 0});
  const BlockCounts expected =
      without_exponents(count_blocks(moved, {a * c, b}, parse_block_format("mxfp4")));
  for (const std::int64_t axis : {1, -2}) {
    const Found found = count(file, request_of({"mxfp4"}, axis));
    CHECK(found.at("row_major")[0].counts == expected);
    CHECK(found.at("column_major")[0].counts == expected);
  }
  const BlockCounts last = without_exponents(count_blocks(values, {a * b, c}, parse_block_format("mxfp4")));
  CHECK(count(file, request_of({"mxfp4"})).at("column_major")[0].counts == last);
}

TEST_CASE("a large tensor turned by all threads counts as its copy does, with the errors of its rows",
          "[formats]") {
  struct Shape {
    std::int64_t outer, length, inner;
  };
  for (const auto& [outer, length, inner] :
       {Shape{1, 1027, 1031}, Shape{1, 1100, 5000}, Shape{3, 65, 6000}, Shape{2, 1, 700000}}) {
    std::vector<float> values = normal_floats(static_cast<std::size_t>(outer * length * inner), 5);
    std::vector<float> turned(values.size());
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t at = 0; at < length; ++at)
        for (std::int64_t i = 0; i < inner; ++i)
          turned[static_cast<std::size_t>((o * inner + i) * length + at)] =
              values[static_cast<std::size_t>((o * length + at) * inner + i)];
    FileInMemory file, copy;
    file.add_shaped("w", values, {outer, length, inner});
    copy.add_shaped("w", turned, {outer * inner, length});
    for (const int threads : {1, 3}) {
      const Threads in_use(threads);
      const Found found = count(file, request_of({"mxfp4", "fp8_e4m3"}, 1));
      const Found expected = count(copy, request_of({"mxfp4", "fp8_e4m3"}));
      for (std::size_t i = 0; i < 2; ++i) {
        CHECK(found.at("w")[i].counts == expected.at("w")[i].counts);
        CHECK(found.at("w")[i].rows.median == expected.at("w")[i].rows.median);
        CHECK(found.at("w")[i].rows.worst_row == expected.at("w")[i].rows.worst_row);
      }
    }
  }
}

TEST_CASE("a format without blocks gets one power of two if it has 8 bits at most", "[formats]") {
  std::vector<float> values = normal_floats(40000, 4);
  values[0] = 7;  // 448 / 64
  values[1] = 0;
  FileInMemory file;
  file.add("w", values);
  file.add("zeros", std::vector<float>(10, 0.0f));
  const Found found = count(file, request_of({"fp8_e4m3", "bf16"}));
  const FormatCounts& fp8 = found.at("w")[0];
  REQUIRE(fp8.scale_log2 == -6);
  double signal = 0, error = 0;
  std::int64_t flushed = 0;
  for (const float x : values) {
    const double value = double{round(x * 64, {fp8_e4m3})} / 64;
    flushed += x != 0 && value == 0 ? 1 : 0;
    signal += double{x} * double{x};
    error += (double{x} - value) * (double{x} - value);
  }
  CHECK(fp8.counts.flushed == flushed);
  CHECK(fp8.counts.zeros == 1);
  CHECK(fp8.counts.clipped == 0);
  CHECK(fp8.counts.relative_squared_error() == Approx(error / signal).epsilon(1e-8));
  CHECK((fp8.counts.blocks == 1 && fp8.counts.blocks_at_risk == 0));
  CHECK(!found.at("w")[1].scale_log2);
  CHECK((found.at("zeros")[0].scale_log2 == 0 && found.at("zeros")[0].counts.zeros == 10));
}

TEST_CASE("a wide format that overflows saturates, and its tensor is at risk", "[formats]") {
  FileInMemory file;
  file.add("w", {1e6f, 1, -INFINITY, NAN});
  const Found found = count(file, request_of({"fp16", "fp8_e5m2", "nvfp4", "mxfp4"}));
  const auto& formats = found.at("w");
  CHECK((formats[0].counts.clipped == 1 && formats[0].counts.overflow == 1));
  CHECK(formats[1].counts.clipped == 0);
  for (const FormatCounts& format : formats)
    CHECK((format.counts.nonfinite == 2 && format.counts.blocks_at_risk == 1));
  CHECK(formats[3].counts.nan_scales == 1);
}

TEST_CASE("an axis that a tensor lacks is named before anything is read", "[formats]") {
  FileInMemory file;
  file.add_shaped("w", {1, 2, 3, 4}, {2, 2});
  file.add("bias", {1, 2});
  check_says(message_of<InvalidArgument>([&] { (void)count(file, request_of({"mxfp4"}, 1)); }),
             {"axis 1", "bias", "-1", "0"});
  CHECK(matrix_along({}, -1, "scalar") == MatrixShape{1, 1});
  CHECK(matrix_along({3, 0}, -1, "empty") == MatrixShape{0, 0});
}

TEST_CASE("a tensor that is larger than the memory is refused where it would be held", "[formats]") {
  class Petabytes : public TensorFile {
   public:
    explicit Petabytes(Access access, std::vector<std::size_t> axes = {})
        : tensors_{{"w", DType::f32, {1 << 20, 1 << 30}, 1LL << 50, access, std::move(axes)}} {}
    const std::vector<StoredTensor>& tensors() const override { return tensors_; }
    void read_stored(std::size_t, std::int64_t, std::int64_t, const StoredSink&) const override {
      throw InvalidArgument("read");
    }

   private:
    std::vector<StoredTensor> tensors_;
  };
  const auto message = [](const Petabytes& file, std::int64_t axis) {
    const std::vector<std::size_t> first{0};
    const ChosenTensors chosen{&file, first};
    return message_of<InvalidArgument>([&] {
      count_formats({&chosen, 1}, request_of({"mxfp4"}, axis),
                    {.tensor = {},
                     .failed = [](std::size_t, const std::exception_ptr& e) { std::rethrow_exception(e); },
                     .progress = {}});
    });
  };
  check_says(message(Petabytes(Access::random, {1, 0}), -1),
             {"'w'", "(1048576, 1073741824)", "axis -1", "4194304 GiB", "row-major"});
  check_says(message(Petabytes(Access::sequential), 0), {"axis 0", "8388608 GiB", "uncompressed"});
}

TEST_CASE("a file that is damaged is said once, and the next one is counted", "[formats]") {
  FileInMemory damaged, sound;
  damaged.add("a", {1, 2});
  damaged.add("b", {1, 2});
  damaged.add("c", {1, 2});
  damaged.damage(1, 0);
  sound.add("d", {1, 2});
  const std::vector<std::size_t> three{0, 1, 2}, one{0};
  const std::array files{ChosenTensors{&damaged, three}, ChosenTensors{&sound, one}};
  std::vector<std::string> heard;
  count_formats(files, request_of({"mxfp4"}),
                {.tensor = [&](const CountedTensor& t) { heard.push_back(std::to_string(t.file)); },
                 .failed = [&](std::size_t file,
                               const std::exception_ptr&) { heard.push_back("!" + std::to_string(file)); },
                 .progress = {}});
  CHECK(heard == std::vector<std::string>{"0", "!0", "1"});
}

}  // namespace
}  // namespace halfscope::file_formats_test
