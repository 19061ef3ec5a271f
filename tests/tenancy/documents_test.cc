// The documents in Gantry's own form: the test checks what is read, the words in which mistakes are
// refused, and that written documents are read again as the same.
#include "tests/tenancy/sample.h"

#include "config/tenancy/amounts.h"
#include "config/tenancy/capacity.h"

using namespace gantry;
using namespace gantry::tenancy;
using namespace gantry::test;

namespace {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

const std::string kFraud = R"(
# the fraud team
apiVersion: gantry/v1
kind: Tenant
name: fraud
description: 'Fraud detection, "card" and: online'
cohort: ml-platform
tier: production
weight: 1.5
labels: {cost-center: cc-1042, "on-call": "null"}
quota:
  gpus: {nominal: 64, borrow: 128, lend: 32}
  cpu: {guaranteed: 200, burst: 400}
  memory: {guaranteed: 800Gi, burst: 1600G}
  flavors:
    a100: {gpu: 48}
reclaim: lower-class
defaults: {time: 4h, cpus: 2, memory_per_cpu: 4G}
limits:
  time: 7d
  nodes: 20
  per_job: {gpu: 128}
  per_node: {gpu: 8, cpu: 95.5, memory: 768Gi}
  queued_jobs: 2000
  running_jobs: 500
  submits_per_minute: 600
projects:
  retraining: {shares: 3, users: {alice: 2, bob: 1}}
  research:
roles:
  tenant-admin: {users: [alice], groups: [fraud-leads]}
  user: {groups: fraud}
classes: {critical: 500000, standard: 100000}
default_class: normal
allowed_classes: [normal, production-critical]
node_pools: [shared]
)";

const std::string kCluster = R"(
apiVersion: gantry/v1
kind: Cohort
name: ml-platform
parent: company
weight: 2
quota: {gpu: 40}
---
apiVersion: gantry/v1
kind: Tier
name: production
limits: {time: 7d}
default_class: normal
---
# only a comment
---
apiVersion: gantry/v1
kind: PriorityClass
name: urgent
value: 2000
preempts: true
preemptible: false
victim_mode: suspend
grace: 1m30s
min_run_time: 10m
max_preemptions: 3
age_step: 2h
---
apiVersion: gantry/v1
kind: Flavor
name: a100
node_pool: shared
gpu_model: A100
features: [nvlink]
charge: {gpu: 1.5, cpu: 0.01}
---
apiVersion: gantry/v1
kind: NodePool
name: shared
nodes: n[01-80]
taints: [hipaa]
gpu_jobs_only: true
---
apiVersion: gantry/v1
kind: Topology
name: hall
levels: [block, rack]
domains:
  block: {b1: "n[01-40]", b2: "n[41-80]"}
  rack: {r1: "n[01-20]"}
)";

const std::vector<proto::NodesAlike> kNodes{{"n[01-03]", {}, "a100", [] {
                                               Resources r;
                                               r.row(Resource::cpu) = 96'000;
                                               r.row(Resource::memory) = 768 * kGib;
                                               r.row(Resource::gpu) = 8'000;
                                               return r;
                                             }()}};

std::string head(const std::string& rest) {
  return "apiVersion: gantry/v1\nkind: Tenant\nname: fraud\n" + rest;
}

}  // namespace

