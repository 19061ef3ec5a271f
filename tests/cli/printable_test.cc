// Tests texts that were stored before texts were checked, or that come from another controller: no
// listing brings such bytes to a terminal unchanged, and JSON with them can be parsed.
#include <doctest/doctest.h>

#include <random>

#include "cli/bill/focus.h"
#include "cli/session.h"
#include "cli/slurm/json.h"
#include "cli/table.h"
#include "common/codec/json_io.h"
#include "common/codec/texts.h"
#include "common/text/printable.h"

using namespace gantry;
using namespace gantry::cli;

namespace {

std::string bytes(std::mt19937& random) {
  std::string out;
  for (std::size_t i = random() % 24; i > 0; --i) out += static_cast<char>(random() % 256);
  return out;
}

std::string all_of(std::FILE* file) {
  std::string out(static_cast<std::size_t>(std::ftell(file)), 0);
  std::rewind(file);
  REQUIRE(std::fread(out.data(), 1, out.size(), file) == out.size());
  std::fclose(file);
  return out;
}

}  // namespace

TEST_CASE("printable() replaces control characters and malformed UTF-8") {
  CHECK(is_printable("Grüße, 世界 🙂"));
  CHECK(printable("a\x1b[31m\xff"
                  "b\n") ==
        "a?[31m\xef\xbf\xbd"
        "b?");
  CHECK(printable("a\n\tb\r", Lines::many) == "a\n\tb?");
  CHECK(printable("\xc2\x9b"
                  "2J \xe2\x80\xae"
                  "abc \xe2\x80\xa8") == "?2J ?abc ?");
  CHECK(printable(std::string_view("\0", 1)) == "?");
  // a surrogate is not allowed in UTF-8
  CHECK(printable("\xed\xa0\x80") == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(find_unprintable("ab\x7f") == 2);
  std::string json;
  append_json_string(json, "a\"\\\n\x1b\xc2\x9b\xff\xe2\x80\xae");
  CHECK(json == "\"a\\\"\\\\\\n\\u001b\\u009b\xef\xbf\xbd\\u202e\"");
}

TEST_CASE(
    "JSON of our commands and Slurm's parses and is printable, whatever bytes the texts have") {
  std::mt19937 random(4);
  for (int i = 0; i < 2000; ++i) {
    const std::string value = bytes(random), key = bytes(random);
    codec::JsonWriter w(i % 2 == 0 ? codec::JsonStyle::pretty : codec::JsonStyle::compact);
    w.begin_object();
    w.key("k" + key);
    w.begin_array();
    w.string(value);
    w.sint(-1);
    w.string(value);
    w.end_array();
    w.key("l");
    w.string(value);
    w.end_object();
    const std::string ours = w.take();
    const std::string theirs = slurm::Tree::object().add("k" + key, value).json();
    for (const std::string& text : {ours, theirs}) {
      CHECK(is_printable(text, Lines::many));
      const auto parsed = codec::JsonDocument::parse(text);
      REQUIRE_MESSAGE(parsed.has_value(), text);
      CHECK(parsed->root().is_object());
    }
    CHECK(is_printable(slurm::Tree::object().add("k" + key, value).yaml(), Lines::many));
  }
}

TEST_CASE("tables, records and CSV are printable, whatever bytes the texts have") {
  std::mt19937 random(5);
  static constexpr Column<std::string> kColumns[] = {
      {'t', "text", "TEXT", [](std::string& out, const std::string& t) { out += t; }}};
  for (int i = 0; i < 500; ++i) {
    const std::string value = bytes(random);
    std::FILE* file = std::tmpfile();
    {
      const auto layout =
          parse_format(i % 2 == 0 ? "%t %.4t" : "%t", infos<std::string>(kColumns), i % 2 == 1);
      REQUIRE(layout.has_value());
      TableWriter table(*layout, {}, file);
      add_row<std::string>(table, kColumns, value);
    }
    RecordWriter record(false, file);
    record.field("Name", value);
    record.record();
    CHECK(is_printable(all_of(file), Lines::many));
    CHECK(is_printable(csv_cell(value)));
  }
  CHECK(csv_cell("=cmd|' /C calc'!A0") == "'=cmd|' /C calc'!A0");
  CHECK(csv_cell("@a,b") == "\"'@a,b\"");
  CHECK(csv_cell("-3.20") == "-3.20");
  CHECK(csv_cell("research") == "research");
}

TEST_CASE("a reply is made printable before a command sees it, whatever bytes it has") {
  std::mt19937 random(6);
  proto::ShowJobReply reply;
  reply.jobs.resize(1);
  proto::JobDetail& job = reply.jobs[0];
  const auto fill = [&](auto& value) {
    codec::each_text(value, [&](std::string_view, auto& text) {
      if constexpr (!std::is_const_v<std::remove_reference_t<decltype(text)>>) text = bytes(random);
    });
  };
  job.spec.mail.to.resize(3);
  job.spec.script_args.resize(3);
  job.why.resize(4);
  job.spec.shape.required_nodes.resize(2);
  job.spec.shape.gres.resize(2);
  fill(reply);
  const Bytes script = job.script = "#!/bin/sh\n\x1b\xff\n";
  make_printable(reply);
  CHECK(job.script == script);
  codec::each_text(reply, [](std::string_view field, const std::string& text) {
    if (field != "script") CHECK(is_printable(text));
  });
  proto::LogChunk chunk;
  chunk.data = "\x1b[0m\xff";
  make_printable(chunk);
  CHECK(chunk.data == "\x1b[0m\xff");
  CHECK(to_error({1, "a\n\x1b[2J"}).message == "a\n?[2J");
}
