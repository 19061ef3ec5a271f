#include "tests/acct/month.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "common/codec/codec.h"
#include "common/time/time_zone.h"
#include "config/tenancy/files/load.h"
#include "ctld/core/apply.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/resources/index.h"
#include "ctld/core/tenancy/tenants.h"
#include "ctld/sched/change.h"
#include "tests/places.h"

namespace gantry::test {

using namespace core;

namespace {

constexpr std::int64_t kKib = 1024;
constexpr std::int64_t kGib = std::int64_t{1} << 30;

struct Machine {
  std::string name, model;
  std::uint32_t cpus = 0;
  std::int64_t memory = 0, scratch = 0;
  std::uint32_t gpus = 0;
  bool mig = false;
};
const std::vector<Machine> kMachines{{"g1", "a100", 64, 512 * kGib, 1024 * kGib, 8, false},
                                     {"g2", "a100", 64, 512 * kGib, 1024 * kGib, 8, false},
                                     {"t1", "t4", 32, 128 * kGib, 0, 4, false},
                                     {"m1", "a100", 32, 128 * kGib, 0, 2, true},
                                     {"c1", "", 64, 256 * kGib, 0, 0, false},
                                     {"x1", "l4", 16, 64 * kGib, 0, 2, false}};
const std::vector<MigProfile> kProfiles{{"1g.5gb", 19, 1, 1, 5 * kGib, 7, {0, 1, 2, 3, 4, 5, 6}},
                                        {"3g.20gb", 9, 3, 4, 20 * kGib, 2, {0, 4}}};
const std::map<std::uint32_t, std::uint16_t> kThousandths{{19, 142}, {9, 428}};

constexpr const char* kTeams = R"(
apiVersion: gantry/v1
kind: Tenant
name: fraud
---
apiVersion: gantry/v1
kind: Tenant
name: search
---
apiVersion: gantry/v1
kind: Tenant
name: lab
tier: research
---
apiVersion: gantry/v1
kind: Tier
name: research
---
apiVersion: gantry/v1
kind: Tier
name: students
---
apiVersion: gantry/v1
kind: NodePool
name: a
nodes: g[1-2]
---
apiVersion: gantry/v1
kind: NodePool
name: b
nodes: t1,m1
---
)";

}  // namespace

std::string read_source(const std::string& name) {
  std::ifstream in(source_dir() + "/tests/acct/" + name);
  std::ostringstream text;
  text << in.rdbuf();
  REQUIRE_MESSAGE(!text.str().empty(), name);
  return text.str();
}

Instant utc_time(const std::string& text) {
  const std::int64_t minute = *parse_local_time(text.substr(0, 16));
  std::int64_t us = minute * 1'000'000 + std::stoll(text.substr(17, 2)) * 1'000'000;
  if (text.size() > 20) us += std::stoll(text.substr(20, 6));
  return {us};
}

std::vector<std::string> split_at(const std::string& text, char at) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) out.push_back(part);
  return out;
}

Month::Month() {
  add_nodes();
  add_documents();
}

void Month::add_nodes() {
  const Instant begin = utc_time("2026-10-01T00:00:00");
  for (const Machine& m : kMachines) {
    NodeConfig c;
    c.name = m.name;
    c.cpus = m.cpus;
    c.memory = m.memory;
    c.scratch = m.scratch;
    c.gpus = m.gpus;
    c.gpu_model = m.model;
    config_.nodes.push_back(c);
  }
  for (const Machine& m : kMachines) {
    const NodeId id(static_cast<std::uint32_t>(state_.nodes.size()));
    apply(begin, event::NodeDeclared{id, m.name});
    NodeFacts facts;
    for (std::uint32_t i = 0; i < m.gpus; ++i) {
      GpuDevice gpu;
      gpu.index = i;
      gpu.model = m.model;
      gpu.mig = m.mig;
      facts.gpus.gpus.push_back(gpu);
    }
    if (m.mig) facts.gpus.geometries.push_back({m.model, 7, 8, kProfiles});
    if (m.gpus == 0) facts.gpus.why_none = "it has none";
    apply(begin, event::NodeRegistered{id, facts});
    Node& node = state_.node(id);
    node.declared = &config_.nodes.at(id.value());
    for (std::uint32_t cpu = 0; cpu < m.cpus; ++cpu)
      node.cpus.push_back(static_cast<std::uint16_t>(cpu));
    state_.node_order.push_back(id);
  }
}

