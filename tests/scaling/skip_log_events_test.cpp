// Event files of TensorBoard as logs.
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/event_file.hpp"
#include "tests/support/log_lines.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::skip_log_events_test {
namespace {

SkipLog read(const std::string& bytes, const char* columns = "") {
  SkipLogReader reader(parse_log_columns(columns));
  reader.event_file(bytes, parse_log_columns(columns));
  return reader.finish();
}

TEST_CASE("scalars of an event file are steps", "[skip_log]") {
  for (auto* const write : {scalar_record, tensor_record}) {
    const std::string bytes = event_file_head() + write(1, "train/loss_scale", 64) +
                              write(1, "train/loss", 2.5f) + write(2, "train/loss_scale", 32) +
                              write(2, "train/loss", 2.5f);
    const SkipLog log = read(bytes);
    CHECK(log.format == "tensorboard");
    CHECK(text_of(log) == "1 finite at 64, 2 skipped at 64");
    CHECK(log.lines.first == 2);
    CHECK(log.lines.last == 4);
    check_says(log.notes.at(1), {"loss scale = train/loss_scale"});
  }
  const std::string other = event_file_head() + scalar_record(1, "s", 6) + scalar_record(2, "s", 5);
  CHECK(text_of(read(other, "loss_scale=s:log2")) == "1 finite at 64, 2 skipped at 64");
  check_says(message_of<InvalidArgument>([&] { (void)read(other); }),
             {"are 's'; say which", "--columns loss_scale=s"});
}

TEST_CASE("a restart writes a step of an event file again", "[skip_log]") {
  const std::string bytes = event_file_head() + scalar_record(1, "loss_scale", 64) +
                            scalar_record(2, "loss_scale", 32) + scalar_record(2, "loss_scale", 64);
  CHECK(text_of(read(bytes)) == "1 finite at 64, 2 finite at 64");
}

TEST_CASE("a second scale of an event file is named", "[skip_log]") {
  const std::string bytes = event_file_head() + scalar_record(1, "G/loss_scale", 64) +
                            scalar_record(1, "D/loss_scale", 8) + scalar_record(2, "G/loss_scale", 32);
  const SkipLog log = read(bytes);
  CHECK(text_of(log) == "1 finite at 64, 2 skipped at 64");
  check_says(log.notes.back(), {"'D/loss_scale'", "--columns"});
}

TEST_CASE("an event file that was cut is read up to its last whole record", "[skip_log]") {
  const std::string head = event_file_head() + scalar_record(1, "loss_scale", 64),
                    last = scalar_record(2, "loss_scale", 32);
  const std::string whole = verdict_of(read(head));
  for (std::size_t size = 1; size < last.size(); ++size) {
    const SkipLog log = read(head + last.substr(0, size));
    REQUIRE(verdict_of(log) == whole);
    check_says(log.notes.back(), {"ends within a record"});
  }
  CHECK(read(head + last).skipped == 1);
}

TEST_CASE("a byte of an event file that changed is named with its record", "[skip_log]") {
  const std::string whole = event_file_head() + scalar_record(1, "loss_scale", 64);
  for (std::size_t at = event_file_head().size(); at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    check_says(message_of<InvalidArgument>([&] { (void)read(bytes); }), {"record 2", "damaged"});
  }
}

}  // namespace
}  // namespace halfscope::skip_log_events_test
