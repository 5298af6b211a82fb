// TensorBoard's event files: records with a length, each a message of protocol buffers.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <halfscope/core/error.hpp>
#include <halfscope/core/escape.hpp>
#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_record.hpp>

namespace halfscope {
namespace {

/// The first bytes as a number, the lowest first; there are enough.
template <typename Number>
Number little_endian_number(std::string_view bytes) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    number |= static_cast<Number>(static_cast<Number>(static_cast<unsigned char>(bytes[i])) << (8 * i));
  return number;
}

/// A field of a message: `number` where it is a number, `bytes` where it has a length.
struct MessageField {
  std::uint64_t key = 0, number = 0;
  std::string_view bytes{};
};

/// The fields of a message; a damaged one ends it.
class Message {
 public:
  explicit Message(std::string_view bytes) : bytes_(bytes) {}

  std::optional<MessageField> next() {
    const auto tag = varint();
    if (!tag) return std::nullopt;
    MessageField field{.key = *tag >> 3};
    switch (*tag & 7) {
      case 0:
        return take_varint(field);
      case 1:
        return take_fixed(field, sizeof(std::uint64_t));
      case 2:
        return take_bytes(field);
      case 5:
        return take_fixed(field, sizeof(std::uint32_t));
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t number = 0;
    for (int shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      number |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return number;
    }
    return std::nullopt;
  }
  std::optional<MessageField> take_varint(MessageField field) {
    const auto number = varint();
    if (!number) return std::nullopt;
    field.number = *number;
    return field;
  }
  std::optional<MessageField> take_fixed(MessageField field, std::size_t size) {
    if (bytes_.size() < size) return std::nullopt;
    field.number = size == sizeof(std::uint64_t) ? little_endian_number<std::uint64_t>(bytes_)
                                                 : little_endian_number<std::uint32_t>(bytes_);
    field.bytes = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return field;
  }
  std::optional<MessageField> take_bytes(MessageField field) {
    const auto size = varint();
    if (!size || *size > bytes_.size()) return std::nullopt;
    field.bytes = bytes_.substr(0, static_cast<std::size_t>(*size));
    bytes_.remove_prefix(field.bytes.size());
    return field;
  }

  std::string_view bytes_;
};

double float_of(std::string_view bytes) {
  return static_cast<double>(std::bit_cast<float>(little_endian_number<std::uint32_t>(bytes)));
}

/// A scalar in a TensorProto: float_val, double_val, or one number of tensor_content.
std::optional<double> tensor_scalar(std::string_view bytes) {
  constexpr std::uint64_t float_type = 1, double_type = 2;
  std::uint64_t type = 0;
  std::string_view content;
  Message message(bytes);
  while (const auto field = message.next()) {
    if (field->key == 1) type = field->number;
    if (field->key == 4 || field->key == 5 || field->key == 6) content = field->bytes;
  }
  if (type == float_type && content.size() == sizeof(float)) return float_of(content);
  if (type == double_type && content.size() == sizeof(double))
    return std::bit_cast<double>(little_endian_number<std::uint64_t>(content));
  return std::nullopt;
}

class EventLog {
 public:
  explicit EventLog(const LogColumns& columns) : names_(columns) {}

  void event(std::string_view bytes, std::int64_t number) {
    std::int64_t step = 0;
    std::string_view summary;
    Message message(bytes);
    while (const auto field = message.next()) {
      if (field->key == 2) step = static_cast<std::int64_t>(field->number);
      if (field->key == 5) summary = field->bytes;
    }
    Message values(summary);
    while (const auto field = values.next()) {
      if (field->key == 1) value(field->bytes, step, number);
    }
  }

  void hand_over(const SkipLogSink& sink) {
    LogRecordSteps steps("tensorboard");
    for (const auto& [step, record] : records_) steps.hand_over(record, sink);
    if (records_.empty() && !others_.empty()) name_others(sink);
  }

