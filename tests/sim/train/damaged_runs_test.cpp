// Files of a run that something else has changed: damage is found at the next use, and older runs go on.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/train/checkpoint_file.hpp"
#include "tests/sim/small_runs.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::damaged_runs_test {
namespace {

namespace fs = std::filesystem;

/// The message of resuming a run killed at step 8 whose file was changed by `break_it`; nothing else changes.
template <typename Break>
std::string refusal_after(Break&& break_it) {
  const SmallRun run;
  run.kill_at(8);
  break_it(run);
  const Records before = records_of(run.folder);
  const std::string message = message_of<InvalidArgument>([&] { run.train(); });
  CHECK(records_of(run.folder) == before);
  check_says(message, {run.folder.path().string()});
  return message;
}

TEST_CASE("numbers in a checkpoint that cannot be are refused with the folder's name", "[run]") {
  for (const char* key : {"step", "optimizer_steps", "scaler_scale", "scaler_good_steps", "metrics_bytes",
                          "histograms_bytes", "metrics_crc32", "histograms_crc32"}) {
    for (const char* value : {"nan", "-1", "1e300", "inf", "", "7x", " 7", "1e400"}) {
      INFO(key << " = " << value);
      const std::string message = refusal_after([&](const SmallRun& run) {
        SafetensorsFile checkpoint = read_safetensors(run / checkpoint_file);
        REQUIRE(checkpoint.metadata.contains(key));
        checkpoint.metadata[key] = value;
        write_checkpoint(run / checkpoint_file, std::move(checkpoint));
      });
      check_says(message, {key, fmt::format("'{}'", value), "expected a", "remove the run's folder"});
    }
  }
  for (const char* key : {"step", "optimizer_steps", "metrics_bytes"}) {
    const std::string message = refusal_after([&](const SmallRun& run) {
      SafetensorsFile checkpoint = read_safetensors(run / checkpoint_file);
      checkpoint.metadata.erase(key);
      write_checkpoint(run / checkpoint_file, std::move(checkpoint));
    });
    check_says(message, {"lacks", key});
  }
}

TEST_CASE("records with other bytes than the checkpoint's are refused", "[run]") {
  for (const char* file : {"metrics.jsonl", "histograms.jsonl"}) {
    INFO(file);
    check_says(refusal_after([&](const SmallRun& run) {
                 std::string text = read_file(run / file);
                 text[text.size() / 2] = text[text.size() / 2] == '1' ? '2' : '1';
                 write_file(run / file, text);
               }),
               {file});
    check_says(refusal_after([&](const SmallRun& run) {
                 const std::string text = read_file(run / file);
                 write_file(run / file, text.substr(0, text.size() - 1));
               }),
               {file, "shorter", "remove the run's folder"});
  }
}

TEST_CASE("a checkpoint with other contents than the run's is refused", "[run]") {
  check_says(refusal_after([&](const SmallRun& run) {
               std::string bytes = read_file(run / checkpoint_file);
               bytes.replace(bytes.size() * 3 / 5, 4, "abcd");
               write_file(run / checkpoint_file, bytes);
             }),
             {checkpoint_file, "damaged", "checksum", "remove the run's folder"});
  for (const std::size_t left : {0u, 1u, 100u, 5000u}) {
    INFO(left << " bytes left");
    check_says(refusal_after([&](const SmallRun& run) {
                 write_file(run / checkpoint_file, read_file(run / checkpoint_file).substr(0, left));
               }),
               {checkpoint_file, "remove the run's folder"});
  }
}

/// Whether `checkpoint` can be read as what `expected` holds; empty where it is refused.
std::optional<bool> is_read_as(const fs::path& checkpoint, const SafetensorsFile& expected) {
  try {
    const SafetensorsFile read = read_checkpoint(checkpoint);
    const auto same = [](const NamedArray& a, const NamedArray& b) {
      return a.name == b.name && a.array.shape() == b.array.shape() &&
             std::ranges::equal(a.array.values(), b.array.values());
    };
    return std::ranges::equal(read.tensors, expected.tensors, same);
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

TEST_CASE("four changed bytes anywhere in a checkpoint never become other weights", "[run]") {
  const TemporaryFolder folder;
  const SmallRun run;
  run.kill_at(8);
  const std::string whole = read_file(run / checkpoint_file);
  const SafetensorsFile expected = read_checkpoint(run / checkpoint_file);
  const std::size_t header =
      8 + whole.find("{\"__metadata__\"") + whole.find("}", whole.rfind("data_offsets"));
  int refused = 0, tried = 0;
  for (std::size_t at = 0; at + 4 <= whole.size(); at += at < header ? 7 : whole.size() / 97) {
    INFO("bytes from " << at);
    std::string bytes = whole;
    for (std::size_t i = at; i < at + 4; ++i) bytes[i] = static_cast<char>(bytes[i] ^ 1);
    write_file(folder / "changed", bytes);
    const std::optional<bool> same = is_read_as(folder / "changed", expected);
    CHECK(same.value_or(true));
    refused += same ? 0 : 1;
    ++tried;
  }
  INFO(fmt::format("{} of {} refused", refused, tried));
  CHECK(refused > tried * 9 / 10);  // the others change the name of the checksum, or padding
}

TEST_CASE("a checkpoint without checksums is continued", "[run]") {
  const SmallRun whole, run;
  whole.train();
  run.kill_at(8);
  SafetensorsFile checkpoint = read_safetensors(run / checkpoint_file);
  for (const char* key : {"metrics_crc32", "histograms_crc32", "checkpoint_crc32"})
    CHECK(checkpoint.metadata.erase(key) == 1);
  write_safetensors(run / checkpoint_file, checkpoint);
  run.train();
  CHECK(records_of(run.folder) == records_of(whole.folder));
}

constexpr const char* record_names[] = {"metrics.jsonl", "histograms.jsonl"};

TEST_CASE("records that another changes end the run that writes them", "[run]") {
  struct Change {
    void (*make)(const fs::path& path);
    const char* remedy;
  };
  const char* const lost = "remove the run's folder and start again";
  const Change changes[] = {
      {[](const fs::path& path) { fs::remove(path); }, lost},
      {[](const fs::path& path) { write_file(path, ""); }, lost},
      {[](const fs::path& path) { write_file(path, read_file(path) + "{}\n"); }, "add --resume"}};
  for (const char* name : record_names) {
    for (const Change& change : changes) {
      INFO(name << ", change " << &change - changes);
      const SmallRun run;
      const std::string message = message_of<RuntimeFailure>([&] {
        run.train([&](const StepRecord& record) {
          if (record.step == 9) change.make(run / name);
        });
      });
      check_says(message, {name, "the run has written", change.remedy});
      check_says(run.status(), {"FAILED: ", name});
      CHECK_FALSE(fs::exists(run / "summary.json"));
    }
  }
}

TEST_CASE("a run replaces no file that a link in its folder leads to", "[run]") {
  for (const std::string name :
       {"metrics.jsonl", "histograms.jsonl", "status", "environment.json", "summary.json", checkpoint_file}) {
    INFO(name);
    const SmallRun run;
    fs::create_directories((run / name.c_str()).parent_path());
    const fs::path outside = run.temporary.path() / "outside";
    write_file(outside, "somebody's");
    fs::create_symlink(outside, run / name.c_str());
    check_says(message_of<InvalidArgument>([&] { run.train(); }),
               {name, "a link to a file", "a copy of the file"});
    CHECK(read_file(outside) == "somebody's");
  }
  const SmallRun run;
  fs::create_directories(run.temporary.path() / "disk");
  fs::create_directories(run.folder.path());
  fs::create_directory_symlink(run.temporary.path() / "disk", run / "checkpoint");
  CHECK(run.train() == RunEnd::done);
  CHECK(fs::exists(run.temporary.path() / "disk/state.safetensors"));
}

TEST_CASE("a run whose records were overwritten in their place is not done", "[run]") {
  for (const char* name : record_names) {
    INFO(name);
    const SmallRun run;
    const std::string message = message_of<InvalidArgument>([&] {
      run.train([&](const StepRecord& record) {
        if (record.step == 9) write_file(run / name, std::string(fs::file_size(run / name), '\n'));
      });
    });
    check_says(message, {name, "not those that the run wrote", "remove the run's folder"});
    CHECK_FALSE(run.folder.is_done());
  }
}

TEST_CASE("a run that the first revisions have finished is left in peace", "[run]") {
  const SmallRun run;
  run.train();
  SafetensorsFile checkpoint = read_safetensors(run / checkpoint_file);
  checkpoint.metadata = {{"step", checkpoint.metadata.at("step")}};
  write_safetensors(run / checkpoint_file, checkpoint);
  run.folder.check_files();
}

TEST_CASE("the files of a run that is done are known to be what it wrote", "[run]") {
  for (const char* name : {"metrics.jsonl", "histograms.jsonl", checkpoint_file}) {
    INFO(name);
    const SmallRun run;
    run.train();
    run.folder.check_files();
    const std::string whole = read_file(run / name);
    std::string changed = whole;
    changed[changed.size() - 3] ^= 1;
    for (const std::string& text :
         {changed, whole.substr(0, whole.size() - 1), std::string(), whole + "{}\n"}) {
      write_file(run / name, text);
      check_says(message_of<InvalidArgument>([&] { run.folder.check_files(); }),
                 {name, "remove the run's folder " + run.folder.path().string()});
      CHECK(run.status() == "DONE\n");
    }
    write_file(run / name, whole);
    run.folder.check_files();
    fs::remove(run / name);
    if (name == checkpoint_file) {
      run.folder.check_files();  // somebody needed the room; there is nothing to compare with
    } else {
      check_says(message_of<InvalidArgument>([&] { run.folder.check_files(); }), {name, "remove the run's"});
    }
  }
}

}  // namespace
}  // namespace halfscope::damaged_runs_test
