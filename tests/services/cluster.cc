#include "tests/services/cluster.h"

#include "common/assert.h"
#include "common/proto/attempt.h"
#include "common/proto/gate.h"
#include "common/proto/job_submit.h"
#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "common/proto/session.h"
#include "common/proto/tenancy.h"
#include "ctld/core/core.h"
#include "ctld/core/job/submit/blobs.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"
#include "ctld/sched/change.h"
#include "ctld/sched/cycle/schedule.h"
#include "ctld/sched/plan.h"
#include "ctld/sched/policy.h"

namespace gantry::services_test {
namespace {

constexpr std::int64_t kMemory = 256LL << 30;  // bytes of a node

Config make_config(const ClusterSize& size) {
  Config config;
  PartitionConfig partition;
  partition.name = "main";
  partition.is_default = true;
  for (std::uint32_t i = 0; i < size.nodes; ++i) {
    NodeConfig& node = config.nodes.emplace_back();
    node.name = "n" + std::to_string(i);
    node.cpus = size.cores;
    node.memory = kMemory;
    partition.nodes.push_back(node.name);
  }
  config.partitions.push_back(std::move(partition));
  config.controller.max_user_jobs = 1'000'000;
  return config;
}

}  // namespace

Cluster::Cluster(const ClusterSize& size, std::vector<tenancy::Document> documents)
    : size_(size),
      config_(make_config(size)),
      core_(std::make_unique<core::Core>(config_)),
      replica_(std::make_unique<sched::Replica>()) {
  GANTRY_ASSERT(core_->start(now_).has_value(), "a new core starts");
  take(core_->take_turn());
  for (const sched::Change& change : core_->full_view()) replica_->apply(change);
  for (const NodeConfig& node : config_.nodes) {
    proto::NodeRegister m;
    m.node = node.name;
    m.version = "0.1.0";
    m.boot_id = "boot";
    m.address = node.name + ":6871";
    for (std::uint32_t cpu = 0; cpu < node.cpus; ++cpu)
      m.cpus.push_back(static_cast<std::uint16_t>(cpu));
    m.memory = node.memory;
    m.abilities = bit_of(NodeAbility::doors);
    step(core::FromNode{node.name, std::move(m)});
    step(core::FromNode{node.name, proto::Heartbeat{sessions_.at(node.name), 0.5, 1 << 30, {}}});
  }
  proto::ApplyTenancy tenants, rest;
  for (tenancy::Document& document : documents) {
    const bool service = std::holds_alternative<tenancy::Service>(document);
    (service ? rest : tenants).documents.push_back(std::move(document));
  }
  for (proto::ApplyTenancy* message : {&tenants, &rest}) {
    const bool admin = message == &tenants;
    step(core::ClientRequest{core::ConnectionId(1), ++request_,
                             admin ? who("root", 0) : who("owner", 1000), std::move(*message)});
    for (const core::ReplyMessage& reply : replies_)
      if (const auto* error = reply.get_if<proto::ErrorReply>())
        GANTRY_ASSERT(false, error->message.c_str());
  }
}

Cluster::~Cluster() = default;

core::Identity Cluster::who(const std::string& user, std::uint32_t uid) const {
  core::Identity id;
  id.owner.uid = Uid(uid);
  id.owner.gid = Gid(uid);
  id.owner.user = user;
  id.role = uid == 0 ? proto::Role::admin : proto::Role::user;
  return id;
}

void Cluster::step(core::Input input) {
  replies_.clear();
  core_->step(now_, std::move(input));
  take(core_->take_turn());
}

void Cluster::take(core::Turn turn) {
  const auto done = store_.append(turn.append);
  GANTRY_ASSERT(done.has_value(), "the memory store takes it");
  for (const sched::Change& change : turn.changes) replica_->apply(change);
  plan_ = plan_ || turn.schedule || !turn.changes.empty();
  for (core::Reply& reply : turn.replies) replies_.push_back(std::move(reply.message));
  for (core::Order& order : turn.orders) carry_out(order);
}

void Cluster::carry_out(core::Order& order) {
  if (const auto* accept = order.message.get_if<proto::NodeAccept>()) {
    sessions_[order.node] = accept->stamp.session;
  } else if (const auto* launch = order.message.get_if<proto::Launch>()) {
    if (running_.contains(launch->key)) return;
    ++starts_;
    running_[launch->key] = {order.node, now_ + size_.start};
    started_.emplace_back(order.node, launch->key);
  } else if (const auto* end = order.message.get_if<proto::Terminate>()) {
    const bool told =
        std::any_of(exits_.begin(), exits_.end(), [&](const Exit& e) { return e.key == end->key; });
    if (running_.contains(end->key) && !told)
      exits_.push_back({size_.whole_grace ? now_ + end->grace : now_, order.node, end->key});
  }
}

void Cluster::exit_of(const std::string& node, const proto::AttemptKey& key) {
  if (running_.erase(key) == 0) return;
  proto::ExitReport report;
  report.key = key;
  report.ended = now_;
  step(core::FromNode{node, std::move(report)});
}

void Cluster::end(JobId job) {
  for (const auto& [key, run] : running_)
    if (key.job == job) {
      exit_of(std::string(run.node), proto::AttemptKey(key));
      return;
    }
}

JobId Cluster::submit(const std::string& user, std::uint32_t uid, proto::SubmitJob job) {
  step(core::ClientRequest{core::ConnectionId(1), ++request_, who(user, uid), std::move(job)});
  for (const core::ReplyMessage& reply : replies_) {
    if (const auto* error = reply.get_if<proto::ErrorReply>())
      GANTRY_ASSERT(false, error->message.c_str());
    if (const auto* made = reply.get_if<proto::SubmitReply>()) return made->job;
  }
  return JobId{};
}

void Cluster::second(std::vector<proto::GateSample> samples,
                     const std::map<std::string, Duration>& service_times) {
  now_ = now_ + seconds(1);
  for (const auto& [node, key] : std::exchange(started_, {}))
    if (running_.contains(key)) step(core::FromNode{node, proto::Started{key, now_}});
  for (const Exit& e : std::exchange(exits_, {}))
    if (e.at <= now_)
      exit_of(e.node, e.key);
    else
      exits_.push_back(e);
  if (now_.us / 1'000'000 % 5 == 0)
    for (const NodeConfig& node : config_.nodes)
      step(core::FromNode{node.name, proto::Heartbeat{sessions_.at(node.name), 0.5, 1 << 30, {}}});
  proto::SyncGate gate;
  gate.gate = "g1";
  gate.revision = table_.revision;
  gate.samples = std::move(samples);
  for (const proto::GateService& service : table_.services)
    for (const proto::GateReplica& replica : service.replicas) {
      const auto run = running_.find(replica.key);
      if (run == running_.end()) continue;
      proto::ReplicaReport& report = gate.replicas.emplace_back();
      report.key = replica.key;
      report.health =
          run->second.ready <= now_ ? proto::ReplicaHealth::ready : proto::ReplicaHealth::starting;
      const auto time = service_times.find(service.name);
      if (time != service_times.end() && report.health == proto::ReplicaHealth::ready)
        report.response = time->second;
    }
  step(core::ClientRequest{core::ConnectionId(1), ++request_, who("root", 0), std::move(gate)});
  for (core::ReplyMessage& reply : replies_)
    if (auto* table = reply.get_if<proto::GateTable>(); table != nullptr && !table->unchanged)
      table_ = std::move(*table);
  step(core::Tick{});
  if (!plan_) return;
  plan_ = false;
  sched::Plan plan = sched::schedule(*replica_, now_, sched::Policy{});
  step(core::PlanReady{std::move(plan)});
}

std::map<std::string, std::uint32_t> Cluster::ready() const {
  std::map<std::string, std::uint32_t> out;
  for (const proto::GateService& service : table_.services)
    for (const proto::GateReplica& replica : service.replicas) {
      const auto run = running_.find(replica.key);
      if (!replica.draining && run != running_.end() && run->second.ready <= now_)
        ++out[service.name];
    }
  return out;
}

std::map<std::string, std::uint32_t> Cluster::held() const {
  std::map<std::string, std::uint32_t> out;
  for (const auto& [name, jobs] : core_->state().services.jobs)
    for (const JobId id : jobs)
      if (core_->state().jobs.at(id).placed()) ++out[name];
  return out;
}

}  // namespace gantry::services_test