void Month::add_documents() {
  const Instant begin = utc_time("2026-10-01T00:00:00");
  const auto loaded = tenancy::load_text(kTeams + read_source("prices.yaml"), "month", {});
  REQUIRE_MESSAGE(loaded, loaded.error().message);
  event::TenancyApplied e;
  e.revision = 1;
  Documents documents;
  for (const tenancy::Document& document : loaded->documents) {
    const DocumentKey key = key_of(document);
    documents.emplace(key, document);
    e.changes.push_back({key.first, key.second, std::nullopt, document});
  }
  e.new_classes = new_class_names(documents, state_.tenancy.class_names);
  apply(begin, e);
  for (const std::string name : {"fraud", "search", "lab"})
    apply(begin, event::PartitionDeclared{
                     PartitionId(static_cast<std::uint32_t>(state_.partitions.size())), name});
  state_.tenancy.compiled = compile_for(state_, state_.tenancy.documents, LooseTenants::apart);
}

void Month::apply(Instant at, EventRef event) {
  if (watch) watch(state_, at);
  core::apply(state_, at, event);
}

void Month::change_prices(Instant at, const std::string& book, const std::string& model,
                          Money price) {
  const DocumentKey key{tenancy::PriceBook::kKind, book};
  const tenancy::Document before = state_.tenancy.documents.at(key);
  tenancy::Document after = before;
  std::get<tenancy::PriceBook>(after).gpu.at(model) = price;
  event::TenancyApplied e;
  e.revision = state_.tenancy.revision + 1;
  e.changes.push_back({key.first, key.second, before, after});
  apply(at, e);
}

JobId Month::submitted(const Attempt& a) {
  if (const auto it = jobs_.find(a.job); it != jobs_.end()) return it->second;
  const std::size_t task = a.job.find('_');
  const std::string own = a.job.substr(0, task);
  if (!jobs_.contains(own)) {
    StoredSpec stored;
    stored.spec.name = own;
    stored.spec.account = a.project;
    stored.spec.priority_class = a.cls;
    stored.spec.kind = a.type == "interactive" ? JobKind::allocation : JobKind::batch;
    if (task != std::string::npos) stored.spec.array = ArraySpec{{{0, 2, 1}}, std::nullopt};
    stored.owner.user = a.user;
    event::JobSubmitted e;
    e.job = JobId(state_.last_job.value() + 1);
    e.partition = state_.partition_ids.at(a.tenant);
    state_.new_specs.emplace(e.job, codec::encode(stored));
    apply(a.placed, e);
    jobs_[own] = e.job;
    // The job gets its priority class here, as the controller's validation would resolve it.
    Job& job = state_.jobs.at(e.job);
    sched::ClassKey key = class_of(state_, job);
    const auto& names = state_.tenancy.class_names;
    key.priority_class =
        static_cast<std::uint32_t>(std::find(names.begin(), names.end(), a.cls) - names.begin());
    REQUIRE(key.priority_class < names.size());
    set_class(state_, job, key);
  }
  if (task == std::string::npos) return jobs_.at(own);
  const JobId element(state_.last_job.value() + 1);
  apply(a.placed,
        event::TaskSplit{jobs_.at(own),
                         static_cast<std::uint32_t>(std::stoul(a.job.substr(task + 1))), element});
  return jobs_[a.job] = element;
}

Month::Grant Month::grant_of(const std::string& text) {
  const std::vector<std::string> parts = split_at(text, '/');
  REQUIRE(parts.size() == 6);
  Grant out;
  out.node = state_.node_ids.at(parts[0]);
  out.until = utc_time(parts[5]);
  out.exclusive = parts[1] == "all";
  const Node& node = state_.node(out.node);
  sched::NodeGrant& g = out.grant;
  g.node = out.node;
  // A job with whole nodes that asked for one core.
  const std::uint64_t cores = out.exclusive ? 1 : std::stoull(parts[1]);
  for (const std::uint16_t cpu : node.cpus)
    if (g.cpus.size() < cores && (cpu >= node.cpu_taken.size() || !node.cpu_taken[cpu]))
      g.cpus.push_back(cpu);
  REQUIRE(g.cpus.size() == cores);
  g.memory = std::stoll(parts[2]) * kKib;
  g.scratch = std::stoll(parts[3]) * kKib;
  std::map<std::uint16_t, std::uint16_t> start;
  for (const std::string& gpu : split_at(parts[4] == "-" ? "" : parts[4], ',')) {
    GpuGrant d;
    d.gpu = static_cast<std::uint16_t>(gpu[1] - '0');
    if (gpu[0] == 'w') ++g.gpus;
    if (gpu[0] == 's')
      d.thousandths = GpuThousandths{std::stoi(gpu.substr(3))}.narrow<std::uint16_t>();
    if (gpu[0] == 'm') {
      d.profile = static_cast<std::uint32_t>(std::stoi(gpu.substr(3)));
      d.thousandths = GpuThousandths{kThousandths.at(*d.profile)}.narrow<std::uint16_t>();
      d.start = start[d.gpu];
      start[d.gpu] = static_cast<std::uint16_t>(d.start + 1);
    }
    g.devices.push_back(d);
  }
  return out;
}

