// Parser of a module: its head, its shared arrays, its entries.
#include "tests/ptx/module.hpp"

#include <fmt/format.h>

#include "tests/ptx/entry_parser.hpp"

namespace halfscope::ptx {
namespace {

class ModuleParser {
 public:
  explicit ModuleParser(std::string_view text) : cursor_(text) {}

  Module take() {
    while (!cursor_.at_end()) take_directive();
    if (module_.target == 0) cursor_.fail("the text names no .target");
    return std::move(module_);
  }

 private:
  void take_directive() {
    if (cursor_.accept(".version")) {
      module_.version = cursor_.take().text;
    } else if (cursor_.accept(".target")) {
      take_target();
    } else if (cursor_.accept(".address_size")) {
      if (cursor_.take_number("a number of bits") != 64) cursor_.fail("addresses have 64 bits");
    } else if (cursor_.at(".extern") || cursor_.at(".shared")) {
      take_shared();
    } else {
      take_entry();
    }
  }

  void take_target() {
    const std::string_view target = cursor_.take_word("a target");
    if (target != "sm_75" && target != "sm_80" && target != "sm_90" && target != "sm_90a") {
      cursor_.fail(fmt::format("target '{}' is not known: sm_75, sm_80, sm_90 are", target));
    }
    module_.target = (target[3] - '0') * 10 + (target[4] - '0');
  }

  void take_shared() {
    (void)cursor_.accept(".extern");
    cursor_.expect(".shared");
    shared_.push_back(take_declaration(cursor_));
    cursor_.expect(";");
  }

  void take_entry() {
    if (!cursor_.accept(".visible")) (void)cursor_.accept(".weak");
    if (!cursor_.accept(".entry"))
      fail_at(cursor_.line(), fmt::format("directive '{}' is not known", cursor_.peek().text));
    module_.entries.push_back(EntryParser(cursor_, shared_).take());
  }

  Cursor cursor_;
  Module module_;
  std::vector<Declaration> shared_;
};

}  // namespace

const Entry& Module::entry(std::string_view name) const {
  std::string others;
  for (const Entry& entry : entries) {
    if (entry.name == name) return entry;
    others += (others.empty() ? "" : ", ") + entry.name;
  }
  throw InvalidArgument(fmt::format("no entry is called '{}'; there are: {}", name, others));
}

Module parse(std::string_view text) {
  return ModuleParser(text).take();
}

}  // namespace halfscope::ptx
