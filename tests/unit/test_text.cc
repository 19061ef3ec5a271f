// Numbers, memory sizes and signals in the forms that people write.
#include <doctest/doctest.h>

#include "common/codec/texts.h"
#include "common/proto/history.h"
#include "common/proto/job_text.h"
#include "common/text/printable.h"
#include "common/text/text.h"

using namespace gantry;

TEST_CASE("whole numbers are read within their bounds") {
  CHECK(parse_integer("nodes", "10", 1, 10) == 10);
  CHECK(parse_integer("nice", "-5", -10, 10) == -5);
  for (const char* bad : {"", "0", "11", "1x", " 1", "+1", "1.0", "99999999999999999999"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_integer("nodes", bad, 1, 10).has_value());
  }
  CHECK(parse_integer("nodes", "x", 1, 10).error().message ==
        "nodes must be a whole number from 1 to 10, not \"x\"");
}

TEST_CASE("memory is in MB without a suffix, and takes K, M, G and T in any spelling") {
  constexpr std::int64_t kMega = 1 << 20;
  CHECK(parse_memory("64") == 64 * kMega);
  CHECK(parse_memory("0") == 0);
  for (const char* text :
       {"4g", "4G", "4GB", "4gb", "4GiB", "4096", "4096M", "4096mb", "4194304K"}) {
    CAPTURE(text);
    CHECK(parse_memory(text) == 4096 * kMega);
  }
  CHECK(parse_memory("1T") == kMega * kMega);
  for (const char* bad : {"", "G", "-1", "1.5G", "4X", "4GX", "4 G", "4B", "4GiBB", "2000000T",
                          "99999999999999999999", "9223372036854775807T"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_memory(bad).has_value());
  }
}

TEST_CASE("memory is written in the largest exact unit") {
  CHECK(format_memory(0) == "0");
  CHECK(format_memory(std::int64_t{8} << 30) == "8G");
  CHECK(format_memory(1536 << 20) == "1536M");
  CHECK(format_memory(1000 << 10) == "1000K");
  CHECK(format_memory(123) == "123B");
}

TEST_CASE("memory is shown rounded to people") {
  CHECK(format_memory_rounded(0) == "0");
  CHECK(format_memory_rounded(900) == "900B");
  CHECK(format_memory_rounded(512 << 10) == "512K");
  CHECK(format_memory_rounded(64 << 20) == "64.0M");
  CHECK(format_memory_rounded((std::int64_t{15} << 30) / 2) == "7.50G");
  CHECK(format_memory_rounded(std::int64_t{1} << 40) == "1.00T");
}

TEST_CASE("signals are read by name and by number") {
  for (const char* text : {"TERM", "SIGTERM", "sigterm", "term", "15"}) {
    CAPTURE(text);
    CHECK(parse_signal(text) == 15);
  }
  CHECK(parse_signal("USR2") == 12);
  CHECK(parse_signal("RTMIN") == 34);
  CHECK(parse_signal("SIGRTMIN+30") == 64);
  for (const char* bad :
       {"", "0", "65", "-9", "SIG", "TERMINATE", "RTMIN+31", "RTMIN-1", "RTMIN+"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_signal(bad).has_value());
  }
  for (std::int32_t signal = 1; signal <= 64; ++signal)
    if (signal != 32 && signal != 33) CHECK(parse_signal(signal_name(signal)) == signal);
  CHECK(signal_name(9) == "SIGKILL");
  CHECK(signal_name(70) == "signal 70");
}

TEST_CASE("the value of --signal is read with its scope and time") {
  CHECK(parse_warn_signal("USR2@90") == WarnSignal{12, seconds(90), false});
  CHECK(parse_warn_signal("B:USR2@30") == WarnSignal{12, seconds(30), true});
  CHECK(parse_warn_signal("10") == WarnSignal{10, seconds(60), false});
  for (const char* bad : {"", "@5", "R:USR1", "USR1@", "USR1@-1", "USR1@65536", "USR1@x", "B:"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_warn_signal(bad).has_value());
  }
}

TEST_CASE("bytes that only their writer reads do not count as texts of a message") {
  proto::HistoryReply reply;
  reply.position = Bytes("\0\xff", 2);
  reply.currency = "EUR";
  reply.rows.resize(1);
  reply.rows[0].usage.gpus.resize(1);
  reply.rows[0].usage.gpus[0].data = "\x1b";
  std::size_t texts = 0;
  codec::each_text(reply, [&](std::string_view field, const std::string& text) {
    CHECK(field != "position");
    CHECK(is_printable(text));
    ++texts;
  });
  CHECK(texts > 1);
}
