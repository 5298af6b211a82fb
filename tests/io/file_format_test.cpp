// Files by their first bytes, whatever they are called.
#include <fmt/format.h>

#include <halfscope/io/tensor_file.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/read_tensors.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/torch_bytes.hpp"

namespace halfscope::file_format_test {
namespace {

using namespace std::string_literals;

const std::string numbers = bytes_of(std::vector<float>{1, 2});
const std::string tensor_pickle =
    pickled::whole(pickled::tensor(pickled::storage("0", 2), 0, pickled::integer(2), pickled::integer(1)));

std::string refusal(const std::filesystem::path& path, std::optional<DType> raw = {}) {
  return message_of<InvalidArgument>([&] { (void)open_tensor_file(path, raw); });
}

TEST_CASE("a file is read as what it is under another name", "[file_format]") {
  const TemporaryFolder folder;
  const std::string npy = npy_bytes("<f4", "(2,)", numbers);
  const std::string safetensors =
      safetensors_bytes(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", numbers);
  const std::string legacy = torch_legacy_bytes(tensor_pickle, numbers, 2);
  const std::string framed = "\x80\x04\x95" + little_endian(13, 8) + legacy.substr(2);  // protocol 4
  for (const std::string& bytes :
       {npy, framed, safetensors, zip_bytes({stored_part("a.npy", npy)}),
        torch_zip_bytes(tensor_pickle, numbers), torch_legacy_bytes(tensor_pickle, numbers, 2)}) {
    for (const char* name : {"m.pt", "m.bin", "m.npz", "m.npy", "m.safetensors", "m.ckpt", "m"}) {
      INFO(name << " " << bytes.substr(0, 12));
      const bool is_text = bytes == safetensors && (name == "m.npz"s || name == "m.npy"s);
      if (is_text) continue;  // eight bytes and a brace are no sign against an extension
      CHECK(elements_of(*open_tensor_file(folder.put(name, bytes))) == std::vector<float>{1, 2});
    }
  }
}

TEST_CASE("formats that are known and not read are named with what to do, whatever --dtype says",
          "[file_format]") {
  const TemporaryFolder folder;
  struct Case {
    const char* name;
    std::string bytes;
    const char* says;
  };
  const std::vector<Case> cases{
      {"w.h5", "\x89HDF\r\n\x1a\n" + std::string(8, '\0'), "h5py.File"},
      {"w.bin", "\x89HDF\r\n\x1a\n" + std::string(8, '\0'), "HDF5"},
      {"m.onnx", "\x08\x07\x12\x07pytorch", "onnx.load"},
      {"m.msgpack", "\x81\xa6params", "flax"},
      {"model.ckpt-100.data-00000-of-00001", numbers, "tensorflow.train.load_checkpoint"},
      {"__0_0.distcp", torch_zip_bytes(tensor_pickle, numbers), "dcp_to_torch"},
      {"bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", torch_zip_bytes(tensor_pickle, numbers),
       "zero_to_fp32.py"},
      {"manifest.ocdbt", numbers, "orbax"},
      {"model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:00", "git lfs pull"},
      {"w.pkl", "\x80\x04N.", "a pickle of Python's"},
      {"page.safetensors", "<!DOCTYPE html><html lang=\"en\">", "the answer of a web server"},
      {"denied.pt", "<?xml version=\"1.0\"?><Error><Code>AccessDenied", "the answer of a web server"},
      {"pytorch_model.bin", "Entry not found", "fetch it again"},
      {"model.gguf", "{\"error\":\"Unauthorized\"}", "fetch it again"},
      {"w.mat", "MATLAB 5.0 MAT-file, Platform: GLNXA64", "scipy.io.loadmat"},
      {"m.7z", "7z\xbc\xaf\x27\x1c" + std::string(8, '\0'), "7z x FILE"},
      {"scripted.pt",
       zip_bytes({stored_part("m/data.pkl", tensor_pickle), stored_part("m/code/__torch__.py", "")}),
       "TorchScript"},
      {"m.zip", zip_bytes({stored_part("a.txt", "text")}), "a zip archive that holds neither"},
  };
  for (const auto& [name, bytes, says] : cases) {
    INFO(name);
    const auto path = folder.put(name, bytes);
    for (const auto raw : {std::optional<DType>{}, std::optional{DType::f8_e4m3}}) {
      const std::string message = refusal(path, raw);
      check_says(message, {path.string(), says});
      CHECK(message.find("--dtype") == std::string::npos);
      CHECK(message.find('\n') == std::string::npos);
    }
  }
}

TEST_CASE("raw elements that begin like a pickle are raw where somebody says so", "[file_format]") {
  const TemporaryFolder folder;
  const auto path = folder.put("raw.bin", "\x80\x02" + std::string(6, '\0'));
  CHECK(open_tensor_file(path, DType::f16)->tensors()[0].elements == 4);
  check_says(refusal(path), {"a pickle of Python's"});
  CHECK(open_tensor_file(folder.put("zip.bin", std::string("\x1f\x8b\x08\0", 4)), DType::f16)
            ->tensors()[0]
            .elements == 2);
}

TEST_CASE("a PyTorch checkpoint is no raw file", "[file_format]") {
  const TemporaryFolder folder;
  const auto file = open_tensor_file(folder.put("m.pt", torch_zip_bytes(tensor_pickle, numbers)), DType::f32);
  CHECK(elements_of(*file) == std::vector<float>{1, 2});
}

TEST_CASE("files of a folder are tensors, tensors that are not read, or something else", "[file_format]") {
  const TemporaryFolder folder;
  const auto role = [&](const char* name, const std::string& bytes) {
    return look_at_file(folder.put(name, bytes)).role;
  };
  CHECK(role("a.npy", "no array") == FolderRole::tensors);
  CHECK(role("A.SAFETENSORS", "") == FolderRole::tensors);
  CHECK(role("m.bin", torch_zip_bytes(tensor_pickle, numbers)) == FolderRole::tensors);
  CHECK(role("old.pth", torch_legacy_bytes(tensor_pickle, numbers, 2)) == FolderRole::tensors);
  CHECK(role("vocabulary.bin", "words") == FolderRole::not_read);
  CHECK(role("w.h5", "\x89HDF\r\n\x1a\n") == FolderRole::not_read);
  for (const char* name : {"config.json", "notes.txt", "README.md"})
    CHECK(role(name, "{}") == FolderRole::other);
  CHECK(look_at_file(folder / "gone.txt").role == FolderRole::other);
}

}  // namespace
}  // namespace halfscope::file_format_test
