// Documents about people and rules: they are read, checked, written and read again.
#include "tests/tenancy/sample.h"

#include "config/tenancy/capacity.h"
#include "config/tenancy/check.h"
#include "config/tenancy/write.h"

namespace gantry::tenancy::rules_test {

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

const char* const kTenant =
    "label_rules:\n  code: {}\n  team: {values: [vision, nlp], default: nlp}\n"
    "roles:\n  user: {users: [ann, ben], groups: [ml], until: {ben: 2026-12-31, ml: "
    "2027-01-01T18:30}}\n  trial: {users: [carl]}\n";

}  // namespace

TEST_CASE("roles with an end, roles of the site's own and labels are written as they are read") {
  const auto documents = read_all(doc("Tenant", "red", kTenant));
  const auto& tenant = std::get<Tenant>(documents.at(0));
  REQUIRE(tenant.grants.size() == 4);
  for (const Grant& grant : tenant.grants) {
    CHECK(grant.until.has_value() == (grant.user == "ben" || grant.group == "ml"));
    CHECK((grant.custom == "trial") == (grant.user == "carl"));
    if (grant.user == "ben") CHECK(*grant.until == Instant{1'798'675'200'000'000});
  }
  REQUIRE(tenant.label_rules.size() == 2);
  const std::string text = to_text(documents.at(0));
  CHECK(text.find("until:\n      ben: 2026-12-31\n      ml: 2027-01-01T18:30") !=
        std::string::npos);
  CHECK(read_all(text) == documents);
}

TEST_CASE("a role of the site's own and a policy are written as they are read") {
  const std::string text =
      doc("Role", "trial", "base: user\nwithout: [see]\ngpu_models: [T4, a100]\n") +
      doc("Policy", "wide",
          "mode: audit\naction: default\norder: 3\nmatch: {gpus: \">8\", labels.team: \"?*\"}\n"
          "unless: {user: \"ann|ben\"}\nset: {type: training}\nmessage: ask first\n");
  auto documents = read_all(text);
  CHECK(std::get<CustomRole>(documents.at(0)).gpu_models == std::vector<std::string>{"t4", "a100"});
  const auto& policy = std::get<Policy>(documents.at(1));
  CHECK(policy.mode == PolicyMode::audit);
  CHECK(policy.action == PolicyAction::set);
  CHECK(policy.match.at("labels.team") == "?*");
  std::string again;
  for (const Document& document : documents) again += "---\n" + to_text(document);
  CHECK(read_all(again) == documents);
}

TEST_CASE("what documents about people and rules may not say") {
  CHECK(checked(doc("Tenant", "red", kTenant)) ==
        "Tenant red: roles: there is no role `trial`; there are auditor, viewer, user, "
        "tenant-admin, operator, admin");
  CHECK(checked(doc("Tenant", "red", kTenant) + doc("Role", "trial")) == "good");
  CHECK(checked(doc("Tenant", "red", "label_rules: {\"a b\": {}}\n")) ==
        "Tenant red: label_rules: `a b` is no key of a label; use 1 to 63 letters, digits, '-', "
        "'_', '.' and '/'");
  CHECK(checked(doc("Tenant", "red", "label_rules: {t: {values: [a], default: b}}\n")) ==
        "Tenant red: label_rules.t.default: is none of the values");
  CHECK(checked(doc("Role", "x", "gpus: false\ngpu_models: [t4]\n")) ==
        "Role x: gpu_models: names models, and `gpus: false` forbids all");
  CHECK(checked(doc("Policy", "x", "match: {gpus: many}\n")).starts_with("Policy x: match.gpus: "));
  CHECK(checked(doc("Policy", "x", "order: 2000000\n")) ==
        "Policy x: order: is outside of -1000000 to 1000000");
}

TEST_CASE("the plan warns of roles that reach far") {
  const auto documents =
      read_all(doc("Tenant", "ops",
                   "quota: {cpu: 1}\nroles:\n  operator: {groups: [staff], users: [ann]}\n"
                   "  admin: {users: [ben, carl], until: {carl: 2026-12-31}}\n"));
  Resources each;
  each.row(Resource::cpu) = 64'000;
  const std::vector<proto::NodesAlike> nodes{{"n1", {}, "", each}};
  CHECK(warnings_of(documents, nodes) ==
        std::vector<std::string>{
            "Tenant ops: roles.operator of the group staff reaches the whole cluster, and whoever "
            "fills the group decides who has it",
            "Tenant ops: ben is administrator of the whole cluster without an end; `until` of the "
            "role gives it one"});
}

}  // namespace gantry::tenancy::rules_test
