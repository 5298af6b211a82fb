// Writes the inputs that a fuzz target starts from: write_seeds FORMAT FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/sim/data/mo_files.hpp"
#include "tests/support/event_file.hpp"
#include "tests/support/gguf_bytes.hpp"
#include "tests/support/tensor_bytes.hpp"
#include "tests/support/torch_bytes.hpp"
#include "tests/support/zip_bytes.hpp"

namespace halfscope {
namespace {

const std::vector<float> numbers{1.5f, -2, 0, 65504, 6e-8f, 1e-30f};

std::vector<std::string> npy_seeds() {
  std::vector<std::string> seeds;
  for (const char* descr : {"<f4", ">f4", "<f8", ">f8", "<f2", ">f2", "<V2", "<i4", "|O", "bad"}) {
    seeds.push_back(npy_bytes(descr, "(3, 2)", bytes_of(numbers)));
    seeds.push_back(npy_bytes(descr, "(3,)", bytes_of(numbers)));
  }
  for (const char major : {'\2', '\3'}) {
    seeds.push_back(npy_with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (6L, ), }\n",
                                    bytes_of(numbers), major));
  }
  seeds.push_back(
      npy_with_header("{'descr': [('a', '<f4'), ('b', '|O')], 'fortran_order': False, 'shape': ()}", ""));
  return seeds;
}

std::vector<std::string> npz_seeds() {
  const std::string array = npy_bytes("<f4", "(6,)", bytes_of(numbers));
  const std::string zeros = npy_bytes("<f2", "(3000,)", std::string(6000, '\0'));
  const std::vector<ZipPart> parts{stored_part("a.npy", array), deflated_part("b.npy", array),
                                   deflated_part("zeros.npy", zeros), stored_part("notes.txt", "text")};
  std::vector<std::string> seeds{zip_bytes(parts), zip_bytes(parts, ZipNumbers::zip64), zip_bytes({})};
  for (const ZipPart& part : parts) seeds.push_back(zip_bytes({part}));
  return seeds;
}

std::vector<std::string> safetensors_seeds() {
  const std::string numbers_bytes = bytes_of(numbers);
  std::vector<std::string> seeds{safetensors_bytes("{}", "")};
  for (
      const char* header :
      {R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})",
       R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},)"
       R"("b":{"dtype":"F64","shape":[],"data_offsets":[8,16]},"c":{"dtype":"I64","shape":[1],"data_offsets":[16,24]}})",
       R"({"a":{"dtype":"F8_E4M3","shape":[3,1],"data_offsets":[0,3]},)"
       R"("b":{"dtype":"F8_E5M2","shape":[1],"data_offsets":[3,4]},"c":{"dtype":"BF16","shape":[10],"data_offsets":[4,24]}})",
       R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]}})",
       R"({"w":{"dtype":"F4","shape":[48],"data_offsets":[0,24]},"w":[[[{}]]]})"}) {
    seeds.push_back(safetensors_bytes(header, numbers_bytes));
  }
  return seeds;
}

/// Four bits by a table, with scales that are codes of numbers of their own.
std::string table_seed() {
  const std::string state =
      R"({"quant_type":"nf4","blocksize":4,"shape":[2,4],"nested_blocksize":2,"nested_offset":0.5})";
  const std::string data =
      std::string("\x12\x34\x56\x78\x01\xff", 6) + bytes_of(std::vector<float>(273, 0.5f)) + state;
  const std::size_t end = 6 + 273 * 4;
  return safetensors_bytes(R"({"w":{"dtype":"U8","shape":[4,1],"data_offsets":[0,4]},)"
                           R"("w.absmax":{"dtype":"U8","shape":[2],"data_offsets":[4,6]},)"
                           R"("w.quant_map":{"dtype":"F32","shape":[16],"data_offsets":[6,70]},)"
                           R"("w.nested_quant_map":{"dtype":"F32","shape":[256],"data_offsets":[70,1094]},)"
                           R"("w.nested_absmax":{"dtype":"F32","shape":[1],"data_offsets":[1094,1098]},)"
                           R"("w.quant_state.bitsandbytes__nf4":{"dtype":"U8","shape":[)" +
                               std::to_string(state.size()) + R"(],"data_offsets":[)" + std::to_string(end) +
                               "," + std::to_string(end + state.size()) + "]}}",
                           data);
}

