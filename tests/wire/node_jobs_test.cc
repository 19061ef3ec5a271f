// A node with a job, against the real controller: orders that do not fit into a message, and
// requests from inside the job.
#include <doctest/doctest.h>

#include "tests/eventually.h"
#include "tests/wire/asking.h"

namespace gantry {
namespace {

using test::answer;
using test::authenticate;
using test::Controller;
using test::RawDealer;
using test::send;

// The next message of this type, of all that come.
template <class Message>
std::optional<Message> next(RawDealer& peer) {
  while (const auto got = answer(peer))
    if (got->type == proto::number_of<Message>) return *codec::decode<Message>(got->body);
  return std::nullopt;
}

proto::NodeAccept enter(RawDealer& peer, const std::string& name) {
  proto::NodeRegister message = test::registration(name);
  message.sent = test::wall();
  REQUIRE(send(peer, 0, message));
  const auto accepted = next<proto::NodeAccept>(peer);
  REQUIRE(accepted);
  return *accepted;
}

void beat(RawDealer& peer, const proto::NodeAccept& accepted) {
  proto::Heartbeat message;
  message.session = accepted.stamp.session;
  message.sent = test::wall();
  REQUIRE(send(peer, 0, message));
}

proto::SubmitJob job() {
  proto::SubmitJob m;
  m.spec.name = "job";
  m.spec.work_dir = "/tmp";
  m.spec.shape.memory_per_node = std::int64_t{64} << 20;
  m.script = "#!/bin/sh\n";
  return m;
}

JobId submitted(RawDealer& user, const proto::SubmitJob& m) {
  REQUIRE(send(user, 2, m));
  const auto got = answer(user);
  REQUIRE(got);
  if (got->type == proto::MessageType::ErrorReply) FAIL(test::refusal(got).message);
  return codec::decode<proto::SubmitReply>(got->body)->job;
}

proto::JobRow row_of(RawDealer& user, JobId id) {
  proto::ShowJob show;
  show.job = {id, {}};
  REQUIRE(send(user, 3, show));
  const auto reply = next<proto::ShowJobReply>(user);
  REQUIRE(reply);
  return reply->jobs.at(0).row;
}

}  // namespace

TEST_CASE("a job whose order no message holds fails by itself, and its node stays open") {
  // Names of nodes are the one list of a job that can be this long.
  const std::string prefix(240, 'x');
  const net::KeyPair keys = net::generate_key_pair();
  const Controller controller("start_timeout: 5s, max_script_bytes: 8388608, ",
                              prefix + "[00000-40000]", {{prefix + "00000", keys.public_key}});
  (void)controller.connect();
  RawDealer node = test::dealer(controller, "", keys);
  const auto accepted = enter(node, prefix + "00000");
  beat(node, accepted);
  RawDealer user = test::dealer(controller);
  authenticate(user, controller.nobody());
  proto::SubmitJob m = job();
  m.script = "#!/bin/sh\n" + std::string((8 << 20) - 100, '#');
  auto& names = m.spec.shape.excluded_nodes;
  const auto add_name = [&] {
    names.push_back(prefix + fmt::format("{:05}", 40'000 - names.size()));
  };
  for (int i = 0; i < 300; ++i) add_name();  // lists of all lengths from here on have one form
  const std::size_t few = codec::encode(m).size();
  add_name();
  const std::size_t each = codec::encode(m).size() - few;
  for (std::size_t left = ((16 << 20) - few) / each; left > 2; --left) add_name();
  REQUIRE(codec::encode(m).size() < 16 << 20);
  const JobId id = submitted(user, m);
  beat(node, accepted);
  proto::JobRow row;
  const auto ended = [&] {
    row = row_of(user, id);
    return row.phase == Phase::ended;
  };
  eventually(ended, std::chrono::seconds(30), std::chrono::milliseconds(100));
  CHECK(row.phase == Phase::ended);
  CHECK(row.outcome == Outcome::failed);
  CHECK(row.restarts == 0);
  proto::ListNodes list;
  list.nodes = {prefix + "00000"};
  REQUIRE(send(user, 4, list));
  const auto nodes = next<proto::ListNodesReply>(user);
  REQUIRE(nodes);
  CHECK(nodes->nodes.at(0).intent == NodeIntent::open);
}

TEST_CASE("a request from inside a job has the groups of the job's owner") {
  const net::KeyPair keys = net::generate_key_pair();
  const Controller controller("", "n1", {{"n1", keys.public_key}},
                              "partitions: [{name: open, nodes: [n1], default: true}, {name: own, "
                              "nodes: [n1], allow_groups: [nogroup]}, {name: others, nodes: [n1], "
                              "allow_groups: [daemon]}]\n");
  (void)controller.connect();
  RawDealer node = test::dealer(controller, "", keys);
  const auto accepted = enter(node, "n1");
  beat(node, accepted);
  RawDealer user = test::dealer(controller);
  authenticate(user, controller.nobody());
  (void)submitted(user, job());
  const auto launch = next<proto::Launch>(node);
  REQUIRE(launch);
  REQUIRE(send(node, 0, proto::Started{launch->key, test::wall()}));
  const auto relayed = [&](const std::string& partition) {
    proto::SubmitJob m = job();
    m.spec.partition = partition;
    proto::NodeRelay relay;
    relay.key = launch->key;
    relay.channel = 1;
    relay.type = static_cast<std::uint16_t>(proto::number_of<proto::SubmitJob>);
    relay.request = 7;
    relay.body = codec::encode(m);
    REQUIRE(send(node, 0, relay));
    const auto reply = next<proto::RelayReply>(node);
    REQUIRE(reply);
    if (reply->type == static_cast<std::uint16_t>(proto::number_of<proto::SubmitReply>))
      return std::string("taken");
    return codec::decode<proto::ErrorReply>(reply->body)->message;
  };
  CHECK(relayed("own") == "taken");
  CHECK(relayed("others") ==
        "nobody is in no group that may use partition others (allow_groups: daemon)");
}

}  // namespace gantry