 private:
  void value(std::string_view bytes, std::int64_t step, std::int64_t number) {
    std::string_view tag;
    std::optional<double> scalar;
    Message message(bytes);
    while (const auto field = message.next()) {
      if (field->key == 1) tag = field->bytes;
      if (field->key == 2 && field->bytes.size() == sizeof(float)) scalar = float_of(field->bytes);
      if (field->key == 8) scalar = tensor_scalar(field->bytes);
    }
    const LogRole role = names_.role_of(tag);
    if (!scalar) return;
    if (role == LogRole::none || role <= LogRole::epoch) {
      if (others_.size() < most_named) others_.emplace(tag);
      return;
    }
    LogRecord& record = records_[step];
    if (record.line == 0) record.line = number;
    record.take({LogRole::global_step, "step", static_cast<double>(step)});
    auto& place = record.fields[static_cast<std::size_t>(role)];
    if (!place || place->name == tag) {  // a restart writes a step again
      place = LogField{role, tag, *scalar};
    } else {
      record.take({role, tag, *scalar});
    }
  }

  static constexpr std::size_t most_named = 5;

  void name_others(const SkipLogSink& sink) const {
    if (!sink.reject) return;
    std::string names;
    for (const std::string& name : others_)
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", escaped(name));
    sink.reject(
        fmt::format("the names of its scalars are {}{}; say which is the loss scale: --columns loss_scale={}",
                    names, others_.size() < most_named ? "" : " and others", escaped(*others_.begin())));
  }

  LogNames names_;
  std::set<std::string, std::less<>> others_;  ///< some names that stand for nothing known
  std::map<std::int64_t, LogRecord> records_;  ///< by step: each scalar of a step is a record of its own
};

/// CRC-32C (RFC 3720, B.4) by the bits of a byte, turned and shifted as event files have it.
std::uint32_t masked_checksum(std::string_view bytes) {
  constexpr std::uint32_t polynomial = 0x82f63b78u, shift = 0xa282ead8u;
  static const auto table = [] {
    std::array<std::uint32_t, 256> remainders{};
    for (std::uint32_t byte = 0; byte < remainders.size(); ++byte) {
      std::uint32_t rest = byte;
      for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? polynomial : 0);
      remainders[byte] = rest;
    }
    return remainders;
  }();
  std::uint32_t rest = ~0u;
  for (const char c : bytes) rest = (rest >> 8) ^ table[(rest ^ static_cast<unsigned char>(c)) & 0xff];
  return std::rotr(~rest, 15) + shift;
}

/// The checksum stands at the front of what follows the bytes.
void require_checksum(std::string_view bytes, std::string_view behind, std::int64_t number) {
  if (masked_checksum(bytes) == little_endian_number<std::uint32_t>(behind)) return;
  throw InvalidArgument(fmt::format(
      "record {} of the event file is damaged: its checksum is another; copy the file again", number));
}

}  // namespace

/// A record is its length, a checksum of that, the message, and a checksum of it.
LineEnd read_tensorboard(std::string_view bytes, const LogColumns& columns, const SkipLogSink& sink) {
  constexpr std::size_t length = sizeof(std::uint64_t), checksum = sizeof(std::uint32_t),
                        head = length + checksum;
  EventLog log(columns);
  LineEnd end = LineEnd::whole;
  for (std::int64_t number = 1; !bytes.empty(); ++number) {
    if (bytes.size() >= head) require_checksum(bytes.substr(0, length), bytes.substr(length), number);
    const std::uint64_t size = bytes.size() < head ? 0 : little_endian_number<std::uint64_t>(bytes);
    if (bytes.size() < head + checksum || size > bytes.size() - head - checksum) {
      end = LineEnd::cut;
      break;
    }
    const std::string_view message = bytes.substr(head, static_cast<std::size_t>(size));
    bytes.remove_prefix(head + message.size());
    require_checksum(message, bytes, number);
    bytes.remove_prefix(checksum);
    log.event(message, number);
  }
  log.hand_over(sink);
  return end;
}

}  // namespace halfscope