/// A checkpoint of each layout: 24 bytes for all parts.
std::vector<std::string> quantized_seeds() {
  std::vector<std::string> seeds;
  for (const char* header : {R"({"w.weight":{"dtype":"F8_E4M3","shape":[4,4],"data_offsets":[0,16]},)"
                             R"("w.weight_scale_inv":{"dtype":"F32","shape":[2,1],"data_offsets":[16,24]}})",
                             R"({"w.weight":{"dtype":"F8_E5M2","shape":[2,8],"data_offsets":[0,16]},)"
                             R"("w.weight_scale":{"dtype":"F8_E8M0","shape":[2,4],"data_offsets":[16,24]}})",
                             R"({"w.weight":{"dtype":"U8","shape":[2,8],"data_offsets":[0,16]},)"
                             R"("w.weight_scale":{"dtype":"F8_E4M3","shape":[2,1],"data_offsets":[16,18]},)"
                             R"("w.weight_scale_2":{"dtype":"F16","shape":[],"data_offsets":[18,20]},)"
                             R"("w.input_scale":{"dtype":"F32","shape":[],"data_offsets":[20,24]}})",
                             R"({"m_blocks":{"dtype":"U8","shape":[1,1,16],"data_offsets":[0,16]},)"
                             R"("m_scales":{"dtype":"U8","shape":[1,1],"data_offsets":[16,17]},)"
                             R"("n":{"dtype":"F6_E3M2","shape":[4],"data_offsets":[17,20]},)"
                             R"("o":{"dtype":"BF16","shape":[0],"data_offsets":[20,20]},)"
                             R"("p":{"dtype":"I32","shape":[],"data_offsets":[20,24]}})",
                             R"({"q.qweight":{"dtype":"I32","shape":[1,2],"data_offsets":[0,8]},)"
                             R"("q.qzeros":{"dtype":"I32","shape":[1,1],"data_offsets":[8,12]},)"
                             R"("q.scales":{"dtype":"F16","shape":[1,2],"data_offsets":[12,16]},)"
                             R"("q.g_idx":{"dtype":"I32","shape":[2],"data_offsets":[16,24]}})",
                             R"({"a.qweight":{"dtype":"I32","shape":[2,1],"data_offsets":[0,8]},)"
                             R"("a.qzeros":{"dtype":"I32","shape":[1,1],"data_offsets":[8,12]},)"
                             R"("a.scales":{"dtype":"F8_E5M2","shape":[1,8],"data_offsets":[12,20]},)"
                             R"("b":{"dtype":"F32","shape":[],"data_offsets":[20,24]}})",
                             R"({"c.weight_packed":{"dtype":"I32","shape":[1,2],"data_offsets":[0,8]},)"
                             R"("c.weight_scale":{"dtype":"F32","shape":[1,1],"data_offsets":[8,12]},)"
                             R"("c.weight_shape":{"dtype":"I32","shape":[2],"data_offsets":[12,20]},)"
                             R"("c.weight_zero_point":{"dtype":"I32","shape":[1,1],"data_offsets":[20,24]}})",
                             R"({"d.weight":{"dtype":"I8","shape":[2,8],"data_offsets":[0,16]},)"
                             R"("d.SCB":{"dtype":"F16","shape":[2],"data_offsets":[16,20]},)"
                             R"("d.weight_zero_point":{"dtype":"U8","shape":[4],"data_offsets":[20,24]}})",
                             R"({"e":{"dtype":"U8","shape":[2,8],"data_offsets":[0,16]},)"
                             R"("e_scale":{"dtype":"F16","shape":[2,1],"data_offsets":[16,20]},)"
                             R"("e_zero_point":{"dtype":"I8","shape":[2,1],"data_offsets":[20,22]},)"
                             R"("scale_e":{"dtype":"F16","shape":[],"data_offsets":[22,24]}})"}) {
    seeds.push_back(safetensors_bytes(header, bytes_of(numbers)));
  }
  seeds.push_back(table_seed());
  return seeds;
}

