// A line for each format; a new one that is not read needs nothing else.
#include <halfscope/io/detail/file_format.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <halfscope/core/error.hpp>
#include <halfscope/io/gguf/detail/gguf_file.hpp>
#include <halfscope/io/npy/detail/npy_header.hpp>
#include <halfscope/io/npz/detail/zip_directory.hpp>
#include <halfscope/io/tensor_file.hpp>
#include <halfscope/io/torch/detail/torch_file.hpp>

namespace halfscope {
namespace {

using namespace std::string_view_literals;

/// A format by bytes, by the end of the file's name or, where both are there, by both.
struct ForeignEntry {
  std::string_view magic;
  std::size_t offset = 0;
  std::string_view ending;  ///< in lower case
  Certainty certainty = Certainty::certain;
  std::string_view description;
};

constexpr std::string_view pickle_description =
    "a pickle of Python's, which may run anything; load it if you trust it, and save its arrays with "
    "numpy.savez";

constexpr std::string_view failed_download =
    "the answer of a web server, and not the file; the download failed, or needs you to log in: fetch it "
    "again";

constexpr std::array foreign_formats{
    ForeignEntry{
        "\x89HDF\r\n\x1a\n"sv, 0, "", Certainty::certain,
        "HDF5, as Keras writes it; in Python halfscope.analyze('FILE') reads it where h5py is installed; or "
        "convert it: python -c \"import h5py, numpy; d = {}; "
        "h5py.File('FILE').visititems(lambda name, x: d.update({name: x[()]}) if hasattr(x, 'dtype') "
        "else None); numpy.savez('tensors.npz', **d)\""},
    ForeignEntry{"version https://git-lfs"sv, 0, "", Certainty::certain,
                 "a pointer of Git LFS to a file that is not here; fetch it: git lfs pull"},
    ForeignEntry{"<!DOCTYPE html"sv, 0, "", Certainty::certain, failed_download},
    ForeignEntry{"<!doctype html"sv, 0, "", Certainty::certain, failed_download},
    ForeignEntry{"<html"sv, 0, "", Certainty::certain, failed_download},
    ForeignEntry{"<?xml"sv, 0, "", Certainty::certain, failed_download},
    ForeignEntry{"{\"error\":"sv, 0, "", Certainty::certain, failed_download},
    ForeignEntry{"Entry not found"sv, 0, "", Certainty::certain, failed_download},
    ForeignEntry{
        "MATLAB 5.0 MAT-file"sv, 0, "", Certainty::certain,
        "MATLAB's; convert it: python -c \"import numpy, scipy.io; numpy.savez('tensors.npz', **{k: x for k, "
        "x in scipy.io.loadmat('FILE').items() if not k.startswith('__')})\""},
    ForeignEntry{"7z\xbc\xaf\x27\x1c"sv, 0, "", Certainty::certain, "compressed; unpack it first: 7z x FILE"},
    ForeignEntry{"BZh"sv, 0, "", Certainty::probable, "compressed; unpack it first: bunzip2 FILE"},
    ForeignEntry{"ustar"sv, 257, "", Certainty::certain, "a tar archive; unpack it first"},
    ForeignEntry{"PAR1"sv, 0, "", Certainty::certain, "Parquet; save its columns with numpy.savez"},
    ForeignEntry{"\x28\xb5\x2f\xfd"sv, 0, "", Certainty::certain, "compressed; unpack it first: unzstd FILE"},
    ForeignEntry{"\xfd"
                 "7zXZ"sv,
                 0, "", Certainty::certain, "compressed; unpack it first: unxz FILE"},
    ForeignEntry{"\x1f\x8b\x08"sv, 0, "", Certainty::probable, "compressed; unpack it first: gunzip FILE"},
    ForeignEntry{
        "", 0, "_optim_states.pt", Certainty::certain,
        "a shard of DeepSpeed's ZeRO; in Python halfscope.analyze('FOLDER') reads those of stage 3 where "
        "torch is installed; or put the shards together with the script that DeepSpeed writes "
        "beside them: python zero_to_fp32.py . model.pt"},
    ForeignEntry{
        "", 0, ".distcp", Certainty::certain,
        "a shard of PyTorch's distributed checkpoint; in Python halfscope.analyze('FOLDER') reads it where "
        "torch is installed; or convert its folder: python -m "
        "torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER model.pt"},
    ForeignEntry{
        "", 0, "manifest.ocdbt", Certainty::certain,
        "a part of an Orbax checkpoint; load its folder with "
        "orbax.checkpoint.PyTreeCheckpointer().restore(FOLDER) and save the arrays with numpy.savez"},
    ForeignEntry{"", 0, ".onnx", Certainty::certain,
                 "ONNX; in Python halfscope.analyze('FILE') reads it where onnx is installed; or convert it: "
                 "python -c \"import onnx, numpy; from onnx.numpy_helper import to_array; "
                 "numpy.savez('tensors.npz', **{t.name: to_array(t) for t in "
                 "onnx.load('FILE').graph.initializer})\""},
    ForeignEntry{"", 0, ".msgpack", Certainty::certain,
                 "msgpack, as Flax writes it; convert it: python -c \"import numpy; from flax import "
                 "serialization, traverse_util; numpy.savez('tensors.npz', "
                 "**traverse_util.flatten_dict(serialization.msgpack_restore(open('FILE', 'rb').read()), "
                 "sep='.'))\""},
    ForeignEntry{"", 0, "saved_model.pb", Certainty::certain,
                 "a SavedModel of TensorFlow's, whose weights are in variables/; convert those"},
    ForeignEntry{"", 0, ".pkl", Certainty::certain, pickle_description},
    ForeignEntry{"\x80\x02"sv, 0, "", Certainty::probable, pickle_description},
    ForeignEntry{"\x80\x03"sv, 0, "", Certainty::probable, pickle_description},
    ForeignEntry{"\x80\x04"sv, 0, "", Certainty::probable, pickle_description},
    ForeignEntry{"\x80\x05"sv, 0, "", Certainty::probable, pickle_description},
};

/// The first bytes, as far as any magic number reaches.
std::string first_bytes(const InputFile& file) {
  constexpr std::uint64_t most = 512;
  std::string bytes(std::min(file.size(), most), '\0');
  bytes.resize(file.read_some(0, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

std::string in_lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

/// "model.ckpt-100.data-00000-of-00001".
bool is_of_tensorflow(std::string_view name) {
  const std::size_t data = name.rfind(".data-"), of = name.rfind("-of-");
  return data != std::string_view::npos && of != std::string_view::npos && of > data;
}

std::optional<ForeignFormat> find_foreign(std::string_view bytes, const std::string& name) {
  if (is_of_tensorflow(name)) {
    return ForeignFormat{
        "weights of a TensorFlow checkpoint; convert it: python -c \"import numpy, tensorflow; r = "
        "tensorflow.train.load_checkpoint('PREFIX'); numpy.savez('tensors.npz', **{k: r.get_tensor(k) for k "
        "in "
        "r.get_variable_to_shape_map()})\""};
  }
  for (const ForeignEntry& entry : foreign_formats) {
    const bool is_begun = bytes.size() >= entry.offset && bytes.substr(entry.offset).starts_with(entry.magic);
    if (is_begun && name.ends_with(entry.ending))
      return ForeignFormat{std::string(entry.description), entry.certainty};
  }
  return std::nullopt;
}

/// An archive of arrays, of PyTorch's storages, or of something else.
FileFormat format_of_zip(const InputFile& file, std::string_view bytes, std::string_view name) {
  constexpr std::size_t name_begin = 30;
  // The name of an archive's first member tells which of the two it is; else its directory does.
  const bool begins_with_pickle = bytes.substr(std::min(name_begin, bytes.size())).find("data.pkl") < 200;
  if (name.ends_with(".npz") && !begins_with_pickle) return {.format = TensorFileFormat::npz};
  const std::vector<ZipMember> members = read_zip_directory(file);
  const auto any = [&](auto&& holds) { return std::ranges::any_of(members, holds); };
  if (any([](const ZipMember& member) { return member.name.find("/code/") != std::string::npos; }) &&
      find_torch_pickle(members) != nullptr) {
    return {.foreign = ForeignFormat{
                "TorchScript, a program with its weights; save those: python -c \"import torch; "
                "torch.save(torch.jit.load('FILE', 'cpu').state_dict(), 'weights.pt')\""}};
  }
  if (find_torch_pickle(members) != nullptr) return {.format = TensorFileFormat::torch_zip};
  if (any([](const ZipMember& member) { return member.name.ends_with(".npy"); }) || name.ends_with(".npz"))
    return {.format = TensorFileFormat::npz};
  return {.foreign = ForeignFormat{
              "a zip archive that holds neither .npy arrays nor PyTorch's data.pkl; unpack it first"}};
}

/// The length of a header, and the brace that opens it.
bool looks_like_safetensors(const InputFile& file, std::string_view bytes) {
  std::uint64_t length = 0;
  if (bytes.size() <= sizeof length || bytes[sizeof length] != '{') return false;
  std::memcpy(&length, bytes.data(), sizeof length);
  return length < file.size();
}

}  // namespace

FileFormat recognise(const InputFile& file, const std::filesystem::path& path) {
  const std::string bytes = first_bytes(file), name = in_lower_case(path.filename().string());
  const auto begins = [&](std::string_view magic) { return bytes.starts_with(magic); };
  if (begins(npy_magic)) return {.format = TensorFileFormat::npy};
  if (begins(gguf_magic)) return {.format = TensorFileFormat::gguf};
  const auto foreign = find_foreign(bytes, name);
  if (is_legacy_torch(bytes) && !name.ends_with("_optim_states.pt"))
    return {.format = TensorFileFormat::torch_legacy};
  if (foreign && foreign->certainty == Certainty::certain) return {.foreign = foreign};
  if (begins("PK\3\4") || begins("PK\5\6")) return format_of_zip(file, bytes, name);
  if (name.ends_with(".safetensors")) return {.format = TensorFileFormat::safetensors};
  if (name.ends_with(".npz")) return {.format = TensorFileFormat::npz};
  if (name.ends_with(".npy")) return {.format = TensorFileFormat::npy};
  if (looks_like_safetensors(file, bytes)) return {.format = TensorFileFormat::safetensors};
  return {.foreign = foreign};
}

FolderEntry look_at_file(const std::filesystem::path& path) {
  const std::string name = in_lower_case(path.filename().string());
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  // A file of such a name that cannot be read is an error, not one to be passed over.
  if (ends(".npy") || ends(".npz") || ends(".safetensors") || ends(".gguf")) return {FolderRole::tensors, ""};
  const bool may_be_torch = ends(".pt") || ends(".pth") || ends(".ckpt") || ends(".bin");
  try {
    const FileFormat found = recognise(InputFile(path), path);
    if (found.foreign && found.foreign->certainty == Certainty::certain)
      return {FolderRole::not_read, found.foreign->description};
    if (!may_be_torch) return {};
    if (found.format == TensorFileFormat::torch_zip || found.format == TensorFileFormat::torch_legacy)
      return {FolderRole::tensors, ""};
    return {FolderRole::not_read, "neither PyTorch's zip archive nor its older format"};
  } catch (const InvalidArgument&) {
    return may_be_torch ? FolderEntry{FolderRole::tensors, ""} : FolderEntry{};
  }
}

}  // namespace halfscope
