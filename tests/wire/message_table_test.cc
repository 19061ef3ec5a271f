// The table of messages. The tests check every message from every kind of sender, what is decoded,
// and the table in docs/visibility.md. The lists of names here are written by hand, so a new line
// of messages.def that lets more senders through than intended breaks one of them.
#include <doctest/doctest.h>

#include <fmt/core.h>

#include <set>

#include "common/codec/codec.h"
#include "common/proto/message_table.h"
#include "common/proto/messages.h"
#include "ctld/rpc/dispatch.h"
#include "ctld/rpc/identity.h"
#include "tests/golden/golden.h"

namespace gantry::rpc {
namespace {

using proto::MessageKind;
using proto::MessageRow;
using proto::Place;
using proto::Right;
using proto::Sender;
using Names = std::set<std::string>;

constexpr Sender kSenders[] = {Sender::stranger, Sender::client, Sender::job, Sender::node,
                               Sender::controller};

std::uint16_t number(const MessageRow& row) {
  return static_cast<std::uint16_t>(row.type);
}

// The names of the messages that the controller accepts from this sender.
Names taken_from(Sender sender) {
  Names out;
  for (const MessageRow& row : proto::kMessages)
    if (proto::check_sender(number(row), sender, Place::controller)) out.emplace(row.name);
  return out;
}

Names without(Names all, const Names& some) {
  for (const std::string& one : some) REQUIRE(all.erase(one) == 1);
  return all;
}

struct Sample {
  std::uint16_t number = 0;
  Bytes body;  // the encoded message, with no field set
};
std::vector<Sample> samples() {
  return {
#define X(type, number, ...) {number, codec::encode(proto::type{})},
#include "common/proto/messages.def"
#undef X
  };
}

TEST_CASE("the controller takes exactly these messages from each kind of sender") {
  CHECK(taken_from(Sender::stranger) == Names{"Hello", "Authenticate", "Ping", "UseEnrollToken"});
  CHECK(taken_from(Sender::node) == Names{"NodeRegister", "Heartbeat", "LaunchReady", "Started",
                                          "ExitReport", "Goodbye", "NodeRelay", "FetchLogReply",
                                          "GpuReport", "Frozen", "UserRelay", "UsersGone",
                                          "AttemptProbed", "RenewIdentity", "UseEnrollToken"});
  CHECK(taken_from(Sender::controller).empty());
  const Names client = taken_from(Sender::client);
  CHECK(client.size() == 3 + core::ClientMessage::kCount + core::ShellMessage::kCount);
  CHECK(taken_from(Sender::job) ==
        without(client,
                {"Authenticate",     "MakeToken",       "RegisterKey",     "EnrollNode",
                 "Reconfigure",      "ApplyTenancy",    "AskIncrease",     "DecideIncrease",
                 "ImportMeter",      "ListMeters",      "MakeReservation", "RemoveReservation",
                 "UpdateNodes",      "UpdatePartition", "SuspendJobs",     "ResumeJobs",
                 "PlanMigModes",     "SetTrigger",      "ChangePartition", "ResetUse",
                 "ListAccess",       "SetSecret",       "RemoveSecret",    "ResetStats",
                 "ChangeEnrollment", "ListEnrollment",  "UseEnrollToken",  "ReadAudit"}));
}

TEST_CASE("a node takes steps from clients and jobs, and orders only from the controller") {
  const auto taken = [](Sender sender) {
    Names out;
    for (const MessageRow& row : proto::kMessages)
      if (proto::check_sender(number(row), sender, Place::node)) out.emplace(row.name);
    return out;
  };
  CHECK(taken(Sender::stranger).empty());
  CHECK(taken(Sender::node).empty());
  CHECK(taken(Sender::client) == Names{"LaunchStep", "AttachStep", "SocketHello"});
  CHECK(taken(Sender::job) == Names{"LaunchStep", "AttachStep", "StepListen"});
  for (const std::string& name : taken(Sender::controller))
    CHECK_FALSE(taken_from(Sender::client).contains(name));
}

TEST_CASE("a refused message gets one sentence, and an accepted message has one decoder") {
  const std::vector<Sample> all = samples();
  CHECK(all.size() == proto::kMessages.size());
  for (const Sample& sample : all) {
    const std::string name = proto::message_name(sample.number);
    CAPTURE(name);
    const auto row = proto::find_message(sample.number);
    REQUIRE(row);
    for (const Sender sender : kSenders) {
      CAPTURE(static_cast<int>(sender));
      const auto sent = proto::check_sender(sample.number, sender, Place::controller);
      if (!sent && sender == Sender::stranger) {
        CHECK(sent.error().code == ErrorCode::unauthenticated);
      } else if (!sent) {
        CHECK(sent.error().code == ErrorCode::permission_denied);
        CHECK(sent.error().message.find(name + " goes from ") == 0);
        CHECK(sent.error().message.ends_with(" may not send it to the controller"));
      }
    }
    const bool asked = row->from.has(Sender::client) && row->taker != proto::Taker::sessions &&
                       place_of(row->taker) == Place::controller;
    const int decoded = (decode_client(sample.number, sample.body) ? 1 : 0) +
                        (decode_shell(sample.number, sample.body) ? 1 : 0);
    CHECK(decoded == (asked ? 1 : 0));
    CHECK(decode_node(sample.number, sample.body).has_value() ==
          (row->from.has(Sender::node) && row->taker == proto::Taker::core));
  }
}

TEST_CASE("a refusal says who may send the message to whom, and who sent it") {
  const auto words = [](auto message, Sender sender, Place here) {
    const auto n = static_cast<std::uint16_t>(proto::number_of<decltype(message)>);
    const auto sent = proto::check_sender(n, sender, here);
    return sent ? std::string("taken") : sent.error().message;
  };
  CHECK(words(proto::Reconfigure{}, Sender::job, Place::controller) ==
        "Reconfigure goes from a client outside of jobs to the controller: a program inside a job "
        "may not send it to the controller");
  CHECK(words(proto::ExitReport{}, Sender::client, Place::controller) ==
        "ExitReport goes from a node to the controller: a client may not send it to the "
        "controller");
  CHECK(words(proto::LaunchStep{}, Sender::client, Place::controller) ==
        "LaunchStep goes from a client to a node: a client may not send it to the controller");
  CHECK(words(proto::SubmitJob{}, Sender::node, Place::controller) ==
        "SubmitJob goes from a client to the controller: a node may not send it to the controller");
  CHECK(words(proto::SubmitReply{}, Sender::client, Place::controller) ==
        "SubmitReply goes from the controller to whoever asked: a client may not send it to the "
        "controller");
  CHECK(words(proto::ListJobs{}, Sender::stranger, Place::controller) == "authenticate first");
  const auto unknown = proto::check_sender(999, Sender::client, Place::controller);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ErrorCode::unsupported);
  CHECK(unknown.error().message == "message 999 is unknown here");
}

TEST_CASE("a stranger's message counts as that of nobody, never of root") {
  CHECK(nobody().owner.uid != Uid{0});
  CHECK(nobody().role == proto::Role::user);
}

// ---- The table in docs/visibility.md.

std::string_view right_words(Right right) {
  switch (right) {
    case Right::everybody: return "everybody";
    case Right::operators: return "operators";
    case Right::admins: return "administrators";
  }
  return "?";
}

std::string from_words(const proto::Senders& from) {
  if (from.has(Sender::node)) return "node";
  if (from.only(Sender::job)) return "job";
  std::string out = "client";
  if (from.has(Sender::job)) out += ", job";
  if (from.has(Sender::stranger)) out += ", stranger";
  return out;
}

// The table has one line for each request and report that anyone but the controller sends.
std::string table() {
  std::string out =
      "| message | from | to | who may | by token |\n"
      "|---|---|---|---|---|\n";
  for (const MessageRow& row : proto::kMessages) {
    if (row.from.has(Sender::controller) || row.kind == MessageKind::reply) continue;
    const bool asks = row.kind == MessageKind::read || row.kind == MessageKind::write;
    out += fmt::format("| {} | {} | {} | {} | {} |\n", row.name, from_words(row.from),
                       place_of(row.taker) == Place::node ? "node" : "controller",
                       asks ? right_words(row.right) : "", asks ? (row.lasts ? "no" : "yes") : "");
  }
  return out;
}

TEST_CASE("docs/visibility.md has the current table of messages") {
  test::check_golden_table("docs/visibility.md", "| message | from |", table());
}

TEST_CASE("docs/visibility.md says for every reading message what users see") {
  const std::string text = test::source_text("docs/visibility.md");
  const auto from = text.find("| message | commands |");
  REQUIRE(from != std::string::npos);
  const std::string seen = text.substr(from, text.find("\n\n", from) - from);
  for (const MessageRow& row : proto::kMessages) {
    if (row.kind != MessageKind::read || place_of(row.taker) != Place::controller) continue;
    CHECK_MESSAGE(seen.find(row.name) != std::string::npos, row.name);
  }
}

}  // namespace
}  // namespace gantry::rpc