void Month::place(const Attempt& a) {
  const JobId id = submitted(a);
  std::vector<Grant>& held = grants_[id];
  held.clear();
  event::JobPlaced e;
  e.job = id;
  e.attempt = gantry::Attempt(state_.jobs.at(id).attempt.value() + 1);
  for (const std::string& node : a.nodes) {
    held.push_back(grant_of(node));
    e.grants.push_back(held.back().grant);
    e.exclusive |= held.back().exclusive;
  }
  Holding holding = holding_of(state_, e.grants, e.exclusive);
  e.plan = plan_of(state_, state_.jobs.at(id), a.placed);
  e.items = std::move(holding.items);
  e.held = std::move(holding.held);
  apply(a.placed, e);
}

// The attempt ends when the last of its nodes has released its resources.
void Month::end(const Attempt& a) {
  const JobId id = jobs_.at(a.job);
  Instant at{};
  for (const Grant& grant : grants_.at(id)) at = std::max(at, grant.until);
  if (attempts_left_.at(a.job) > 0) {
    --attempts_left_.at(a.job);
    event::JobRequeued e;
    e.job = id;
    e.why = a.how == "preempted"       ? RequeueWhy::preempted
            : a.how == "node_fail"     ? RequeueWhy::node_failure
            : a.how == "launch_failed" ? RequeueWhy::launch_failure
                                       : RequeueWhy::asked;
    return apply(at, e);
  }
  event::JobEnded e;
  e.job = id;
  for (const auto& [outcome, name] : enum_names(Outcome{}))
    if (name == a.how) e.outcome = outcome;
  REQUIRE(enum_name(e.outcome) == a.how);
  apply(at, e);
}

void Month::play() {
  std::vector<Attempt> attempts;
  for (const std::string& line : split_at(read_source("month.txt"), '\n')) {
    if (line.starts_with('#')) continue;
    const std::vector<std::string> w = split_at(line, ' ');
    REQUIRE(w.size() == 10);
    Attempt a{w[0], w[1], w[2], w[3], w[4], w[5], w[6], utc_time(w[7]), std::nullopt, {}};
    if (w[8] != "-") a.saved = utc_time(w[8]);
    a.nodes = split_at(w[9], ';');
    attempts_left_[a.job] += attempts_left_.contains(a.job) ? 1 : 0;
    attempts.push_back(std::move(a));
  }
  // The events are sorted by time; at the same instant, ends come before starts.
  std::vector<std::tuple<Instant, int, std::size_t, std::function<void()>>> story;
  story.emplace_back(utc_time("2026-11-10T12:34:56.789012"), 0, 0, [this] {
    change_prices(utc_time("2026-11-10T12:34:56.789012"), "november", "a100", Money{2'050'000});
  });
  for (const Attempt& a : attempts) {
    const std::size_t n = story.size();
    story.emplace_back(a.placed, 4, n, [this, &a] { place(a); });
    Instant last{};
    for (std::size_t i = 0; i < a.nodes.size(); ++i) {
      const Instant until = utc_time(split_at(a.nodes[i], '/').at(5));
      last = std::max(last, until);
      story.emplace_back(until, 2, n, [this, &a, i, until] {
        if (state_.jobs.at(jobs_.at(a.job)).phase != Phase::finishing)
          apply(until, event::JobFinishing{jobs_.at(a.job), Outcome::completed, {}, "", {}, {}});
        event::NodeExited e;
        e.job = jobs_.at(a.job);
        e.node = grants_.at(e.job).at(i).node;
        apply(until, e);
      });
    }
    story.emplace_back(last, 3, n, [this, &a] { end(a); });
    if (a.saved)
      story.emplace_back(*a.saved, 1, n, [this, &a] {
        apply(*a.saved, event::JobCheckpointed{jobs_.at(a.job), *a.saved});
      });
  }
  std::stable_sort(story.begin(), story.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  for (const auto& [at, order, n, tell] : story) tell();
}

}  // namespace gantry::test
