// Parser of one entry: its parameters, its declarations and its instructions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/operand_parser.hpp"

namespace halfscope::ptx {

class EntryParser {
 public:
  /// `outside` has the shared arrays that the module declares.
  EntryParser(Cursor& cursor, const std::vector<Declaration>& outside);

  /// Takes an entry, from its name on.
  [[nodiscard]] Entry take();

 private:
  void take_parameters();
  void take_launch_bounds();
  void take_body();
  void take_statement();
  void take_directive();
  void take_pragma();
  void take_label();
  void take_instruction();
  void add_shared(const Declaration& declared);
  void add_local(const Declaration& declared);
  [[nodiscard]] Operand take_guard();
  [[nodiscard]] std::uint32_t find_opcode(std::string_view name,
                                          const std::vector<TextOperand>& operands) const;
  void add_values(Instruction& instruction, const TextOperand& operand, const Item& item);
  void finish();
  void resolve_labels();
  void place_dynamic_shared();
  void check_end() const;

  /// A place of the code that is completed at the end of the entry.
  struct Open {
    std::size_t instruction;
    std::size_t operand;
    std::string label;
  };

  Cursor& cursor_;
  Entry entry_;
  Names names_;
  std::map<std::string, std::uint32_t, std::less<>> labels_;
  std::vector<Open> branches_;
  std::vector<Open> dynamic_addresses_;
  std::size_t dynamic_alignment_ = 1;
};

}  // namespace halfscope::ptx
