// The same counts with rows along either axis: what turning a tensor costs as it is read.
#include "experiments/cli/bench/bench_formats.hpp"

#include <array>
#include <exception>

#include <halfscope/core/random.hpp>
#include <halfscope/io/safetensors/safetensors.hpp>
#include <halfscope/io/tensor_file.hpp>
#include <halfscope/passes/file_formats.hpp>

#include "experiments/cli/bench/bench_folder.hpp"

namespace halfscope {
namespace {

constexpr std::int64_t side = 4096;

SafetensorsFile made_matrix() {
  SafetensorsFile state;
  Array array(Shape{side, side});
  const RandomStream stream{.seed = 1};
  for (std::size_t i = 0; i < array.size(); ++i) array.values()[i] = stream.uniform(i) - 0.5f;
  state.tensors.push_back({"weight", std::move(array)});
  return state;
}

void count_along(const TensorFile& file, std::int64_t axis) {
  constexpr std::array<std::size_t, 1> all{0};
  const ChosenTensors chosen{&file, all};
  const FormatRequest request{.formats = {parse_tensor_format("mxfp4"), parse_tensor_format("nvfp4"),
                                          parse_tensor_format("mxfp8_e4m3")},
                              .axis = axis};
  count_formats(
      {&chosen, 1}, request,
      {.tensor = [](const CountedTensor&) { use_memory(); },
       .failed = [](std::size_t, const std::exception_ptr& error) { std::rethrow_exception(error); },
       .progress = {}});
}

}  // namespace

BenchResult bench_formats_along_first_axis() {
  constexpr double seconds = 8;  // some ten of each: a median
  const BenchFolder folder;
  const auto path = folder / "model.safetensors";
  write_safetensors(path, made_matrix());
  const auto file = open_tensor_file(path);
  const Times times = time_in_turn([&] { count_along(*file, 0); }, [&] { count_along(*file, -1); }, seconds);
  return {side * side * sizeof(float) / times.ours * 1e-9, "GB/s", times.ratio, "the last axis"};
}

}  // namespace halfscope
