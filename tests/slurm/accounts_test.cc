// The test applies sacctmgr's changes to tenancy documents, and writes and reads sacctmgr's dump
// file.
#include <doctest/doctest.h>

#include "cli/slurm/accounts/sacctmgr_change.h"

namespace gantry::cli::slurm {
namespace {

proto::TenancyDocuments fraud_only() {
  tenancy::Tenant fraud;
  fraud.name = "fraud";
  fraud.projects = {{"retraining", 3, {{"alice", 2}}}, {"research", 1, {}}};
  fraud.grants = {{tenancy::Role::user, "alice", ""}, {tenancy::Role::viewer, "carol", ""}};
  proto::TenancyDocuments documents;
  documents.revision = 7;
  documents.documents = {fraud};
  return documents;
}

const tenancy::Tenant& only_tenant(const proto::ApplyTenancy& changes) {
  REQUIRE(changes.documents.size() == 1);
  return std::get<tenancy::Tenant>(changes.documents[0]);
}

TEST_CASE("an account below root is a tenant, and an account below a tenant is a project") {
  Accounts accounts(fraud_only());
  CHECK(accounts.changes().documents.empty());
  CHECK(accounts.changes().base_revision == 7);
  CHECK(*accounts.add_account("risk", {"root", "Risk", 2}));
  CHECK_FALSE(*accounts.add_account("retraining", {"fraud", {}, {}}));
  CHECK(only_tenant(accounts.changes()).name == "risk");
  CHECK(only_tenant(accounts.changes()).weight == 2000);
  // An account is no partition, as in Slurm, and the partitions decide about the network.
  CHECK(only_tenant(accounts.changes()).own_queue == false);
  CHECK(only_tenant(accounts.changes()).jobs.host_network == true);
  CHECK(*accounts.add_account("scoring", {"risk", {}, 5}));
  CHECK(only_tenant(accounts.changes()).projects ==
        std::vector<tenancy::Project>{{"scoring", 5, {{"nobody", 0}}}});
  CHECK_FALSE(accounts.add_account("x", {"nobody", {}, {}}).has_value());
}

TEST_CASE("an account below a project is a project with a parent, with limits of its own") {
  Accounts accounts(fraud_only());
  Accounts::Settings settings;
  settings.parent = "retraining";
  REQUIRE(read_setting("MaxNodes", "2", settings));
  REQUIRE(read_setting("GrpNodes", "3", settings));
  CHECK(*accounts.add_account("night", settings));
  settings.parent = "night";
  CHECK(*accounts.add_account("deep", settings));
  REQUIRE(accounts.add_user("bob", "deep", {}));
  const tenancy::Tenant fraud = only_tenant(accounts.changes());
  REQUIRE(fraud.projects.size() == 4);
  CHECK(fraud.projects[2].parent == "retraining");
  CHECK(fraud.projects[3].parent == "night");
  CHECK(fraud.projects[3].users == std::vector<tenancy::UserShare>{{"bob", 1}});
  CHECK(fraud.associations.at("deep") == fraud.associations.at("night"));
  CHECK(fraud.associations.at("deep").find("node=3") != std::string::npos);
  CHECK(tenancy::projects_above(fraud.projects, "deep") ==
        std::vector<std::string>{"night", "retraining"});
  // A dump keeps the levels.
  const std::string dump = accounts.dump("here");
  CHECK(dump.find("Parent - 'night'\nAccount - 'deep'") != std::string::npos);
  proto::TenancyDocuments none;
  Accounts again(none);
  std::vector<std::string> ignored;
  REQUIRE(load_dump(dump, again, ignored));
  CHECK(ignored.empty());
  CHECK(again.dump("here") == dump);
}

TEST_CASE("a user has a role in the tenant and a share in the project") {
  Accounts accounts(fraud_only());
  CHECK(*accounts.add_user("bob", "research", {"", {}, 4}));
  CHECK_FALSE(*accounts.add_user("bob", "research", {}));
  CHECK(*accounts.add_user("carol", "fraud", {}));  // Before this, carol could only look.
  CHECK_FALSE(accounts.add_user("dave", "nope", {}).has_value());
  REQUIRE(accounts.modify_user("alice", "retraining", {"", {}, 9}));
  const tenancy::Tenant fraud = only_tenant(accounts.changes());
  CHECK(fraud.projects[0].users == std::vector<tenancy::UserShare>{{"alice", 9}});
  CHECK(fraud.projects[1].users == std::vector<tenancy::UserShare>{{"bob", 4}});
  CHECK(fraud.grants.size() == 4);
  // A project without a list of users is open to everybody. Removing its last user must not open
  // it.
  REQUIRE(accounts.remove_user("alice", "retraining"));
  CHECK(only_tenant(accounts.changes()).projects[0].users ==
        std::vector<tenancy::UserShare>{{"nobody", 0}});
  CHECK(*accounts.add_user("bob", "retraining", {}));
  CHECK(only_tenant(accounts.changes()).projects[0].users ==
        std::vector<tenancy::UserShare>{{"bob", 1}});
  REQUIRE(accounts.remove_user("alice", ""));
  CHECK(only_tenant(accounts.changes()).grants.size() == 3);
  CHECK_FALSE(accounts.remove_user("alice", "").has_value());
}

TEST_CASE("a user has one default account, which an association has to be with") {
  Accounts accounts(fraud_only());
  CHECK(*accounts.add_account("risk", {"root", {}, {}}));
  CHECK(*accounts.add_user("zoe", "risk", {}));
  CHECK(accounts.default_account_of("zoe") == "risk");  // the first one
  CHECK(*accounts.add_user("zoe", "research", {}));
  CHECK(accounts.default_account_of("zoe") == "risk");
  Accounts::Settings other;
  other.default_account = "research";
  REQUIRE(accounts.modify_user("zoe", "", other));
  CHECK(accounts.default_account_of("zoe") == "research");
  other.default_account = "retraining";
  CHECK_FALSE(accounts.modify_user("zoe", "", other).has_value());
  REQUIRE(accounts.remove_user("zoe", "research"));
  CHECK(accounts.default_account_of("zoe").empty());
  // Alice had an association before, and no default account was chosen.
  CHECK(*accounts.add_user("alice", "risk", {}));
  CHECK(accounts.default_account_of("alice").empty());
}

TEST_CASE("accounts have a description and an organization") {
  Accounts accounts(fraud_only());
  Accounts::Settings texts;
  texts.description = "Models";
  texts.organization = "Bank";
  REQUIRE(accounts.modify_account("fraud", texts));
  REQUIRE(accounts.modify_account("research", texts));
  const tenancy::Tenant fraud = only_tenant(accounts.changes());
  CHECK(fraud.description == "Models");
  CHECK(fraud.organization == "Bank");
  CHECK(fraud.projects[1].description == "Models");
  CHECK(fraud.projects[1].organization == "Bank");
}

TEST_CASE("removing an account removes the project from its tenant, or the whole tenant") {
  Accounts accounts(fraud_only());
  REQUIRE(accounts.modify_account("research", {"", {}, 8}));
  REQUIRE(accounts.remove_account("retraining"));
  CHECK(only_tenant(accounts.changes()).projects ==
        std::vector<tenancy::Project>{{"research", 8, {}}});
  REQUIRE(accounts.remove_account("fraud"));
  const auto changes = accounts.changes();
  CHECK(changes.documents.empty());
  CHECK(changes.removals == std::vector<proto::DocumentRef>{{"Tenant", "fraud"}});
  CHECK_FALSE(accounts.remove_account("fraud").has_value());
}

TEST_CASE("a dump that is read again gives the same accounts") {
  const Accounts from(fraud_only());
  proto::TenancyDocuments none;
  Accounts to(none);
  std::vector<std::string> ignored;
  REQUIRE(load_dump(from.dump("here"), to, ignored));
  CHECK(ignored.empty());
  CHECK(to.dump("here") == from.dump("here"));
}

TEST_CASE("limits of accounts and users are kept in the tenant's document, and dumped") {
  Accounts accounts(fraud_only());
  Accounts::Settings limits;
  for (const auto& [key, value] : {std::pair<const char*, const char*>{"GrpTRES", "node=2,cpu=8"},
                                   {"GrpCPUMins", "60"},
                                   {"MaxJobs", "3"},
                                   {"GrpWall", "90"}})
    REQUIRE(read_setting(key, value, limits));
  REQUIRE(accounts.modify_account("fraud", limits));
  Accounts::Settings of_user;
  REQUIRE(read_setting("MaxJobs", "1", of_user));
  REQUIRE(read_setting("Priority", "9", of_user));
  REQUIRE(accounts.add_user("ann", "retraining", of_user));
  const tenancy::Tenant fraud = only_tenant(accounts.changes());
  CHECK(fraud.associations ==
        std::map<std::string, std::string>{
            {"fraud", "GrpTRES=node=2|GrpTRESMins=cpu=60|GrpWall=01:30:00|MaxJobs=3"},
            {"retraining/ann", "MaxJobs=1|Priority=9"}});
  REQUIRE(fraud.quota.size() == 1);  // cores of the whole tenant are its quota
  CHECK(fraud.quota[0].nominal == 8 * kCoreUnit);
  Accounts to{proto::TenancyDocuments{}};
  std::vector<std::string> ignored;
  REQUIRE(load_dump(accounts.dump("here"), to, ignored));
  CHECK(ignored.empty());
  CHECK(only_tenant(to.changes()).associations == fraud.associations);
  Accounts::Settings none;
  REQUIRE(read_setting("MaxJobs", "-1", none));
  REQUIRE(read_setting("Priority", "-1", none));
  REQUIRE(accounts.modify_user("ann", "retraining", none));
  CHECK(only_tenant(accounts.changes()).associations.size() == 1);
  CHECK_FALSE(read_setting("MaxJobs", "many", none).has_value());
  CHECK_FALSE(read_setting("RawUsage", "5", none).has_value());
}

TEST_CASE("loading a dump from Slurm names the settings that have no counterpart") {
  Accounts accounts(proto::TenancyDocuments{});
  std::vector<std::string> ignored;
  const auto done = load_dump(
      "# To edit this file start with a cluster line\n"
      "Cluster - 'old':Fairshare=1:QOS='normal':MaxJobs=50\n"
      "Parent - 'root'\n"
      "User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1\n"
      "Account - 'physics':Description='physics: all of "
      "it':Organization='p':Fairshare=10:GrpTRES=gres/gpu=8\n"
      "Parent - 'physics'\n"
      "User - 'ann':DefaultAccount='physics':Fairshare=3\n"
      "Account - 'optics':Description='optics':Organization='p':Fairshare=2\n"
      "Parent - 'optics'\n"
      "User - 'bob':DefaultAccount='optics':Fairshare=4:MaxJobs=2\n",
      accounts, ignored);
  REQUIRE_MESSAGE(done, done.error().message);
  CHECK(ignored == std::vector<std::string>{
                       "cluster old: MaxJobs=50", "user root: AdminLevel=Administrator",
                       "user root of the root account", "user ann: Fairshare=3 of physics"});
  const tenancy::Tenant physics = only_tenant(accounts.changes());
  CHECK(physics.description == "physics: all of it");
  CHECK(physics.weight == 10'000);
  REQUIRE(physics.quota.size() == 1);
  CHECK(physics.quota[0].resource == Resource::gpu);
  CHECK(physics.quota[0].nominal == 8 * kGpuUnit);
  CHECK(physics.quota[0].borrow == 0);
  CHECK(physics.organization == "p");
  CHECK(physics.projects == std::vector<tenancy::Project>{{"optics", 2, {{"bob", 4}}, "", "p"}});
  CHECK(physics.default_accounts ==
        std::map<std::string, std::string>{{"ann", "physics"}, {"bob", "optics"}});
  CHECK(physics.grants.size() == 2);
  CHECK(physics.associations == std::map<std::string, std::string>{{"optics/bob", "MaxJobs=2"}});
  const auto bad = load_dump("Nonsense\n", accounts, ignored);
  REQUIRE_FALSE(bad);
  CHECK(bad.error().message.starts_with("line 1: "));
}

}  // namespace
}  // namespace gantry::cli::slurm
