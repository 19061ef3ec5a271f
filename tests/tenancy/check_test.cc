// The rules between documents: a set that breaks one is refused, and some oddities only give a
// warning.
#include "tests/tenancy/sample.h"

#include "config/tenancy/capacity.h"
#include "config/tenancy/check.h"

using namespace gantry;
using namespace gantry::tenancy;
using namespace gantry::test;

namespace {

std::string doc(const std::string& kind, const std::string& name, const std::string& rest = "") {
  return "---\napiVersion: gantry/v1\nkind: " + kind + "\nname: " + name + "\n" + rest;
}

std::string checked(const std::string& text) {
  const auto documents = read_all(text);
  const auto done = check_documents(documents);
  return done ? "good" : done.error().message;
}

std::vector<proto::NodesAlike> nodes(const std::string& hosts, std::int64_t gpus) {
  Resources each;
  each.row(Resource::gpu) = gpus * kGpuUnit;
  each.row(Resource::cpu) = 64'000;
  return {{hosts, {"ib"}, "a100", each}};
}

}  // namespace

TEST_CASE("each name that a document refers to must exist") {
  CHECK(checked(doc("Tenant", "a", "cohort: ml\n") + doc("Cohort", "mlp")) ==
        "Tenant a: cohort: there is no Cohort `ml`; did you mean `mlp`?");
  CHECK(checked(doc("Tenant", "a", "tier: gold\n")) == "Tenant a: tier: there is no Tier `gold`");
  CHECK(checked(doc("Tenant", "a", "default_class: best-efort\n")) ==
        "Tenant a: default_class: there is no PriorityClass `best-efort`; did you mean "
        "`best-effort`?");
  CHECK(checked(doc("Tenant", "a", "allowed_classes: [normal, x]\n")) ==
        "Tenant a: allowed_classes: there is no PriorityClass `x`");
  CHECK(checked(doc("Tenant", "a", "node_pools: [p]\n")) ==
        "Tenant a: node_pools: there is no NodePool `p`");
  CHECK(checked(doc("Tenant", "a", "quota: {flavors: {h100: {gpu: 8}}}\n")) ==
        "Tenant a: quota.flavors.h100: there is no Flavor `h100`");
  CHECK(checked(doc("Cohort", "c", "parent: d\n")) == "Cohort c: parent: there is no Cohort `d`");
  CHECK(checked(doc("Flavor", "f", "node_pool: p\n")) ==
        "Flavor f: node_pool: there is no NodePool `p`");
  CHECK(checked(doc("NodePool", "p", "nodes: n1\ntenant: t\n")) ==
        "NodePool p: tenant: there is no Tenant `t`");
  CHECK(checked(doc("Tier", "t", "default_class: x\n")) ==
        "Tier t: default_class: there is no PriorityClass `x`");
}

TEST_CASE("cohorts must form a tree of limited depth") {
  CHECK(checked(doc("Cohort", "a", "parent: b\n") + doc("Cohort", "b", "parent: a\n")) ==
        "Cohort a: parent: goes in a circle: a -> b -> a");
  CHECK(checked(doc("Cohort", "a", "parent: b\n") + doc("Cohort", "b", "parent: b\n")) ==
        "Cohort a: parent: goes in a circle: a -> b -> b");
  std::string deep;
  for (int i = 0; i < 9; ++i)
    deep += doc("Cohort", "c" + std::to_string(i),
                i < 8 ? "parent: c" + std::to_string(i + 1) + "\n" : "");
  CHECK(checked(deep).starts_with("Cohort c0: parent: is nested more than 8 deep: c0 -> c1"));
}

TEST_CASE("exactly one class is the default") {
  const std::string fast = doc("PriorityClass", "fast", "value: 9\ndefault: true\n");
  // The built-in class `normal` is still the default.
  CHECK(checked(doc("PriorityClass", "slow")) == "good");
  CHECK(checked(fast + doc("PriorityClass", "slow", "default: true\n")) ==
        "PriorityClass slow: default: `fast` is the default already; one class can be");
  CHECK(checked(doc("PriorityClass", "normal", "value: 400\n")) ==
        "PriorityClass normal: default: no class is the default any more; one needs `default: "
        "true`");
  CHECK(checked(fast + doc("PriorityClass", "normal", "value: 400\n")) == "good");
}

