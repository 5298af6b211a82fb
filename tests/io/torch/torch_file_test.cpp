// Checkpoints of PyTorch's: views, shared storages, nesting; and pickles that would run something.
#include <fmt/format.h>

#include <halfscope/io/tensor_file.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/read_tensors.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/torch_bytes.hpp"

namespace halfscope::torch_file_test {
namespace {

using namespace pickled;

const std::vector<float> six{0, 1, 2, 3, 4, 5};
const std::string numbers = bytes_of(six);
const std::string whole_tensor = tensor(storage("0", 6), 0, integer(6), integer(1));

std::vector<float> row_major(const TensorFile& file, std::size_t index = 0) {
  std::vector<float> values(static_cast<std::size_t>(file.tensors().at(index).elements));
  file.read_row_major(index, values);
  return values;
}

/// Both formats of a checkpoint whose root is `value`.
std::vector<std::unique_ptr<TensorFile>> opened(const TemporaryFolder& folder, const std::string& value) {
  std::vector<std::unique_ptr<TensorFile>> files;
  files.push_back(open_tensor_file(folder.put("m.pt", torch_zip_bytes(whole(value), numbers))));
  files.push_back(open_tensor_file(folder.put("l.bin", torch_legacy_bytes(whole(value), numbers, 6))));
  return files;
}

/// Message of the error from a checkpoint whose pickle, or whose storage, is wrong.
std::string refusal(const std::string& pickle, const std::string& storage = numbers) {
  const TemporaryFolder folder;
  const auto path = folder.put("m.pt", torch_zip_bytes(pickle, storage));
  std::string message = message_of<InvalidArgument>([&] { (void)open_tensor_file(path); });
  check_says(message, {path.string()});
  CHECK(message.size() < 500 + path.string().size());
  CHECK(message.find('\n') == std::string::npos);
  return message;
}

TEST_CASE("tensors are named by their way through the containers", "[torch_file]") {
  const TemporaryFolder folder;
  const std::string state = global("collections", "OrderedDict") + ")R(" + text("fc.weight") + whole_tensor +
                            text("epoch") + "K\x03u}(" + text("_metadata") + "}ub";  // BUILD of an attribute
  const std::string root =
      dict(text("model") + state + text("optimizer") + dict(integer(7) + whole_tensor) + text("list") + "](" +
           whole_tensor + tuple("N" + whole_tensor) + "e" + text("note") + text("none"));
  for (const auto& file : opened(folder, root)) {
    std::vector<std::string> names;
    for (const StoredTensor& tensor : file->tensors()) names.push_back(tensor.name);
    CHECK(names == std::vector<std::string>{"model.fc.weight", "optimizer.7", "list.0", "list.1.1"});
    for (std::size_t i = 0; i < names.size(); ++i) CHECK(elements_of(*file, i) == six);
  }
  for (const auto& file : opened(folder, whole_tensor))
    CHECK((file->tensors()[0].name == "m" || file->tensors()[0].name == "l"));
}

TEST_CASE("views are read by offset, size and strides", "[torch_file]") {
  const TemporaryFolder folder;
  const std::string base = storage("0", 6);
  const std::string two = integer(2), three = integer(3), one = integer(1), zero = integer(0);
  struct Case {
    std::string value;
    std::vector<float> expected;
  };
  const std::vector<Case> cases{
      {tensor(base, 1, three, two), {1, 3, 5}},                         // x[1::2]
      {tensor(base, 0, three + two, one + three), {0, 3, 1, 4, 2, 5}},  // x.view(2, 3).t()
      {tensor(base, 2, "", ""), {2}},                                   // no axis
      {tensor(base, 4, three + one, zero + integer(9)), {4, 4, 4}},     // expanded
      {tensor(base, 1, two + two, three + one), {1, 2, 4, 5}},          // x.view(2, 3)[:, 1:]
      {tensor(base, 1, two + two, one + three), {1, 4, 2, 5}},          // and transposed
      {tensor(base, 0, two + zero + two, one + one + one), {}},
      {tensor(base, 0, three + three, one + one), {0, 1, 2, 1, 2, 3, 2, 3, 4}},  // windows that overlap
  };
  for (const Case& test : cases) {
    for (const auto& file : opened(folder, test.value)) {
      INFO(fmt::format("{}", fmt::join(test.expected, " ")));
      CHECK(row_major(*file) == test.expected);
      std::vector<float> apart;  // in the file's order, element by element
      for (std::int64_t i = 0; i < file->tensors()[0].elements; ++i)
        apart.push_back(elements_of(*file, 0, i, 1).front());
      CHECK(apart == elements_of(*file));
    }
  }
}

TEST_CASE("a large view with gaps is what it is of the whole", "[torch_file]") {
  const TemporaryFolder folder;
  std::vector<float> values(300'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::string base = storage("0", 300'000);
  // Columns 1, 3, 5 of 3000 rows of 100; then the same transposed; then one column of 30 rows of 10,000.
  for (const auto& [size, strides, first] : std::vector<std::tuple<std::string, std::string, std::int64_t>>{
           {integer(3000) + integer(3), integer(100) + integer(2), 1},
           {integer(3) + integer(3000), integer(2) + integer(100), 1},
           {integer(30), integer(10'000), 9999}}) {
    const auto file = open_tensor_file(
        folder.put("v.pt", torch_zip_bytes(whole(tensor(base, first, size, strides)), bytes_of(values))));
    const std::vector<float> found = row_major(*file);
    const bool column = found.size() == 30, transposed = file->tensors()[0].shape[0] == 3;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t row = transposed ? i % 3000 : i / 3, part = transposed ? i / 3000 : i % 3;
      REQUIRE(found[i] == static_cast<float>(column ? 9999 + 10'000 * i : 1 + 100 * row + 2 * part));
    }
  }
}

TEST_CASE("types are those of the storage, or of the tensor where the storage has none", "[torch_file]") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& value, const std::string& bytes) {
    return open_tensor_file(folder.put("t.pt", torch_zip_bytes(whole(value), bytes)));
  };
  CHECK(elements_of(*read(tensor(storage("0", 1, "BFloat16Storage"), 0, "", ""), little_endian(0xC0A0, 2))) ==
        std::vector{-5.0f});
  CHECK(elements_of(*read(tensor(storage("0", 1, "HalfStorage"), 0, "", ""), little_endian(0x3E00, 2))) ==
        std::vector{1.5f});
  const std::string bytes2 = tuple(text("storage") + global("torch.storage", "UntypedStorage") + text("0") +
                                   text("cpu") + integer(2)) +
                             "Q";
  const auto typed = [&](const std::string& type) {
    return global("torch._utils", "_rebuild_tensor_v3") +
           tuple(bytes2 + integer(1) + tuple("") + tuple("") + "\x89N" + global("torch", type)) + "R";
  };
  CHECK(elements_of(*read(typed("float8_e5m2"), "\x3c\xc4")) == std::vector{-4.0f});
  CHECK(elements_of(*read(typed("float8_e4m3fn"), "\x3c\xc4")) == std::vector{-3.0f});
  for (const char* type : {"float8_e8m0fnu", "uint8"})
    CHECK(read(typed(type), "\x3c\xc4")->skipped().at(0).reason == fmt::format("dtype {}", type));
  CHECK(read(tensor(storage("0", 2, "LongStorage"), 0, "", ""), std::string(16, '\0'))
            ->skipped()
            .at(0)
            .reason == "dtype int64");
  const std::string parameter =
      global("torch._utils", "_rebuild_parameter") + tuple(whole_tensor + "\x88N") + "R";
  CHECK(elements_of(*read(parameter, numbers)) == six);
  const std::string subclass =
      global("torch._tensor", "_rebuild_from_type_v2") +
      tuple(global("torch._utils", "_rebuild_tensor_v2") + global("torch.nn.parameter", "Parameter") +
            tuple(storage("0", 6) + integer(0) + tuple(integer(6)) + tuple(integer(1)) + "\x89N") + "}") +
      "R";
  CHECK(elements_of(*read(subclass, numbers)) == six);
  const std::string sparse = global("torch._utils", "_rebuild_sparse_tensor") + ")R";
  CHECK(read(sparse, numbers)->skipped().at(0).reason == "of PyTorch's _rebuild_sparse_tensor");
}

TEST_CASE("storages of big-endian machines are read right", "[torch_file]") {
  const TemporaryFolder folder;
  const std::string value = whole(tensor(storage("0", 1), 0, "", ""));
  const auto path =
      folder.put("b.pt", zip_bytes({stored_part("b/data.pkl", value), stored_part("b/byteorder", "big"),
                                    stored_part("b/data/0", std::string("\x3f\xc0\0\0", 4))}));
  CHECK(elements_of(*open_tensor_file(path)) == std::vector{1.5f});
}

TEST_CASE("a pickle that would run something is refused by the name of it", "[torch_file]") {
  const std::string arguments = tuple(text("touch /tmp/halfscope-was-run"));
  check_says(refusal(whole(global("posix", "system") + arguments + "R")),
             {"\"posix.system\"", "nothing is imported or run"});
  check_says(refusal(whole(global("os", "system") + arguments + "R")), {"\"os.system\""});
  check_says(refusal(whole(global("builtins", "eval") + arguments + "R")), {"\"builtins.eval\""});
  check_says(refusal(whole(global("builtins", "getattr") + arguments + "R")), {"\"builtins.getattr\""});
  check_says(refusal(whole("\x8c\x05posix\x8c\x06system\x93")), {"\"posix.system\""});  // STACK_GLOBAL
  check_says(refusal(whole(global("torch._utils", "_rebuild_tensor_v2.__globals__") + ")R")),
             {"__globals__"});
  check_says(refusal(whole("(" + text("x") + "iposix\nsystem\n")), {"INST"});
  check_says(refusal(whole("(" + text("x") + "o")), {"OBJ"});
  check_says(refusal(whole("\x82\x01")), {"EXT1"});
  check_says(refusal(whole("Pstorage\n")), {"PERSID"});
  check_says(refusal(whole(text("x") + ")R")), {"calls what is no function"});
  check_says(refusal(whole(global("torch", "float16") + ")R")), {"calls float16"});
  check_says(refusal(whole("N}b")), {"sets the state"});
  check_says(refusal(whole("N)R")), {"calls what is no function"});
  check_says(refusal(whole(tuple(text("module") + "NNNN") + "Q")), {"no storage of PyTorch's"});
  check_says(refusal(whole(global("importlib.util", "find_spec") + ")R")), {"\"importlib.util.find_spec\""});
}

TEST_CASE("objects of other classes stay closed, whatever is done to them", "[torch_file]") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& value) {
    return open_tensor_file(folder.put("t.pt", torch_zip_bytes(whole(value), numbers)));
  };
  const std::string made = global("argparse", "Namespace") + ")\x81";
  const std::vector<std::string> objects{
      global("argparse", "Namespace"),                                // the class alone
      made,                                                           // NEWOBJ
      made + "}b",                                                    // and its state
      global("pathlib", "PosixPath") + tuple(text("a")) + "R",        // REDUCE
      global("fractions", "Fraction") + ")}\x92",                     // NEWOBJ_EX
      global("my.module", "Dict") + ")R" + text("k") + "Ns",          // SETITEM
      global("my.module", "Dict") + ")R(" + text("k") + "Nu",         // SETITEMS
      global("my.module", "List") + ")RNa",                           // APPEND
      global("my.module", "List") + ")R(NNe",                         // APPENDS
      global("my.module", "Set") + ")R(NN\x90",                       // ADDITEMS
      global("my.module", "Other") + tuple(whole_tensor) + "R",       // a tensor within
      global("my.module", "maker") + ")R" + tuple(integer(1)) + "R",  // the result called again
      global(std::string(5000, 'm'), "x"),
  };
  for (const std::string& object : objects) {
    INFO(object);
    const auto file = read("}(" + text("w") + whole_tensor + text("args") + object + "u");
    CHECK(elements_of(*file) == six);
    REQUIRE(file->skipped().size() == 1);
    CHECK(file->skipped()[0].name == "args");
    check_says(file->skipped()[0].reason, {"an object of ", "stays closed"});
  }
  const auto alone = read(made);
  CHECK(alone->tensors().empty());
  check_says(alone->skipped().at(0).reason, {"argparse.Namespace"});
}

TEST_CASE("pickles that break their format are refused", "[torch_file]") {
  for (const char* pickle : {"",
                             "\x80",
                             "\x80\x02",
                             "\x80\x02.",
                             "\x80\x09.",
                             "t.",
                             "0.",
                             "h\x01.",
                             "a.",
                             "]Na",
                             "}NNs",
                             "N(0.",
                             "(NNNu.",
                             "}(Nu.",
                             "\xff.",
                             "X\xff\xff\xff\xff.",
                             "\x8e\xff\xff\xff\xff\xff\xff\xff\xff.",
                             "\x8b\xff\xff\xff\xff.",
                             "cnoline",
                             "N\x85\x87."}) {
    INFO(pickle);
    check_says(refusal(pickle), {"byte ", "of its pickle"});
  }
}

TEST_CASE("numbers that do not belong together are refused", "[torch_file]") {
  const auto refused = [](const std::string& value) { return refusal(whole(value)); };
  const std::string base = storage("0", 6), huge = integer(std::int64_t{1} << 60);
  check_says(refused(tensor(base, 0, integer(7), integer(1))), {"element 6 of a storage of 6"});
  check_says(refused(tensor(base, 6, "", "")), {"element 6 of a storage of 6"});
  check_says(refused(tensor(base, 0, integer(2), huge)), {"of a storage of 6"});
  check_says(refused(tensor(base, 0, huge, integer(0))), {"repeats", "1152921504606846976"});
  check_says(refused(tensor(base, 0, huge + huge, integer(0) + integer(0))), {"more elements than memory"});
  check_says(refused(tensor(base, 0, huge, huge)), {"more elements than memory"});
  check_says(refused(tensor(base, -1, "", "")), {"do not belong together"});
  check_says(refused(tensor(base, 0, integer(1), "")), {"do not belong together"});
  check_says(refused(tensor(base, 0, integer(-1), integer(1))), {"negative"});
  check_says(refused(tensor(base, 0, text("6"), integer(1))), {"expected a whole number"});
  check_says(refused(tensor(storage("0", 5), 0, "", "")), {"24 bytes in the archive, 20 in the pickle"});
  check_says(refused(tensor(storage("0", -1), 0, "", "")), {"less than no elements"});
  check_says(refused(tensor(storage("0", std::int64_t{1} << 62), 0, "", "")), {"more elements than memory"});
  check_says(refused(tensor(storage("../0", 6), 0, "", "")), {"\"../0\"", "the archive lacks"});
  check_says(refused(tensor("N", 0, "", "")), {"without a storage"});
  std::string many;
  for (int i = 0; i < 65; ++i) many += integer(1);
  check_says(refused(tensor(base, 0, many, many)), {"more than 64 axes"});
  const TemporaryFolder folder;
  const std::string pickle = whole(whole_tensor);
  const auto legacy = [&](const std::string& bytes) {
    return message_of<InvalidArgument>([&] { (void)open_tensor_file(folder.put("l.pt", bytes)); });
  };
  check_says(legacy(torch_legacy_bytes(pickle, numbers, 5)), {"5 elements", "24 bytes"});
  check_says(legacy(torch_legacy_bytes(pickle, numbers.substr(4), 6)), {"truncated", "24 bytes"});
}

TEST_CASE("containers that contain themselves or each other many times end", "[torch_file]") {
  check_says(refusal(whole("]q\x01h\x01"
                           "a")),
             {"nested deeper than 64"});
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "](";
  for (int i = 0; i < 1000; ++i) deep += "e";
  check_says(refusal(whole(deep)), {"nested deeper than 64"});
  std::string laughs = "](" + whole_tensor + "eq";
  laughs += '\0';
  for (char i = 1; i < 40; ++i)  // each has ten times the one before it
    for (const char* part : {"](", "hhhhhhhhhh", "e"}) {
      for (const char* c = part; *c != '\0'; ++c)
        laughs += *c == 'h' ? std::string("h") + static_cast<char>(i - 1) : std::string(1, *c);
      if (*part == 'e') laughs += std::string("q") + i;
    }
  check_says(refusal(whole(laughs)), {"more than"});
  // A list of a million pairs, made to a dictionary again and again.
  std::string pairs = "](";
  for (int i = 0; i < 1'000'000; ++i) pairs += i == 0 ? "NN\x86q\x01" : "h\x01";
  pairs += "eq\x02";
  for (int i = 0; i < 10; ++i) pairs += global("collections", "OrderedDict") + "h\x02\x85R";
  check_says(refusal(whole(pairs)), {"more than 4194304 values"});
}

}  // namespace
}  // namespace halfscope::torch_file_test
