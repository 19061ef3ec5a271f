// Tests which user may send which message with which credential, for every message that a client
// may send. Also tests which reports about a running job are believed, and how often a user may
// wait and ask.
#include <fmt/core.h>

#include <set>

#include "common/proto/attempt.h"
#include "common/proto/budget.h"
#include "common/proto/control.h"
#include "common/proto/history.h"
#include "common/proto/job_change.h"
#include "common/proto/job_submit.h"
#include "common/proto/messages.h"
#include "common/proto/node_relay.h"
#include "common/proto/node_report.h"
#include "common/proto/session.h"
#include "common/proto/steps.h"
#include "common/proto/tenancy.h"
#include "common/proto/triggers.h"
#include "controller.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/front_door.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/sched/change.h"
#include "ctld/sched/plan.h"

namespace gantry::core::test::rights_test {

Config config() {
  Config c;
  PartitionConfig p;
  p.name = "site";
  p.is_default = true;
  for (const char* name : {"n1", "p3"}) {
    NodeConfig node;
    node.name = name;
    node.cpus = 8;
    node.memory = std::int64_t{16} << 30;
    c.nodes.push_back(node);
    p.nodes.emplace_back(name);
  }
  c.partitions.push_back(p);
  c.controller.user_triggers = true;
  return c;
}

tenancy::Tenant tenant(const std::string& name, tenancy::Role role, const std::string& user) {
  tenancy::Tenant t;
  t.name = name;
  t.grants.push_back({role, user, {}});
  return t;
}

const Identity kRoot = identity("root", 0);
const Identity kAlice = identity("alice", 1000);
const Identity kEve = identity("eve", 1002);

Identity by_token(Identity who) {
  who.token_ends = Instant{hours(500'001).us};
  return who;
}

const proto::ErrorReply* error_of(const ReplyMessage& reply) {
  return reply.get_if<proto::ErrorReply>();
}
bool denied(const Result<void>& result) {
  return !result && result.error().code == ErrorCode::permission_denied;
}

// The names of the messages that `who` may send without a token and not with one, and of those that
// `who` may never send.
struct Matrix {
  std::set<std::string> refused_by_token, refused_always;
  std::size_t messages = 0;
};

template <class Message>
void ask_door(const State& state, const Identity& who, const std::string& name, Matrix& out) {
  const auto pass = [&](Identity asker) {
    Message message{};
    // With its default value this message denies a request, which a token may do.
    if constexpr (std::is_same_v<Message, proto::DecideIncrease>)
      message.state = proto::IncreaseState::approved;
    if constexpr (std::is_constructible_v<ClientMessage, Message>)
      return let_in(state, asker, ClientMessage(std::move(message)));
    else
      return let_in(state, asker, ShellMessage(std::move(message)));
  };
  ++out.messages;
  if (denied(pass(who)))
    out.refused_always.insert(name);
  else if (denied(pass(by_token(who))))
    out.refused_by_token.insert(name);
}

Matrix matrix(const State& state, const Identity& who) {
  Matrix out;
  const auto one = [&]<class Message>(std::in_place_type_t<Message>, const char* name) {
    if constexpr (ClientMessage::takes<Message> || ShellMessage::takes<Message>)
      ask_door<Message>(state, who, name, out);
  };
#define X(Type, ...) one(std::in_place_type<proto::Type>, #Type);
#include "common/proto/messages.def"
#undef X
  return out;
}

TEST_CASE("with a token nobody can make anything that lasts") {
  const Controller controller(config());
  const Matrix root = matrix(controller.state(), kRoot);
  CHECK(root.messages == ClientMessage::kCount + ShellMessage::kCount);
  CHECK(root.refused_always.empty());
  CHECK(root.refused_by_token ==
        std::set<std::string>{"ApplyTenancy", "ChangeEnrollment", "ChangePartition",
                              "DecideIncrease", "EnrollNode", "MakeReservation", "RegisterKey",
                              "ResetUse", "SetSecret", "SetTrigger"});
  const Matrix alice = matrix(controller.state(), kAlice);
  CHECK(alice.refused_by_token == std::set<std::string>{"ApplyTenancy", "DecideIncrease",
                                                        "RegisterKey", "SetSecret", "SetTrigger"});
  CHECK(alice.refused_always ==
        std::set<std::string>{"ChangeEnrollment", "ChangePartition", "EnrollNode", "ImportMeter",
                              "ListEnrollment", "ListMeters", "MakeReservation", "PlanMigModes",
                              "ReadAudit", "Reconfigure", "RemoveReservation", "ResetStats",
                              "ResetUse", "ResumeJobs", "SuspendJobs", "UpdateNodes",
                              "UpdatePartition"});
  Identity inside = kRoot;
  inside.inside = proto::AttemptKey{};
  std::set<std::string> to_jobs = alice.refused_always;
  to_jobs.merge(std::set<std::string>{"ApplyTenancy", "AskIncrease", "DecideIncrease", "ListAccess",
                                      "MakeToken", "RegisterKey", "RemoveSecret", "SetSecret",
                                      "SetTrigger"});
  CHECK(matrix(controller.state(), inside).refused_always == to_jobs);
}

TEST_CASE("a token may plan a change of documents and remove a key") {
  Controller controller(config());
  proto::ApplyTenancy apply;
  apply.documents = {tenant("red", tenancy::Role::user, "alice")};
  CHECK(error_of(controller.ask(by_token(kRoot), apply)) != nullptr);
  apply.dry_run = true;
  CHECK(error_of(controller.ask(by_token(kRoot), apply)) == nullptr);
  const std::string key(64, 'a');
  CHECK(error_of(controller.ask(kAlice, proto::RegisterKey{"alice", key, false})) == nullptr);
  CHECK(error_of(controller.ask(by_token(kAlice), proto::RegisterKey{"alice", key, true})) ==
        nullptr);
}

TEST_CASE(
    "an administrator by documents may reload the configuration, but a job of theirs may not") {
  Controller controller(config());
  proto::ApplyTenancy apply;
  apply.documents = {tenant("ops", tenancy::Role::admin, "alice")};
  const auto applied = controller.ask(kRoot, apply);
  REQUIRE_MESSAGE(error_of(applied) == nullptr, error_of(applied)->message);
  Identity alice = kAlice;
  CHECK(let_in(controller.state(), alice, ShellMessage(proto::Reconfigure{})));
  CHECK(is_admin(alice));  // an administrator may also make tokens for others
  Identity inside = kAlice;
  inside.inside = proto::AttemptKey{};
  CHECK(denied(let_in(controller.state(), inside, ShellMessage(proto::Reconfigure{}))));
  CHECK_FALSE(is_admin(inside));
}

TEST_CASE("a job of a tenant's administrator may not change the tenant's documents") {
  Controller controller(config());
  proto::ApplyTenancy apply;
  apply.documents = {tenant("red", tenancy::Role::tenant_admin, "alice")};
  REQUIRE(error_of(controller.ask(kRoot, apply)) == nullptr);
  tenancy::Tenant more = tenant("red", tenancy::Role::tenant_admin, "alice");
  more.grants.push_back({tenancy::Role::tenant_admin, "eve", {}});
  apply.documents = {more};
  Identity inside = kAlice;
  inside.inside = proto::AttemptKey{};
  const auto refused = controller.ask(inside, apply);
  REQUIRE(error_of(refused) != nullptr);
  CHECK(error_of(refused)->code == static_cast<std::uint16_t>(ErrorCode::permission_denied));
  const auto applied = controller.ask(kAlice, apply);
  CHECK_MESSAGE(error_of(applied) == nullptr, error_of(applied)->message);
}

TEST_CASE("the name of a hidden node is refused in questions to the history as well") {
  Controller controller(config());
  proto::ApplyTenancy apply;
  apply.documents = {tenant("red", tenancy::Role::user, "alice"),
                     tenant("blue", tenancy::Role::user, "bob")};
  tenancy::NodePool pool;
  pool.name = "bluepool";
  pool.nodes = "p3";
  pool.tenant = "blue";
  apply.documents.emplace_back(pool);
  const auto applied = controller.ask(kRoot, apply);
  REQUIRE_MESSAGE(error_of(applied) == nullptr, error_of(applied)->message);
  const auto ask = [&](auto message, const std::string& node) {
    std::string words;
    Identity who = kAlice;
    using Message = decltype(message);
    if constexpr (std::is_same_v<Message, proto::QueryHistory>)
      message.filter.nodes = {node};
    else if constexpr (std::is_same_v<Message, proto::StepCreate>)
      message.shape.nodelist = {node};
    else
      message.reshape.emplace().required_nodes = {node};
    Result<void> in;
    if constexpr (ShellMessage::takes<Message>)
      in = let_in(controller.state(), who, ShellMessage(message));
    else
      in = let_in(controller.state(), who, ClientMessage(message));
    return in ? std::string("let in") : in.error().message;
  };
  const auto same = [&](auto message) {
    std::string hidden = ask(message, "p3");
    CHECK(hidden == "node \"p3\" is not in this cluster");
    hidden.replace(hidden.find("p3"), 2, "n9");
    CHECK(hidden == ask(message, "n9"));
    CHECK(ask(message, "n1") == "let in");
  };
  same(proto::QueryHistory{});
  same(proto::StepCreate{});
  same(proto::UpdateJob{});
  proto::QueryHistory unprintable;
  unprintable.filter.names = {"\x1b[2J"};
  Identity who = kAlice;
  CHECK_FALSE(let_in(controller.state(), who, ShellMessage(unprintable)));
}

// ---- a running job

struct Running {
  Running() : controller(config()) {
    proto::NodeRegister m;
    m.node = "n1";
    m.boot_id = "boot";
    m.memory = std::int64_t{16} << 30;
    for (std::uint16_t cpu = 0; cpu < 8; ++cpu) m.cpus.push_back(cpu);
    controller.step(FromNode{"n1", std::move(m)});
    proto::SubmitJob submit;
    submit.spec.name = "job";
    submit.spec.work_dir = "/home/x";
    submit.script = "#!/bin/sh\n";
    REQUIRE(error_of(controller.ask(kAlice, std::move(submit))) == nullptr);
    sched::Plan plan;
    sched::Start& start = plan.starts.emplace_back();
    start.job = JobId(1);
    sched::NodeGrant& grant = start.grants.emplace_back();
    grant.node = controller.state().node_named("n1")->id;
    grant.cpus = {0};
    grant.memory = std::int64_t{2} << 30;
    grant.tasks = 1;
    controller.step(PlanReady{std::move(plan)});
    controller.step(FromNode{"n1", proto::Started{kKey, {}}});
    REQUIRE(job().phase == Phase::running);
  }
  [[nodiscard]] const Job& job() const { return controller.state().jobs.at(JobId(1)); }

  static constexpr proto::AttemptKey kKey{JobId(1), Attempt(1)};
  Controller controller;
};

TEST_CASE("a program in a job's container cannot set a trigger, even if its user can") {
  Running one;
  proto::SetTrigger set;
  set.trigger.on = {proto::TriggerOn::fini};
  set.trigger.job = JobId(1);
  set.trigger.program = "/home/x/outside";
  Identity inside = kAlice;
  inside.inside = Running::kKey;
  const auto refused = one.controller.ask(inside, set);
  REQUIRE(error_of(refused) != nullptr);
  CHECK(error_of(refused)->code == static_cast<std::uint16_t>(ErrorCode::permission_denied));
  CHECK(one.controller.state().triggers.all.empty());
  CHECK(error_of(one.controller.ask(kAlice, set)) == nullptr);
  proto::ClearTriggers clear;
  clear.filter.job = JobId(1);
  CHECK(error_of(one.controller.ask(inside, clear)) == nullptr);
}

TEST_CASE("impossible values in a step's report are corrected, and its size is limited") {
  Running one;
  proto::StepCreate create;
  create.job = JobId(1);
  REQUIRE(error_of(one.controller.ask(kAlice, create)) == nullptr);
  proto::StepDone done;
  done.key = Running::kKey;
  done.exit = {1 << 30, -7};
  done.started = Instant{INT64_MIN};
  done.ended = Instant{INT64_MAX};
  done.usage.cpu_user_us = INT64_MAX;
  done.usage.memory_peak_bytes = INT64_MIN;
  GpuUsage& gpu = done.usage.gpus.emplace_back();
  // an attacker could send a message of 16 MiB for each of 40,000 steps
  gpu.data = std::string(8 << 20, 'x');
  REQUIRE(error_of(one.controller.ask(kAlice, done)) == nullptr);
  const StepState& step = one.job().active->steps.at(0);
  CHECK(step.exit == ExitStatus{255, 0});
  CHECK(step.started == one.job().started);
  REQUIRE(step.ended);
  CHECK(*step.ended >= *one.job().started);
  CHECK(step.ended->us < INT64_MAX / 2);
  CHECK(step.usage.cpu_user_us <= std::int64_t{1} << 56);
  CHECK(step.usage.memory_peak_bytes == 0);
  CHECK(step.usage.gpus.empty());
}

// Sends the message until it is refused; returns how often it was accepted, and the refusal.
template <class Message>
std::pair<std::size_t, std::string> ask_until_refused(Controller& controller, const Identity& who,
                                                      const Message& message, std::size_t most) {
  for (std::size_t n = 0; n < most; ++n)
    for (const ReplyMessage& reply : controller.ask_many(who, message))
      if (const auto* error = error_of(reply)) return {n, error->message};
  return {most, ""};
}

TEST_CASE("the number of jobs and outputs for which one user waits at a time is limited") {
  Running one;
  const proto::WaitJobs wait{{{JobId(1), {}}}, false};
  const auto [waits, full] = ask_until_refused(one.controller, kAlice, wait, 20'000);
  CHECK(waits == 4'096);
  CHECK(full.find("alice waits for 4096 jobs") == 0);
  CHECK(ask_until_refused(one.controller, kRoot, wait, 5'000).first == 5'000);
  one.controller.step(ConnectionClosed{ConnectionId(1)});
  CHECK(ask_until_refused(one.controller, kAlice, wait, 10).first == 10);

  const proto::ReadLog log{{JobId(1), {}}, false, 0, 1000};
  CHECK(ask_until_refused(one.controller, kAlice, log, 20'000).first == 64);
  CHECK(ask_until_refused(one.controller, kRoot, log, 100).first == 100);
  const auto [logs, crowded] = ask_until_refused(one.controller, kRoot, log, 20'000);
  CHECK(logs == 10'000 - 164);
  CHECK(crowded == "too many requests for output at once");
  // The answer to ticket 1, which was alice's, makes room for one more request of alice.
  one.controller.step(FromNode{"n1", proto::FetchLogReply{1, "text", {}}});
  CHECK(ask_until_refused(one.controller, kAlice, log, 100).first == 1);
}

}  // namespace gantry::core::test::rights_test