TEST_CASE("quota, names and the people in a document are checked") {
  CHECK(checked(doc("Tenant", "a", "quota: {gpu: {nominal: 8, lend: 9}}\n")) ==
        "Tenant a: quota.gpu: `lend` is more than nominal, and only what is owned can be lent");
  CHECK(checked(doc("Tenant", "a", "default_class: normal\nallowed_classes: [best-effort]\n")) ==
        "Tenant a: default_class: `normal` is none of its allowed_classes");
  CHECK(checked(doc("Tenant", "a", "defaults: {time: 2h}\nlimits: {time: 1h}\n")) ==
        "Tenant a: defaults.time: is longer than limits.time");
  CHECK(checked(doc("Tenant", "a") + doc("Tenant", "a")) == "Tenant a: name: is there twice");
  // Another program may send documents that no file could have, so they are checked too.
  Tenant t;
  t.name = "a";
  t.grants.push_back({Role::user, "x", "y"});
  std::vector<Document> documents{t};
  CHECK(check_documents(documents).error().message ==
        "Tenant a: roles.user: each grant is to a user or to a group");
  t.grants.clear();
  t.quota = {{"", Resource::gpu, -1, {}, {}}};
  documents = {t};
  CHECK(check_documents(documents).error().message == "Tenant a: quota.gpu: is below 0");
  t.name = "a b";
  documents = {t};
  CHECK(check_documents(documents).error().message.starts_with("Tenant a b: name: \"a b\" is not"));
}

TEST_CASE("a tenant has limited numbers of grants, projects, users and classes") {
  const auto said = [](const Tenant& t) {
    const std::vector<Document> documents{t};
    const auto done = check_documents(documents);
    return done ? "good" : done.error().message;
  };
  const auto tenant = [] {
    Tenant t;
    t.name = "a";
    return t;
  };
  const auto name = [](std::size_t i) { return "u" + std::to_string(i); };
  Tenant t = tenant();
  for (std::size_t i = 0; i < kMostGrants; ++i) t.grants.push_back({Role::user, name(i), {}});
  CHECK(said(t) == "good");
  t.grants.push_back({Role::viewer, {}, "all"});
  CHECK(said(t) ==
        "Tenant a: roles: has 5001 grants; a tenant may have 5000, and one to a group holds for "
        "all who are in it");
  t = tenant();
  for (std::size_t i = 0; i < kMostProjects; ++i) t.projects.push_back({name(i), 1, {}});
  CHECK(said(t) == "good");
  t.projects.push_back({"more", 1, {}});
  CHECK(said(t) == "Tenant a: projects: has 1001 projects; a tenant may have 1000");
  t.projects.clear();
  for (std::size_t i = 0; i < 10; ++i) {
    Project& p = t.projects.emplace_back(Project{name(i), 1, {}});
    for (std::size_t j = 0; j < kMostProjectUsers / 10; ++j) p.users.push_back({name(j), 1});
  }
  CHECK(said(t) == "good");
  t.projects.back().users.push_back({"more", 1});
  CHECK(said(t) ==
        "Tenant a: projects.u9.users: with them the projects name 20001 users; those of a tenant "
        "may name 20000");
  t = tenant();
  for (std::size_t i = 0; i < kMostTenantClasses; ++i) t.classes.push_back({name(i), 0});
  CHECK(said(t) == "good");
  t.classes.push_back({"more", 0});
  CHECK(said(t) == "Tenant a: classes: has 101 classes; a tenant may have 100");
}

TEST_CASE("a user has one default account, which is the tenant or a project of it") {
  const std::string project = "projects: {p: {shares: 2, description: P}}\n";
  CHECK(checked(doc("Tenant", "a", project + "default_accounts: {ann: p, bob: a}\n") +
                doc("Cluster", "elsewhere")) == "good");
  CHECK(checked(doc("Tenant", "a", project + "default_accounts: {ann: q}\n")) ==
        "Tenant a: default_accounts.ann: `q` is neither a project of the tenant nor the tenant");
  CHECK(
      checked(doc("Tenant", "a", "default_accounts: {ann: a}\n") +
              doc("Tenant", "b", "default_accounts: {ann: b}\n")) ==
      "Tenant b: default_accounts.ann: tenant `a` has a default account of the same user, who can "
      "have one");
}

