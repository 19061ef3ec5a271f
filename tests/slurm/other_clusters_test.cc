// Accounts and users of other clusters: sacctmgr keeps them as rows of those clusters' documents.
#include <doctest/doctest.h>

#include "cli/slurm/accounts/entity_changes.h"
#include "cli/slurm/accounts/other_accounts.h"
#include "tests/cli/fake_controller.h"

namespace gantry::cli::slurm {
namespace {

using Settings = std::vector<RawSetting>;

proto::TenancyDocuments no_documents() {
  proto::TenancyDocuments documents;
  documents.revision = 7;
  return documents;
}

OtherAccounts two_clusters() {
  OtherAccounts others(no_documents());
  others.add_cluster("east", "");
  others.add_cluster("west", "");
  return others;
}

// The documents as they would be after the changes of `others`.
proto::TenancyDocuments applied(const OtherAccounts& others) {
  proto::ApplyTenancy changes;
  others.add_changes(changes);
  proto::TenancyDocuments documents = no_documents();
  documents.documents = changes.documents;
  return documents;
}

OtherAssociation association(const OtherAccounts& others, const std::string& cluster,
                             const std::string& account, const std::string& user = "") {
  for (OtherAssociation& one : others.associations(cluster))
    if (one.account == account && one.user == user) return one;
  return {};
}

std::string value(const OtherAssociation& one, const std::string& key) {
  const auto it = one.values.find(key);
  return it == one.values.end() ? "" : it->second;
}

TEST_CASE("limits of another cluster's accounts are kept, and inherited below") {
  OtherAccounts others = two_clusters();
  CHECK(*others.add_account("east", "a", Settings{{"maxcpus", "100"}, {"maxnode", "3"}}));
  CHECK_FALSE(*others.add_account("east", "a", {}));
  CHECK(*others.add_account("east", "b", Settings{{"parent", "a"}, {"maxnodes", "5"}}));
  CHECK(*others.add_user("east", "ann", "b", Settings{{"maxwall", "60"}, {"grpmem", "200"}}));
  CHECK(value(association(others, "east", "a"), "MaxTRES") == "cpu=100,node=3");
  CHECK(value(association(others, "east", "b", "ann"), "MaxTRES") == "cpu=100,node=5");
  CHECK(value(association(others, "east", "b", "ann"), "MaxWall") == "01:00:00");
  CHECK(tres_amount(value(association(others, "east", "b", "ann"), "GrpTRES"), "mem") == "200");
  REQUIRE(others.modify_account("east", "b", Settings{{"maxnodes", "-1"}}));
  CHECK(value(association(others, "east", "b", "ann"), "MaxTRES") == "cpu=100,node=3");
  CHECK(value(association(others, "east", "b"), "GrpTRES").empty());  // not inherited
  CHECK_FALSE(others.has_account("west", "a"));
}

TEST_CASE("a value that is none is refused, and so is an unknown key") {
  OtherAccounts others = two_clusters();
  for (const RawSetting& bad : Settings{{"maxjobs", "many"},
                                        {"maxwall", "soon"},
                                        {"grptres", "beds=3"},
                                        {"maxbeds", "3"},
                                        {"defaultqos", "nope"},
                                        {"qos", "nope"},
                                        {"description", "a|b"},
                                        {"maxjobs+", "3"},
                                        {"adminlevel", "king"},
                                        {"parent", "nobody"}}) {
    CAPTURE(bad.key);
    CHECK_FALSE(others.add_account("east", "a", Settings{bad}).has_value());
  }
  CHECK_FALSE(others.has_account("east", "a"));
}

TEST_CASE("what is added to a list of QOS stays an addition to the list above") {
  proto::TenancyDocuments documents = no_documents();
  tenancy::PriorityClass high;
  high.name = "high";
  documents.documents = {high};
  OtherAccounts others(documents);
  others.add_cluster("east", "");
  REQUIRE(others.set_cluster("east", Settings{{"qos", ""}}));
  CHECK(*others.add_account("east", "a", {}));
  CHECK(*others.add_account("east", "b", Settings{{"parent", "a"}}));
  REQUIRE(others.modify_account("east", "a", Settings{{"qos", "+high"}}));
  CHECK(value(association(others, "east", "b"), "QOS") == "high");
  REQUIRE(others.modify_account("east", "b", Settings{{"qos", "-high"}}));
  CHECK(value(association(others, "east", "b"), "QOS").empty());
  REQUIRE(others.modify_account("east", "a", Settings{{"qos-", "high"}}));
  REQUIRE(others.modify_account("east", "b", Settings{{"qos", "+high"}}));
  REQUIRE(others.set_cluster("east", Settings{{"qos", "+high"}}));
  CHECK(value(association(others, "east", "root"), "QOS") == "high");
  CHECK(value(association(others, "east", "a"), "QOS")
            .empty());  // the QOS was removed from this account
  CHECK(value(association(others, "east", "b"), "QOS") == "high");
}

TEST_CASE("an account that comes below its own child changes places with it") {
  OtherAccounts others = two_clusters();
  CHECK(*others.add_account("east", "a", {}));
  CHECK(*others.add_account("east", "b", Settings{{"parent", "a"}}));
  REQUIRE(others.modify_account("east", "a", Settings{{"parent", "b"}}));
  CHECK(others.parent_of("east", "b") == "root");
  CHECK(others.parent_of("east", "a") == "b");
  CHECK_FALSE(others.modify_account("east", "a", Settings{{"parent", "a"}}).has_value());
  CHECK_FALSE(others.modify_account("east", "root", Settings{{"parent", "a"}}).has_value());
}

TEST_CASE("users have a default account, an admin level, and accounts that they coordinate") {
  OtherAccounts others = two_clusters();
  for (const char* account : {"a", "b"}) CHECK(*others.add_account("east", account, {}));
  CHECK(*others.add_user("east", "ann", "a", Settings{{"adminlevel", "op"}}));
  CHECK(*others.add_user("east", "ann", "b", {}));
  CHECK(association(others, "east", "b", "ann").default_account == "a");
  CHECK(association(others, "east", "b", "ann").admin == "Operator");
  REQUIRE(others.modify_user("east", "ann", "", Settings{{"defaultaccount", "b"}}));
  CHECK(association(others, "east", "a", "ann").default_account == "b");
  CHECK_FALSE(others.modify_user("east", "ann", "", Settings{{"defaultaccount", "c"}}).has_value());
  CHECK(others.put_coordinator("b", "ann", true));
  CHECK_FALSE(others.put_coordinator("c", "ann", true));
  CHECK(association(others, "east", "a", "ann").coordinated == "b");
  CHECK(others.put_coordinator("b", "ann", false));
  CHECK(association(others, "east", "a", "ann").coordinated.empty());
}

TEST_CASE("with an account go those below it and their users; a default account stays") {
  OtherAccounts others = two_clusters();
  CHECK(*others.add_account("east", "a", {}));
  CHECK(*others.add_account("east", "b", Settings{{"parent", "a"}}));
  CHECK(*others.add_account("east", "c", {}));
  for (const char* account : {"b", "c"}) CHECK(*others.add_user("east", "ann", account, {}));
  CHECK(*others.add_user("east", "bob", "b", {}));
  CHECK_FALSE(others.remove_user("east", "ann", "b").has_value());  // ann's default account
  others.remove_account("east", "a");
  CHECK_FALSE(others.has_account("east", "b"));
  CHECK_FALSE(others.has_user("east", "bob", ""));
  CHECK(association(others, "east", "c", "ann").default_account == "c");
  REQUIRE(others.remove_user("east", "ann", ""));
  CHECK_FALSE(others.has_user("east", "ann", ""));
}

TEST_CASE("documents keep it all, and only what has changed is applied") {
  OtherAccounts others = two_clusters();
  CHECK(*others.add_account("east", "a", Settings{{"grptres", "gres/gpu:a100=8,cpu=4"}}));
  CHECK(*others.add_user("east", "ann", "a", Settings{{"fairshare", "parent"}}));
  const proto::TenancyDocuments documents = applied(others);
  CHECK(documents.documents.size() == 2);
  OtherAccounts again(documents);
  proto::ApplyTenancy none;
  again.add_changes(none);
  CHECK(none.documents.empty());
  CHECK(value(association(again, "east", "a"), "GrpTRES") == "cpu=4,gres/gpu:a100=8");
  CHECK(value(association(again, "east", "a", "ann"), "FairShare") == "parent");
  again.remove_cluster("west");
  again.add_changes(none);
  CHECK(none.documents.empty());
  REQUIRE(none.removals.size() == 1);
  CHECK(none.removals.front().name == "west");
}

TEST_CASE(
    "associations are numbered in each cluster without holes, the accounts around their users") {
  OtherAccounts others = two_clusters();
  CHECK(*others.add_account("east", "a", {}));
  CHECK(*others.add_user("east", "ann", "a", {}));
  std::string text;
  for (const Entry& one : other_associations(applied(others)))
    text +=
        one.cluster + " " + one.account + " " + one.user + " " + one.left + "-" + one.right + "\n";
  CHECK(text ==
        "east root  1-8\neast root root 2-3\neast a  4-7\neast a ann 5-6\n"
        "west root  1-4\nwest root root 2-3\n");
  CHECK(other_cluster_rows(applied(others)).size() == 2);
  CHECK(other_account_rows(other_associations(applied(others)), {}).size() == 2);  // root and a
}

TEST_CASE("words of add and modify: names, clusters, conditions and settings") {
  const auto read = [](ChangedEntity entity, std::string_view verb,
                       std::vector<std::string> words) {
    words.insert(words.begin(), "entity");
    return read_change_words(entity, words, verb);
  };
  const auto add = read(ChangedEntity::user, "add",
                        {"user=ann,bob", "cluster=east", "account=a", "DefaultAccount=b"});
  REQUIRE(add.has_value());
  CHECK(add->names == std::vector<std::string>{"ann", "bob"});
  CHECK(add->accounts == std::vector<std::string>{"a", "b"});
  CHECK(add->means_cluster("east"));
  CHECK_FALSE(add->means_cluster("west"));
  const auto modify = read(ChangedEntity::account, "modify",
                           {"set", "MaxJobs=5", "description='x y'", "where", "name=a"});
  REQUIRE(modify.has_value());
  CHECK(modify->names == std::vector<std::string>{"a"});
  CHECK(modify->settings.size() == 2);
  CHECK(modify->settings[1].value == "x y");
  CHECK(modify->means_cluster("anything"));
  CHECK_FALSE(read(ChangedEntity::user, "add", {"ann"}).has_value());
  CHECK_FALSE(read(ChangedEntity::account, "modify", {"a", "MaxJobs=5"}).has_value());
  CHECK_FALSE(read(ChangedEntity::coordinator, "add", {"ann"}).has_value());
}

TEST_CASE("an account of this cluster takes only limits that count here") {
  test::FakeController fake;
  proto::TenancyDocuments documents = no_documents();
  tenancy::Tenant x;
  x.name = "x";
  documents.documents = {
      x, tenancy::OtherCluster{"east", "", {"account=root", "account=x|parent=root"}}};
  fake.answer<proto::GetTenancy>(documents);
  fake.answer<proto::ApplyTenancy>(proto::TenancyPlanned{});
  const auto sacctmgr = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"slurm/sacctmgr", "-i"});
    return fake.run(words);
  };
  const auto refusal = [&](std::vector<std::string> words) {
    const test::Run run = sacctmgr(std::move(words));
    CHECK(run.status == 1);
    return run.err;
  };
  CHECK(refusal({"modify", "account", "x", "set", "GrpJobsAccrue=60"})
            .starts_with(" grpjobsaccrue has no counterpart here"));
  CHECK(refusal({"modify", "account", "x", "set", "GrpTRES=colour=1"})
            .starts_with(" Bad value for GrpTRES (colour=1): "));
  CHECK(refusal({"modify", "account", "x", "set", "GrpTRES=cpu=many"})
            .starts_with(" cpu must be a whole number from 0 to 1000000000, not \"many\""));
  CHECK(refusal({"add", "account", "y", "cluster=nope"}).starts_with(" This cluster 'nope'"));
  // In another cluster all of the words are accepted.
  const test::Run run =
      sacctmgr({"modify", "account", "set", "GrpWall=60", "where", "name=x", "cluster=east"});
  CHECK(run.status == 0);
  CHECK(run.out == " Modified account associations...\n  C = east       A = x of root\n");
  const auto changes = fake.last<proto::ApplyTenancy>();
  REQUIRE(changes.documents.size() == 1);
  CHECK(std::get<tenancy::OtherCluster>(changes.documents[0]).accounting ==
        std::vector<std::string>{"GrpWall=01:00:00|account=x|parent=root", "account=root"});
}

