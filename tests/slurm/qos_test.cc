// The QOS of sacctmgr: its words become settings, the settings become priority classes, and the
// test checks what is refused.
#include <doctest/doctest.h>

#include "cli/slurm/accounts/sacctmgr_change.h"

namespace gantry::cli::slurm {
namespace {

using Names = std::vector<std::string>;

QosSettings read(const std::vector<std::string>& words) {
  QosSettings out;
  for (const std::string& word : words) {
    const auto done = read_qos_setting(word, out);
    REQUIRE_MESSAGE(done, done.error().message);
  }
  return out;
}

std::string refused(const std::string& word) {
  QosSettings out;
  const auto done = read_qos_setting(word, out);
  REQUIRE_FALSE(done);
  CHECK(out == QosSettings{});
  return done.error().message;
}

template <class T>
std::string why(const Result<T>& result) {
  REQUIRE_FALSE(result.has_value());
  return result.error().message;
}

// The documents have one preempting class `urgent` and one tenant `fraud` that may use it.
proto::TenancyDocuments urgent_and_fraud() {
  tenancy::PriorityClass urgent;
  urgent.name = "urgent";
  urgent.value = 800;
  urgent.preempts = true;
  tenancy::Tenant fraud;
  fraud.name = "fraud";
  fraud.default_class = "normal";
  fraud.allowed_classes = {"normal", "urgent"};
  proto::TenancyDocuments documents;
  documents.revision = 7;
  documents.documents = {fraud, urgent};
  return documents;
}

const tenancy::PriorityClass& only_class(const proto::ApplyTenancy& changes) {
  REQUIRE(changes.documents.size() == 1);
  REQUIRE(changes.removals.empty());
  return std::get<tenancy::PriorityClass>(changes.documents[0]);
}

TEST_CASE("words set the properties of a priority class, and may be shortened as Slurm allows") {
  const QosSettings all =
      read({"Description='as soon as it can'", "prio=900", "GraceT=120", "PreemptM=cancel",
            "PreemptExempt=1:30:00", "preempt=normal,best-effort", "UsageFactor=1.0"});
  CHECK(all.description == "as soon as it can");
  CHECK(all.priority == 900);
  CHECK(all.grace == seconds(120));
  CHECK(all.exempt == seconds(5400));
  CHECK(all.preemptible == true);
  CHECK(all.victim_mode == tenancy::VictimMode::cancel);
  CHECK(all.preempt == NameList{true, {"normal", "best-effort"}, {}});
  CHECK(shown_settings(all) ==
        "  GraceTime      = 120\n"
        "  Preempt          = normal,best-effort\n"
        "  PreemptMode      = CANCEL\n"
        "  PreemptExemptTime  = 01:30:00\n"
        "  Priority       = 900\n"
        "  UsageFactor    = 1.0\n");
  CHECK(read({"PreemptMode=OFF"}).preemptible == false);
  CHECK(read({"PreemptMode=cluster"}).victim_mode == tenancy::VictimMode::requeue);
  CHECK(read({"Priority=-1"}).priority == 500);
  CHECK(read({"GraceTime=-1"}).grace == seconds(30));
  CHECK(read({"PreemptExemptTime=-1"}).exempt == Duration{});
  CHECK(read({"Preempt+=a,b"}).preempt == NameList{false, {"a", "b"}, {}});
  CHECK(read({"Preempt-=a"}).preempt == NameList{false, {}, {"a"}});
  CHECK(read({"Preempt=+a,-b"}).preempt == NameList{false, {"a"}, {"b"}});
  CHECK(read({"Preempt="}).preempt == NameList{true, {}, {}});
  CHECK(shown_settings(read({"Preempt-=a", "PreemptMode=off"})) ==
        "  Preempt          = -a\n  PreemptMode      = OFF\n");
}

TEST_CASE("each key of a QOS that has no counterpart is refused by name") {
  for (const char* key : {"GrpJobsAccrue", "LimitFactor", "MaxJobsAccruePerAccount",
                          "MaxJobsAccruePerUser", "MaxTRESRunMinsPA", "MaxTRESRunMinsPU",
                          "MinPrioThresh", "Name", "RawUsage", "UsageThreshold"}) {
    CAPTURE(key);
    CHECK(refused(std::string(key) + "=1").starts_with(" " + std::string(key) + ": "));
  }
  CHECK(refused("MaxJobs=many").starts_with(" Bad value for MaxJobsPerUser (many): "));
  CHECK(refused("GrpTRES=colour=3").starts_with(" Bad value for GrpTRES (colour=3): "));
  CHECK(refused("UsageFactor=-2") == " Invalid value for UsageFactor (-2)");
  CHECK(refused("Flags=Fast").starts_with(" Flags: \"Fast\" is no flag of a QOS here"));
  CHECK(refused("Colour=red") ==
        " Unknown option: Colour=red\n Use keyword 'where' to modify condition");
  CHECK(refused("word").starts_with(" Unknown option: word"));
  CHECK(refused("Pr=1").starts_with(" Unknown option: "));
  CHECK(refused("Priority+=5") == " Priority: it is one value, which = sets; += is for lists");
  CHECK(refused("Priority=high") == " Invalid value for Priority (high)");
  CHECK(refused("GraceTime=-2") == " Invalid value for GraceTime (-2)");
  CHECK(refused("PreemptMode=suspend").starts_with(" PreemptMode=suspend: "));
  CHECK(refused("PreemptMode=often") == " Bad Preempt Mode given: PreemptMode=often");
  CHECK(refused("PreemptExemptTime=soon").starts_with(" Bad PreemptExemptTime format: "));
  CHECK(refused("PreemptExemptTime=UNLIMITED").starts_with(" PreemptExemptTime: "));
  CHECK(refused("Preempt=a,+b").starts_with(" You can't set qos equal to something"));
  CHECK(refused("Preempt=+a,b").starts_with(" You can't set qos equal to something"));
}

TEST_CASE("a new QOS is a priority class with the value of the built-in default") {
  QosBook book(proto::TenancyDocuments{});
  CHECK(book.all().size() == 3);
  CHECK(*book.add({"calm", "normal"}, {}) == Names{"calm"});
  CHECK(*book.add({"calm"}, read({"Priority=3"})) == Names{});
  tenancy::PriorityClass calm;
  calm.name = calm.description = "calm";
  CHECK(only_class(book.changes()) == calm);
  CHECK(calm.value == 500);
  CHECK(*book.modify({"calm", "nope"}, read({"Priority=3", "PreemptMode=off"})) == Names{"calm"});
  CHECK(only_class(book.changes()).value == 3);
  CHECK_FALSE(only_class(book.changes()).preemptible);
  // A built-in class becomes a document when it is changed, and its other properties stay.
  QosBook other(proto::TenancyDocuments{});
  REQUIRE(other.modify({"normal"}, read({"GraceTime=5"})));
  CHECK(only_class(other.changes()).is_default);
  CHECK(only_class(other.changes()).value == 500);
  CHECK(only_class(other.changes()).grace == seconds(5));
}

TEST_CASE("limits of use are kept by Slurm's names, TRES one by one") {
  QosBook book(proto::TenancyDocuments{});
  REQUIRE(
      book.add({"a"}, read({"GrpCPUs=80", "GrpNodes=10", "GrpMem=100", "MaxJobs=5",
                            "MaxSubmitJobs=7", "MaxWall=60", "GrpCPUMin=30", "MaxCPUs=8",
                            "MaxTRESPerUser=billing=4", "UsageFactor=.5", "flag=denyonlimit"})));
  using Texts = std::map<std::string, std::string>;
  CHECK(book.all().at("a").limits == Texts{{"GrpTRES", "cpu=80,mem=100M,node=10"},
                                           {"MaxJobsPerUser", "5"},
                                           {"MaxSubmitJobsPerUser", "7"},
                                           {"MaxWallDurationPerJob", "01:00:00"},
                                           {"GrpTRESMins", "cpu=30"},
                                           {"MaxTRESPerJob", "cpu=8"},
                                           {"MaxTRESPerUser", "billing=4"},
                                           {"UsageFactor", "0.500000"},
                                           {"Flags", "DenyOnLimit"}});
  REQUIRE(book.modify({"a"}, read({"GrpTRES=cpu=-1,gres/gpu:a100=2", "MaxJobs=-1", "MaxWall=-1",
                                   "UsageFactor=1", "Flags+=NoDecay", "MaxCPUs=-1"})));
  CHECK(book.all().at("a").limits == Texts{{"GrpTRES", "mem=100M,node=10,gres/gpu:a100=2"},
                                           {"MaxSubmitJobsPerUser", "7"},
                                           {"GrpTRESMins", "cpu=30"},
                                           {"MaxTRESPerUser", "billing=4"},
                                           {"Flags", "DenyOnLimit,NoDecay"}});
  REQUIRE(book.modify({"a"}, read({"Flags-=denyonlimit", "GrpTRES=-1"})));
  CHECK(book.all().at("a").limits.at("Flags") == "NoDecay");
  CHECK_FALSE(book.all().at("a").limits.contains("GrpTRES"));
  CHECK(read({"RawUsage=0"}).reset_usage);
}

TEST_CASE(
    "Preempt names any QOS; without names that are all lower ones a list of victims is kept") {
  QosBook book(urgent_and_fraud());
  CHECK(book.victims_of(book.all().at("urgent")) == Names{"best-effort", "normal"});
  CHECK(book.victims_of(book.all().at("normal")) == Names{});
  REQUIRE(book.add({"a"}, read({"Priority=600", "Preempt=normal"})));
  CHECK(book.all().at("a").victims == Names{"normal"});
  REQUIRE(book.modify({"a"}, read({"Preempt+=urgent"})));
  CHECK(book.victims_of(book.all().at("a")) == Names{"normal", "urgent"});
  REQUIRE(book.modify({"a"}, read({"Preempt=best-effort,normal"})));
  CHECK(book.all().at("a").victims.empty());  // just the lower ones
  REQUIRE(book.modify({"a"}, read({"Preempt="})));
  CHECK_FALSE(book.all().at("a").preempts);
  QosBook second(urgent_and_fraud());
  CHECK(why(second.add({"b"}, read({"Preempt=nobody"}))) ==
        " You gave a bad qos 'nobody'. Valid QOS's are "
        "b,best-effort,normal,production-critical,urgent");
  QosBook third(urgent_and_fraud());
  REQUIRE(third.modify({"best-effort"}, read({"PreemptMode=off"})));
  CHECK(why(third.modify({"urgent"}, read({"Preempt=best-effort,normal"})))
            .find("best-effort is not taken from") != std::string::npos);
  // A class stops preempting when the last name leaves its list, or when the list is set to
  // nothing.
  QosBook fourth(urgent_and_fraud());
  REQUIRE(fourth.modify({"urgent"}, read({"Preempt-=best-effort,normal"})));
  CHECK_FALSE(only_class(fourth.changes()).preempts);
  REQUIRE(fourth.modify({"urgent"}, read({"Preempt+=best-effort,normal"})));
  CHECK(fourth.changes().documents.empty());
  REQUIRE(fourth.modify({"urgent"}, read({"Preempt="})));
  CHECK_FALSE(only_class(fourth.changes()).preempts);
}

TEST_CASE("a QOS can be removed unless it is a default, in use or built in") {
  tenancy::PriorityClass spare;
  spare.name = "spare";
  proto::TenancyDocuments documents = urgent_and_fraud();
  documents.documents.emplace_back(spare);
  QosBook book(documents);
  CHECK(*book.remove({"nope"}, "here") == Names{});
  CHECK(*book.remove({"spare", "nope"}, "here") == Names{"spare"});
  CHECK(book.changes().removals == std::vector<proto::DocumentRef>{{"PriorityClass", "spare"}});
  CHECK(why(book.remove({"urgent"}, "here")) ==
        " Error with request: the accounts listed below have it: take it from them first, with "
        "modify account NAME set QOS-=urgent\n  QOS = urgent     C = here       A = fraud");
  CHECK(why(book.remove({"normal"}, "here")) ==
        " Associations listed below have these as their Default QOS.\n"
        "  DefQOS = normal     C = here       A = root\n"
        "  DefQOS = normal     C = here       A = fraud\n"
        " Please either remove the qos' listed above from list and resubmit,\n"
        " or change the default qos to remove the qos.\n Changes Discarded");
  CHECK(why(book.remove({"best-effort"}, "here")) ==
        " Error with request: QOS best-effort is always there");
}

Accounts::Settings account_settings(const std::vector<std::pair<std::string, std::string>>& words) {
  Accounts::Settings out;
  for (const auto& [key, value] : words) {
    const auto done = read_setting(key, value, out);
    REQUIRE_MESSAGE(done, done.error().message);
  }
  return out;
}

const tenancy::Tenant& only_tenant(const Accounts& accounts, proto::ApplyTenancy& keep) {
  keep = accounts.changes();
  REQUIRE(keep.documents.size() == 1);
  return std::get<tenancy::Tenant>(keep.documents[0]);
}

TEST_CASE("QOS and DefaultQOS of an account are the classes of its tenant") {
  proto::ApplyTenancy keep;
  Accounts accounts(urgent_and_fraud());
  REQUIRE(accounts.modify_account("fraud", account_settings({{"qos+", "best-effort"}})));
  CHECK(only_tenant(accounts, keep).allowed_classes == Names{"best-effort", "normal", "urgent"});
  REQUIRE(accounts.modify_account("fraud", account_settings({{"QosLevel", "-urgent"}})));
  CHECK(only_tenant(accounts, keep).allowed_classes == Names{"best-effort", "normal"});
  REQUIRE(accounts.modify_account("fraud",
                                  account_settings({{"qos", "urgent"}, {"defaultqos", "urgent"}})));
  CHECK(only_tenant(accounts, keep).allowed_classes == Names{"urgent"});
  CHECK(only_tenant(accounts, keep).default_class == "urgent");
  CHECK(why(accounts.modify_account("fraud", account_settings({{"defaultqos", "normal"}}))) ==
        " Error with request:\n These associations don't have access to their default qos.\n"
        " Please give them access before they the default can be set to this.\n"
        "  DefQOS = normal     A = fraud");
  Accounts others(urgent_and_fraud());
  REQUIRE(others.modify_account("fraud", account_settings({{"qos", ""}, {"defaultqos", "-1"}})));
  CHECK(only_tenant(others, keep).allowed_classes.empty());
  CHECK(only_tenant(others, keep).default_class.empty());
  // An empty list stands for all classes. Adding one class to it keeps the others.
  REQUIRE(others.modify_account("fraud", account_settings({{"qos+", "urgent"}})));
  CHECK(only_tenant(others, keep).allowed_classes == Names{"best-effort", "normal", "urgent"});
  // The default class is `normal`, so a longer list without it is refused. The only class of a list
  // is the default, as in Slurm.
  CHECK(why(others.modify_account("fraud", account_settings({{"qos", "best-effort,urgent"}})))
            .ends_with("DefQOS = normal     A = fraud"));
  REQUIRE(others.modify_account("fraud", account_settings({{"qos", "urgent"}})));
  CHECK(only_tenant(others, keep).default_class == "urgent");
  REQUIRE(others.add_account("risk", account_settings({{"qos", "normal,urgent"}})));
  CHECK(why(others.add_account("x", account_settings({{"defaultqos", "nope"}})))
            .starts_with(" You gave a bad qos 'nope'."));
  // Projects and users have their own lists, which go before the tenant's.
  REQUIRE(others.add_account("y", account_settings({{"parent", "risk"}, {"qos", "normal"}})));
  REQUIRE(others.add_user("ann", "risk", account_settings({{"qos+", "best-effort"}})));
  Accounts::Settings none;
  CHECK(why(read_setting("fairshare+", "3", none)) ==
        "fairshare: it is one value, which = sets; += is for QOS");
}

TEST_CASE("a dump keeps the QOS of accounts, and loading it names classes that do not exist") {
  const Accounts from(urgent_and_fraud());
  const std::string text = from.dump("here");
  CHECK(text.find("Account - 'fraud':Description='':Organization='fraud':Fairshare=1"
                  ":DefaultQOS='normal':QOS='normal,urgent'\n") != std::string::npos);
  proto::TenancyDocuments documents = urgent_and_fraud();
  documents.documents.erase(documents.documents.begin());
  std::vector<std::string> ignored;
  Accounts to(documents);
  REQUIRE(load_dump(text, to, ignored));
  CHECK(ignored.empty());
  CHECK(to.dump("here") == text);
  Accounts without(proto::TenancyDocuments{});
  REQUIRE(load_dump(text, without, ignored));
  CHECK(ignored == Names{"account fraud: DefaultQOS=normal", "account fraud: QOS=normal,urgent"});
  CHECK(without.changes().documents.size() == 1);
}

}  // namespace
}  // namespace gantry::cli::slurm