TEST_CASE("a project stands below another one of its tenant, and not below itself") {
  CHECK(checked(doc("Tenant", "a", "projects: {p: {}, q: {parent: p}, r: {parent: q}}\n")) ==
        "good");
  CHECK(checked(doc("Tenant", "a", "projects: {p: {parent: s}}\n")) ==
        "Tenant a: projects.p.parent: there is no project `s` in the tenant");
  CHECK(checked(doc("Tenant", "a", "projects: {p: {parent: q}, q: {parent: p}}\n")) ==
        "Tenant a: projects.p.parent: is below itself");
  CHECK(checked(doc("Tenant", "a", "projects: {a: {parent: p}, p: {}}\n")) ==
        "Tenant a: projects.a.parent: the project of the tenant's own name is the top one");
  CHECK(checked(doc("Tier", "t", "projects: {p: {parent: p}}\n")) ==
        "Tier t: projects.p.parent: is below itself");
}

TEST_CASE("a node has only one owning tenant, and the domains of a topology nest") {
  CHECK(checked(doc("Tenant", "a") + doc("Tenant", "b") +
                doc("NodePool", "p", "nodes: n[1-4]\ntenant: a\n") +
                doc("NodePool", "q", "nodes: n[4-8]\ntenant: b\n")) ==
        "NodePool q: nodes: `n4` is `a`'s own already, by pool `p`");
  const std::string two =
      "levels: [block, rack]\ndomains:\n  block: {b1: 'n[1-4]', b2: 'n[5-8]'}\n";
  CHECK(checked(doc("Topology", "t", two + "  rack: {r1: 'n[1-2]', r2: 'n[5-6]'}\n")) == "good");
  CHECK(checked(doc("Topology", "t", two + "  rack: {r1: 'n[4-5]'}\n")) ==
        "Topology t: domains.rack.r1: lies in several domains of the wider level: `n5` is in "
        "`b2`, others in `b1`");
  CHECK(checked(doc("Topology", "t", two + "  rack: {r1: 'n[1-2]', r2: 'n2'}\n")) ==
        "Topology t: domains.rack.r2: `n2` is in `r1` already");
  CHECK(checked(doc("Topology", "t", "levels: [rack]\ndomains: {rak: {a: n1}}\n")) ==
        "Topology t: domains.rak: is none of `levels`; did you mean `rack`?");
  CHECK(checked(doc("Topology", "t", "levels: [rack]\n") +
                doc("Topology", "u", "levels: [rack]\n")) ==
        "Topology t: there is another Topology; a cluster has one");
}

TEST_CASE("warnings name excess guarantees, useless borrowing and tenants without users") {
  const auto documents = read_all(
      doc("Tenant", "a", "quota: {gpu: {nominal: 30, borrow: 4}}\nroles: {user: {users: [x]}}\n") +
      doc("Tenant", "b", "tier: t\n") +
      doc("Tier", "t", "quota: {gpu: 3, flavors: {f: {gpu: 40}}}\nroles: {user: {groups: [g]}}\n") +
      doc("Flavor", "f", "features: [ib]\n") + doc("NodePool", "p", "nodes: x1\n") +
      doc("Tenant", "c"));
  const auto warnings = warnings_of(documents, nodes("n[1-4]", 8));
  CHECK(warnings ==
        std::vector<std::string>{
            "Tenant a: is in no cohort, so there is nobody to borrow from: its borrowing limits "
            "have no effect",
            "Tenant c: has no quota: it may use everything that is free",
            "Tenant c: has no roles: only administrators can use it",
            "33 gpu are guaranteed in all, and the cluster has 32: not every guarantee can be "
            "kept at one time",
            "40 gpu of f are guaranteed in all, and the cluster has 32: not every guarantee can be "
            "kept at one time",
            "NodePool p: no node of the cluster is in it"});
}

TEST_CASE("a node belongs to the matching flavor that has the most conditions") {
  const auto documents = read_all(doc("Flavor", "any") + doc("Flavor", "gpu", "gpu_model: a100\n") +
                                  doc("Flavor", "special", "gpu_model: a100\nnode_pool: p\n") +
                                  doc("NodePool", "p", "nodes: n[1-2]\n"));
  const auto capacity = capacity_of(documents, nodes("n[1-5]", 8));
  CHECK(capacity.total[Resource::gpu] == 40'000);
  CHECK(capacity.flavors.at("special")[Resource::gpu] == 16'000);
  CHECK(capacity.flavors.at("gpu")[Resource::gpu] == 24'000);
  CHECK_FALSE(capacity.flavors.contains("any"));
}