std::vector<std::string> torch_seeds() {
  using namespace pickled;
  const std::string view = tensor(storage("0", 6), 1, integer(2) + integer(2), integer(3) + integer(1));
  const std::string expanded = tensor(storage("0", 6), 0, integer(4), integer(0));
  const std::string untyped = tuple(text("storage") + global("torch.storage", "UntypedStorage") + text("0") +
                                    text("cpu") + integer(24)) +
                              "Q";
  const std::string typed = global("torch._utils", "_rebuild_tensor_v3") +
                            tuple(untyped + integer(1) + tuple(integer(3)) + tuple(integer(2)) + "\x89N" +
                                  global("torch", "float8_e5m2")) +
                            "R";
  const std::string nested = dict(text("a") + view + text("b") + "](" + expanded + "N\x88K\1M\1\1J\1\1\1\1e" +
                                  integer(3) + tuple(typed + "G12345678"));
  const std::string ordered = global("collections", "OrderedDict") + std::string("]N\x86") + "a\x85Rq\1" +
                              text("w") + view + "s}b0h\1";
  const std::string parameter = global("torch._utils", "_rebuild_parameter") + tuple(view + "\x88N") + "R";
  const std::string framed =
      "\x95" + little_endian(9, 8) + std::string("\x8c\1k\x94\x8f(K\1\x90") + std::string("2010");
  std::string ways = "]";  // pairs of pairs, forty deep: more ways through them than anything can walk
  for (int i = 0; i < 40; ++i) ways += "2\x86";
  std::vector<std::string> seeds;
  for (const std::string& value : {view, nested, ordered, parameter, framed, ways}) {
    seeds.push_back(whole(value));
    seeds.push_back(torch_legacy_bytes(whole(value), bytes_of(numbers), numbers.size()));
  }
  return seeds;
}

std::vector<std::string> gguf_seeds() {
  const std::string data = bytes_of(numbers) + std::string(64, '\x3c');
  return {
      gguf_bytes({}, ""), gguf_bytes({gguf_tensor("w", {3, 2}, 0, 0)}, data),
      gguf_bytes({gguf_tensor("w", {2}, 30, 16), gguf_tensor("q", {32}, 2, 32), gguf_tensor("d", {1}, 28, 0)},
                 data),
      gguf_bytes(
          {gguf_tensor("k", {256}, 12, 0), gguf_tensor("l", {256}, 14, 0), gguf_tensor("m", {64}, 40, 0),
           gguf_tensor("n", {256}, 23, 0), gguf_tensor("o", {32, 2}, 39, 0), gguf_tensor("p", {256}, 11, 0)},
          std::string(256, '\x3c'))};
}

std::vector<std::string> records_seeds() {
  const std::string line = R"({"step":1,"loss":2.5,"metric":null,"tensors":[{"tensor":"w","elements":6}]})"
                           "\n";
  return {
      "", "\n", line, line + line, line + line.substr(0, 20), "{\"step\":1e999}\n", "{\"a\":1,\"a\":2}\n"};
}