TEST_CASE("AdminLevel and coordinators of this cluster are roles in the tenant's document") {
  proto::TenancyDocuments documents = no_documents();
  tenancy::Tenant x;
  x.name = "x";
  x.grants = {{tenancy::Role::user, "ann", ""}};
  documents.documents = {x};
  Accounts accounts(documents);
  const auto grants = [&] {
    return std::get<tenancy::Tenant>(accounts.changes().documents.at(0)).grants;
  };
  REQUIRE(accounts.put_admin_level("ann", tenancy::Role::operator_role));
  CHECK(grants().back() == tenancy::Grant{tenancy::Role::operator_role, "ann", ""});
  REQUIRE(accounts.put_coordinator("x", "ann", true));
  CHECK(grants().back() == tenancy::Grant{tenancy::Role::tenant_admin, "ann", ""});
  REQUIRE(accounts.put_coordinator("x", "ann", false));
  REQUIRE(accounts.put_admin_level("ann", tenancy::Role::user));
  CHECK(accounts.changes().documents.empty());  // unchanged
  CHECK_FALSE(accounts.put_admin_level("bob", tenancy::Role::admin).has_value());
  CHECK_FALSE(accounts.put_coordinator("nope", "ann", true).has_value());
}

}  // namespace
}  // namespace gantry::cli::slurm
