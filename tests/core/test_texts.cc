// Puts bytes of every kind into every text of every request: a text that is accepted must be fit to
// be shown in JSON and on a terminal.
#include <doctest/doctest.h>

#include <random>

#include "common/codec/codec.h"
#include "common/codec/json_io.h"
#include "common/codec/texts.h"
#include "common/proto/any/message_visit.h"
#include "common/text/printable.h"
#include "controller.h"

namespace gantry::core::test::texts_test {

Config config() {
  Config c = alike_nodes(1, 64, std::int64_t{64} << 30);
  c.controller.mail_program = "/usr/sbin/sendmail";
  c.controller.user_triggers = true;
  return c;
}

using Random = std::mt19937;

std::string bytes(Random& random, std::size_t most) {
  static const std::vector<std::string> kPieces = {"a",        "\x1b[2J", "\x1b]0;x\a",   "\xff",
                                                   "\xc2\x9b", "\n",      "\xe2\x80\xae", "\xc3",
                                                   "\x7f",     "ö",       "\"",           "\\"};
  std::string out;
  for (std::size_t i = random() % most; i > 0; --i)
    out += random() % 4 == 0 ? std::string(1, static_cast<char>(random() % 255 + 1))
                             : kPieces[random() % kPieces.size()];
  return out;
}

proto::SubmitJob sound_submit() {
  proto::SubmitJob m;
  m.spec.name = "name";
  m.spec.work_dir = "/home/eve";
  m.spec.comment = "comment";
  m.spec.submit_line = "sbatch x";
  m.spec.wckey = "x";
  m.script = "#!/bin/sh\n";
  m.environment = {{"A", "b"}};
  return m;
}

// Checks that every listing that shows the queue is printable and is valid JSON.
void check_listings(Controller& controller) {
  const Identity eve = identity("eve", 1000), root = identity("root", 0);
  const auto check = [](const ReplyMessage& reply) {
    proto::visit(
        [](const auto& m) {
          const std::string text = codec::to_json(m);
          CHECK(is_printable(text, Lines::many));
          const auto parsed = codec::JsonDocument::parse(text);
          CHECK_MESSAGE(parsed.has_value(), text);
        },
        reply);
  };
  for (const Identity& who : {eve, root}) {
    const ReplyMessage list = controller.ask(who, proto::ListJobs{});
    check(list);
    for (const proto::JobRow& row : list.get<proto::ListJobsReply>().rows) {
      CHECK(is_printable(row.name));
      CHECK(is_printable(row.account));
      check(controller.ask(who, proto::ShowJob{{row.job, {}}, true}));
    }
    check(controller.ask(who, proto::ListNodes{}));
    check(controller.ask(who, proto::ListPartitions{}));
    check(controller.ask(who, proto::ListReservations{}));
    check(controller.ask(who, proto::ListTriggers{}));
    check(controller.ask(who, proto::PriorityTuples{}));
    check(controller.ask(who, proto::ShareTree{}));
    check(controller.ask(who, proto::TenantUsage{}));
    check(controller.ask(who, proto::QueryLedger{}));
  }
}

std::string words_of(const ReplyMessage& reply) {
  const auto* error = reply.get_if<proto::ErrorReply>();
  return error == nullptr ? "" : error->message;
}

TEST_CASE("whatever bytes a submit has in its texts, listings parse and are safe for a terminal") {
  Controller controller(config());
  const Identity eve = identity("eve", 1000);
  Random random(21);
  std::size_t taken = 0;
  for (int i = 0; i < 600; ++i) {
    proto::SubmitJob m = sound_submit();
    std::size_t texts = 0;
    const auto count = [&](std::string_view, auto&) { ++texts; };
    codec::each_text(m, count);
    // Only one text is spoilt each time, because one bad text is enough to have the submit refused.
    const std::size_t which = random() % texts;
    std::size_t at = 0;
    std::string key;
    codec::each_text(m, [&](std::string_view, auto& text) {
      if (at++ != which) return;
      if constexpr (std::is_const_v<std::remove_reference_t<decltype(text)>>)
        key = text;
      else
        text = (text.starts_with("/") || text.starts_with("#!") ? text : "") + bytes(random, 12);
    });
    if (!key.empty()) {
      auto node = m.environment.extract(key);
      if (!node.empty()) {
        node.key() = bytes(random, 12);
        m.environment.insert(std::move(node));
      }
    }
    const ReplyMessage reply = controller.ask(eve, std::move(m));
    taken += reply.is<proto::SubmitReply>() ? 1 : 0;
  }
  CHECK(taken > 50);
  check_listings(controller);
}

TEST_CASE(
    "text that is not UTF-8 or has control characters is refused; paths may have any encoding") {
  Controller controller(config());
  const Identity eve = identity("eve", 1000), root = identity("root", 0);
  const auto submit = [&](auto change) {
    proto::SubmitJob m = sound_submit();
    change(m);
    return words_of(controller.ask(eve, std::move(m)));
  };
  CHECK(submit([](auto& m) { m.spec.name = "a\xff"; }) ==
        "the field \"name\" must be UTF-8: its byte 2 is not");
  CHECK(submit([](auto& m) { m.spec.comment = "x\x1b[2Jy"; }) ==
        "the field \"comment\" must not contain control characters: its byte 2 is one");
  CHECK(submit([](auto& m) { m.spec.comment = "x\xc2\x9b"; }) ==
        "the field \"comment\" must not contain control characters: its byte 2 is one");
  CHECK(submit([](auto& m) { m.spec.wckey = "\xfe"; }) ==
        "the field \"wckey\" must be UTF-8: its byte 1 is not");
  CHECK(submit([](auto& m) { m.spec.older_given = {"wckey=\xfe"}; }) ==
        "the field \"given\" must be UTF-8: its byte 7 is not");
  CHECK(submit([](auto& m) { m.spec.work_dir = "/home/\x1b"; }) ==
        "the field \"work dir\" must not contain control characters");
  CHECK(submit([](auto& m) { m.environment["A\x1b"] = "b"; }) ==
        "the name of an environment variable must not contain control characters");
  // a path may be in Latin-1
  CHECK(submit([](auto& m) { m.spec.work_dir = "/home/M\xfcller"; }).empty());
  CHECK(submit([](auto& m) { m.environment["A"] = "\x1b\n\xff"; }).empty());
  CHECK(submit([](auto& m) { m.spec.submit_line = "sbatch \x1b[2J\xc3"; }).empty());

  proto::UpdateJob rename;
  rename.job = {JobId(1), {}};
  rename.name = "\xff";
  CHECK(words_of(controller.ask(eve, rename)) ==
        "the field \"name\" must be UTF-8: its byte 1 is not");
  proto::UpdateNodes drain{{"n1"}, proto::NodeAction::drain, "disk \x1b[31mred"};
  CHECK(words_of(controller.ask(root, drain)) ==
        "the field \"reason\" must not contain control characters: its byte 6 is one");
  proto::RegisterKey key{"eve\n", std::string(64, 'a')};
  CHECK(words_of(controller.ask(root, key)) ==
        "the field \"user\" must not contain control characters: its byte 4 is one");
  check_listings(controller);
}

}  // namespace gantry::core::test::texts_test