std::vector<std::string> skip_log_seeds() {
  const std::string overflow = "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 64, ";
  const std::string counted = "[Rank 0] step=10, skipped=2, lr=[0]\n";
  const std::string iteration =
      " iteration 10/ 40 | loss scale: 64.0 | grad norm: 1.250 | number of skipped iterations:   2 |\n";
  return {
      overflow + "reducing to 32\n" + counted + "step=20, skipped=2,",
      iteration + " 7%|# | 3/9 [0:01]\r" + iteration,
      overflow + "but hysteresis is 2. Reducing hysteresis to 1\n" + iteration + counted,
      "0%| | 0/9 [0:01] | 1/9 [0:02]" + overflow + "reducing to 32\n| 2/9 [0:03]",
      iteration + overflow +
          "reducing to 32\n iteration 20/ 40 | loss scale: 32.0 | grad norm: nan | number of "
          "skipped iterations: 0 | number of nan iterations: 1 |\nalready at minimum",
      "NOTE: overflow detected, setting loss scale to: 64.0\ntrain_inner | num_updates=2, gnorm=inf, "
      "loss_scale=64\n",
      "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0\n" + overflow,
      "Epoch: [1]  [ 1/10]  loss_scale: 64.0 (64.0)\nEpoch: [1]  [ 2/10]  loss_scale: 32.0 (64.0)\n",
      "step,loss_scale,grad_norm\n1,64,1.5\n2,32,nan\n9,32,\n",
      "{'grad_norm': nan, 'epoch': 1}\n{'loss': '0', 'grad_norm': 'nan', 'global_step/max_steps': "
      "'25/100'}\n",
      "optimizer not run, scale_before: 64.0, scale_after: 32.0\nstep: 3, loss_scale: tensor(64.)\n",
      "| lg_loss_scale | 6.0 |\n| step | 1 |\n---\nFound NaN, decreased lg_loss_scale to 5.0\n| step | 2 |\n",
      "mmengine - INFO - Epoch(train)  [1][  50/29572]  grad_norm: inf  loss: 53.0\n",
      "12epoch:train:51-100batch: grad_norm=5.2, loss_scale=6.554e+04\n[epoch=1][batch=2/9]:\n\t grad_scale: "
      "64.0\n",
      "Train: [0/300][7/1251]\tgrad_norm 1.5 (1.6)\tloss_scale 64.0 (64.0)\nLoss is nan, stopping training\n",
      "{\n\"log_history\": [\n{\n\"grad_norm\": NaN,\n\"step\": 3\n}\n{\"_step\": 4, \"loss_scale\": 64}\n"};
}

/// Messages with their length in front, and whole files.
std::vector<std::string> event_file_seeds() {
  constexpr std::size_t head = 12, checksum = 4;
  std::vector<std::string> seeds{event_file_head()};
  for (const std::string& record :
       {scalar_record(1, "train/loss_scale", 64), tensor_record(2, "grad_norm", 2)}) {
    const std::string message = record.substr(head, record.size() - head - checksum);
    seeds.push_back(static_cast<char>(message.size()) + message);
    seeds.push_back(event_file_head() + record);
  }
  seeds.push_back(seeds[1] + seeds[3]);
  return seeds;
}

std::vector<std::string> catalogue_seeds() {
  const std::vector<MessagePair> messages{utf8_header,
                                          {"<b>%d</b> %(name)s {0}", "l'\xC3\xA9t\xC3\xA9 100%."},
                                          {std::string("cat\0cats", 8), std::string("chat\0chats", 10)},
                                          {"menu\4open", "ouvrir"}};
  return {mo_bytes({}), mo_bytes({utf8_header}), mo_bytes(messages), mo_bytes(messages, ByteOrder::big)};
}

const std::map<std::string, std::vector<std::string> (*)()> formats{{"npy", npy_seeds},
                                                                    {"npz", npz_seeds},
                                                                    {"safetensors", safetensors_seeds},
                                                                    {"quantized", quantized_seeds},
                                                                    {"torch", torch_seeds},
                                                                    {"gguf", gguf_seeds},
                                                                    {"records", records_seeds},
                                                                    {"skip_log", skip_log_seeds},
                                                                    {"event_file", event_file_seeds},
                                                                    {"catalogue", catalogue_seeds}};

}  // namespace
}  // namespace halfscope

int main(int count, char** words) {
  const auto format = count == 3 ? halfscope::formats.find(words[1]) : halfscope::formats.end();
  if (format == halfscope::formats.end()) {
    std::fputs(
        "usage: write_seeds npy|npz|safetensors|quantized|torch|gguf|records|skip_log|event_file|catalogue "
        "FOLDER\n",
        stderr);
    return 2;
  }
  const std::filesystem::path folder = words[2];
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : format->second()) {
    std::ofstream(folder / ("seed" + std::to_string(number++)), std::ios::binary) << seed;
  }
}