TEST_CASE("rates are read as quota, defaults and limits, and written as they were read") {
  const std::string text = head(
      "quota: {io: {nominal: 2G, borrow: 500M}, net: 10G}\n"
      "defaults: {io: 100M, net: 1G}\nlimits: {per_node: {io: 1G}}\n");
  const auto documents = read_all(text);
  REQUIRE(documents.size() == 1);
  const Tenant& t = std::get<Tenant>(documents[0]);
  REQUIRE(t.quota.size() == 2);
  CHECK(t.quota[0] == QuotaLine{"", Resource::io, 2'000'000'000, 500'000'000, std::nullopt});
  CHECK(t.quota[1] == QuotaLine{"", Resource::net, 10'000'000'000, std::nullopt, std::nullopt});
  CHECK(t.jobs.default_io == 100'000'000);
  CHECK(t.jobs.default_net == 1'000'000'000);
  CHECK(t.jobs.max_per_node.value()[Resource::io] == 1'000'000'000);
  CHECK(read_all(to_text(documents)) == documents);
}

TEST_CASE("every field of a tenant document is read") {
  const auto documents = read_all(kFraud);
  REQUIRE(documents.size() == 1);
  const Tenant& t = std::get<Tenant>(documents[0]);
  CHECK(t.name == "fraud");
  CHECK(t.cohort == "ml-platform");
  CHECK(t.weight == 1500u);
  REQUIRE(t.quota.size() == 4);
  CHECK(t.quota[0] == QuotaLine{"", Resource::gpu, 64'000, 128'000, 32'000});
  CHECK(t.quota[1] == QuotaLine{"", Resource::cpu, 200'000, 200'000, std::nullopt});
  CHECK(t.quota[2] == QuotaLine{"", Resource::memory, 800 * kGib, 800 * kGib, std::nullopt});
  CHECK(t.quota[3] == QuotaLine{"a100", Resource::gpu, 48'000, std::nullopt, std::nullopt});
  CHECK(t.reclaim == Reclaim::lower);
  CHECK(t.jobs.default_time == hours(4));
  CHECK(t.jobs.max_per_node.value()[Resource::cpu] == 95'500);
  CHECK(t.counts.queued_jobs == 2000u);
  CHECK_FALSE(t.counts.array_tasks);
  REQUIRE(t.projects.size() == 2);
  CHECK(t.projects[1].users[0] == UserShare{"alice", 2});
  CHECK(t.projects[0].shares == 1);
  REQUIRE(t.grants.size() == 3);
  CHECK(t.grants[0] == Grant{Role::user, "", "fraud"});
  CHECK(t.grants[1] == Grant{Role::tenant_admin, "alice", ""});
  CHECK(t.classes[0] == TenantClass{"critical", 500'000});
  CHECK(t.labels.at("on-call") == "null");
}

TEST_CASE("the documents that describe the cluster are read") {
  const auto documents = read_all(kCluster);
  REQUIRE(documents.size() == 6);
  const auto& c = std::get<PriorityClass>(documents[2]);
  CHECK(c.value == 2000);
  CHECK(c.victim_mode == VictimMode::suspend);
  CHECK(c.grace == seconds(90));
  CHECK(c.age_step == hours(2));
  const auto& f = std::get<Flavor>(documents[3]);
  CHECK(f.gpu_model == "a100");
  CHECK(f.charge[Resource::gpu] == 1500);
  CHECK(f.charge[Resource::cpu] == 10);
  const auto& t = std::get<Topology>(documents[5]);
  CHECK(t.domains[2] == TopologyDomain{"rack", "r1", "n[01-20]"});
}

TEST_CASE("written documents are read again as the same, with any text in them") {
  auto documents = read_all(kFraud + "---\n" + kCluster);
  CHECK(read_all(to_text(documents)) == documents);
  // These texts need care in YAML. A person or another program may have set them.
  Tenant& t = std::get<Tenant>(documents[0]);
  for (const std::string text :
       {"- a list?", "yes", "~", "null", "a: b", "a #b", "tab\tand\nline", "\"quoted\\\"", "'q'",
        " space ", "{x}", "100%", "%", "@x", "ünï", "0x10", "key:"}) {
    t.description = text;
    t.labels["x"] = text;
    CAPTURE(text);
    CHECK(read_all(to_text(documents)) == documents);
  }
}

TEST_CASE("mistakes are refused with the place, the field, and what is allowed there") {
  CHECK(error_of(head("cohrt: x\n")) == "t.yaml:4:1: unknown key `cohrt`; did you mean `cohort`?");
  CHECK(error_of(head("quota:\n  gppu: 4\n")) ==
        "t.yaml:5:3: quota: unknown key `gppu`; quota is of gpu, cpu, memory, scratch, io and "
        "net; did you mean `gpu`?");
  CHECK(error_of(head("quota: {gpu: many}\n")) ==
        "t.yaml:4:14: quota.gpu: \"many\" is not a number of GPUs; at most three decimal places");
  CHECK(error_of(head("quota: {gpu: 1.5555}\n")) ==
        "t.yaml:4:14: quota.gpu: \"1.5555\" is not a number of GPUs; at most three decimal places");
  CHECK(error_of(head("quota: {gpu: -4}\n")) ==
        "t.yaml:4:14: quota.gpu: \"-4\" is not a number of GPUs; at most three decimal places");
  CHECK(error_of(head("quota: {memory: 800}\n")) ==
        "t.yaml:4:17: quota.memory: \"800\" is not an amount of memory; use a whole number with "
        "Ki, Mi, Gi or Ti");
  CHECK(error_of(head("quota: {cpu: {guaranteed: 200, burst: 100}}\n")) ==
        "t.yaml:4:14: quota.cpu: `burst` is below what is guaranteed");
  CHECK(error_of(head("quota: {cpu: {burst: 100}}\n")) ==
        "t.yaml:4:14: quota.cpu: `nominal` (or `guaranteed`) is missing");
  CHECK(error_of(head("quota: {gpu: 4, gpus: 5}\n")) ==
        "t.yaml:4:17: quota: `gpus` is given twice");
  CHECK(error_of(head("quota: [gpu]\n")) == "t.yaml:4:8: quota: needs keys, not a list");
  CHECK(error_of(head("quota: {gpu: 120%}\n")) ==
        "t.yaml:4:14: quota.gpu: \"120%\" is not a part of the cluster; use 0% to 100%");
  CHECK(error_of(head("weight: heavy\n")) ==
        "t.yaml:4:9: weight: \"heavy\" is not a number with at most three decimal places");
  CHECK(error_of(head("limits: {queued_jobs: -1}\n")) ==
        "t.yaml:4:23: limits.queued_jobs: -1 is outside of 0 to 4294967295");
  CHECK(error_of(head("limits: {queue: 5}\n"))
            .starts_with("t.yaml:4:10: limits: unknown key "
                         "`queue`; known are time, nodes"));
  CHECK(error_of(head("roles: {-boss: {users: [x]}}\n")).starts_with("t.yaml:4:9: roles: "));
  CHECK(error_of(head("roles: {user: {users: [x], until: {y: 2026-12-31}}}\n"))
            .starts_with("t.yaml:4:36: roles.user.until: `y` is neither one of the users"));
  CHECK(error_of(head("label_rules: {team: {value: x}}\n"))
            .starts_with("t.yaml:4:22: label_rules.team: unknown key `value`"));
  CHECK(error_of(head("roles: {user: {users: [\"a b\"]}}\n"))
            .starts_with("t.yaml:4:24: roles.user.users[0]: \"a b\" is not the name"));
  CHECK(error_of(head("reclaim: always\n")) ==
        "t.yaml:4:10: reclaim: \"always\" is none of any, lower-class, never");
  CHECK(
      error_of(head("defaults: {time: 4 parsecs}\n")).starts_with("t.yaml:4:18: defaults.time: "));
  CHECK(error_of("apiVersion: gantry/v1\nkind: Tenat\nname: x\n") ==
        "t.yaml:2:7: kind: \"Tenat\" is no kind of gantry/v1; use Tenant, Cohort, Tier, "
        "PriorityClass, Flavor, NodePool, Topology, PriceBook, Budget, Manifest, Cluster, "
        "License, NetworkProfile, NetworkService, Role, Policy, Dataset, Service; did you "
        "mean `Tenant`?");
  CHECK(error_of("apiVersion: gantry/v1\nkind: Tenant\n") ==
        "t.yaml:1:1: `name` is missing (name)");
  CHECK(error_of(head("name: again\n")) ==
        "t.yaml:4:1: `name` is given twice; the first is in line 3");
  CHECK(error_of("apiVersion: gantry/v1\nkind: Tenant\nname: a/b\n")
            .starts_with("t.yaml:3:7: name: \"a/b\" is not a name; "));
  CHECK(error_of("kind: {\n").starts_with("t.yaml:2:1: not valid YAML"));
}

TEST_CASE("anchors and merge keys are resolved, and a key of the mapping itself wins") {
  const auto documents = read_all(R"(
apiVersion: gantry/v1
kind: Tenant
name: a
quota:
  gpu: &line {nominal: 8, borrow: 8}
  cpu: {<<: *line, borrow: 2}
)");
  const Tenant& t = std::get<Tenant>(documents[0]);
  CHECK(t.quota[0] == QuotaLine{"", Resource::gpu, 8'000, 8'000, std::nullopt});
  CHECK(t.quota[1] == QuotaLine{"", Resource::cpu, 8'000, 2'000, std::nullopt});
}

TEST_CASE("amounts are read and written in every unit") {
  CHECK(parse_amount(Resource::cpu, "0.5") == 500);
  CHECK(parse_amount(Resource::cpu, "500m") == 500);
  CHECK(parse_amount(Resource::memory, "800Gi") == 800 * kGib);
  CHECK(parse_amount(Resource::memory, "800G") == 800 * kGib);
  CHECK(parse_amount(Resource::memory, "7B") == 7);
  CHECK(show_amount(Resource::memory, 1536 * kGib) == "1536Gi");
  CHECK(show_amount(Resource::memory, 7) == "7B");
  CHECK(show_amount(Resource::cpu, 95'500) == "95.5");
  for (const std::string_view bad : {"", "x", "1.2.3", "1x", "1e", "-1", "1 Gi"})
    CHECK_FALSE(parse_quantity(bad));
  CHECK(parse_quantity("1500m") == Thousandths{1500});
  CHECK(parse_quantity("0.1") == Thousandths{100});
  CHECK(parse_quantity("1k") == Thousandths{1'000'000});
  CHECK(parse_quantity("2Ki") == Thousandths{2'048'000});
  CHECK(parse_quantity("1e3") == Thousandths{1'000'000});
  CHECK(parse_quantity("12E-1") == Thousandths{1'200});
  // Such an amount is rounded up, as Kubernetes does.
  CHECK(parse_quantity("100n") == Thousandths{1});
  CHECK(amount_of_quantity(Resource::memory, "100M") == 100'000'000);
  CHECK(amount_of_quantity(Resource::memory, "1.5Gi") == 3 * kGib / 2);
  CHECK_FALSE(amount_of_quantity(Resource::gpu, "500m"));
  CHECK_FALSE(parse_quantity("9Ei"));
  CHECK(parse_part("12.5%")->value() == 125'000);
  CHECK_FALSE(parse_part("12")->has_value());
}

TEST_CASE("shares of the cluster become amounts, and a note says where they were rounded down") {
  auto read = try_read(head("cohort: c\nquota: {gpu: {nominal: 10%, burst: 50%}, cpu: 25%}\n"));
  REQUIRE(read);
  std::vector<std::string> notes;
  const Capacity capacity = capacity_of({}, kNodes);
  REQUIRE(resolve_parts(*read, capacity, notes));
  const Tenant& t = std::get<Tenant>(read->front().document);
  CHECK(t.quota[0] == QuotaLine{"", Resource::gpu, 2'000, 10'000, std::nullopt});
  CHECK(t.quota[1] == QuotaLine{"", Resource::cpu, 72'000, std::nullopt, std::nullopt});
  REQUIRE(notes.size() == 3);
  CHECK(notes[0] == "Tenant fraud: quota.gpu.nominal: 10% of 24 gpu is 2 (rounded down from 2.4)");
  CHECK(notes[2] == "Tenant fraud: quota.cpu: 25% of 288 cpu is 72");

  auto much = try_read(head("quota: {gpu: 60%}\n") + "---\n" +
                       "apiVersion: gantry/v1\nkind: Tenant\nname: b\nquota: {gpu: 41%}\n");
  REQUIRE(much);
  const auto refused = resolve_parts(*much, capacity, notes);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "t.yaml:9:14: quota.gpu: with this, 101% of all gpu are guaranteed; parts sum to at most "
        "100%");
  auto none = try_read(head("quota: {scratch: 10%}\n"));
  CHECK(resolve_parts(*none, capacity, notes).error().message ==
        "t.yaml:4:18: quota.scratch: the cluster has no scratch");
}

TEST_CASE("changes between two sets are named by the fields of the file") {
  const auto before = read_all(kFraud);
  auto after = before;
  Tenant& t = std::get<Tenant>(after[0]);
  t.quota[0].nominal = 96'000;
  t.quota[0].lend.reset();
  t.projects[1].users[1].shares = 4;
  t.grants.erase(t.grants.begin());
  t.cohort.clear();
  Tenant other;
  other.name = "new";
  other.quota.push_back({"", Resource::gpu, 8'000, {}, {}});
  after.emplace_back(other);
  const auto changes = difference(before, after);
  REQUIRE(changes.size() == 2);
  using proto::FieldChange;
  CHECK(changes[0].action == proto::ChangeAction::changed);
  CHECK(changes[0].changes == std::vector<FieldChange>{{"quota.gpu.nominal", "64", "96"},
                                                       {"projects.retraining.users.bob", "1", "4"},
                                                       {"cohort", "ml-platform", ""},
                                                       {"quota.gpu.lend", "32", ""},
                                                       {"roles.user.groups", "[fraud]", ""}});
  CHECK(changes[1].action == proto::ChangeAction::created);
  CHECK(changes[1].changes == std::vector<FieldChange>{{"quota.gpu", "", "8"}});
  const auto same = difference(before, before);
  CHECK(same[0].action == proto::ChangeAction::unchanged);
  const auto gone = difference(after, before);
  CHECK(gone[1].action == proto::ChangeAction::removed);
}

TEST_CASE("a set with changes has replaced, added and removed documents, sorted") {
  const auto base = read_all(kFraud + "---\n" + kCluster);
  Tenant a;
  a.name = "a";
  const std::vector<Document> changed{a};
  const std::vector<proto::DocumentRef> removals{{"Flavor", "a100"}};
  const auto after = with_changes(base, changed, removals);
  REQUIRE(after.size() == base.size());
  CHECK(name_of(after[0]) == "a");
  CHECK(name_of(after[1]) == "fraud");
  CHECK(with_changes(after, changed, removals) == after);
}
