// Tests how gtenant turns files into documents and back, against a controller that keeps documents.
#include <doctest/doctest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "config/tenancy/write.h"
#include "tests/cli/samples.h"
#include "tests/cli/tenancy_store.h"
#include "tests/places.h"

using namespace gantry;
using namespace gantry::test;

namespace {

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

proto::NodesAlike machines() {
  proto::NodesAlike nodes;
  nodes.nodes = "n[01-80]";
  nodes.gpu_model = "a100";
  nodes.each.row(Resource::gpu) = 8'000;
  nodes.each.row(Resource::cpu) = 96'000;
  nodes.each.row(Resource::memory) = std::int64_t{1} << 40;
  return nodes;
}

const std::string kCohort = "apiVersion: gantry/v1\nkind: Cohort\nname: ml-platform\n";
const std::string kFraud =
    "apiVersion: gantry/v1\nkind: Tenant\nname: fraud\ncohort: ml-platform\n"
    "quota: {gpu: {nominal: 64, borrow: 128, lend: 32}}\nroles: {user: {groups: [fraud]}}\n";

}  // namespace

TEST_CASE("apply shows a plan, applies it once, and says when nothing changes") {
  FakeController fake;
  TenancyStore store(fake);
  store.nodes = {machines()};
  ScratchDir files;
  (void)files.file("cohort.yaml", kCohort);
  (void)files.file("fraud.yaml", kFraud);

  const Run dry = fake.run({"gtenant", "apply", "-n", "-f", files.path()});
  CHECK(dry.status == 0);
  CHECK(dry.out ==
        "+ Tenant fraud\n"
        "    cohort             ml-platform\n"
        "    quota.gpu.nominal  64\n"
        "    quota.gpu.borrow   128\n"
        "    quota.gpu.lend     32\n"
        "    roles.user.groups  [fraud]\n"
        "+ Cohort ml-platform\n"
        "2 to create, 0 to change, 0 to remove, 0 unchanged (revision 0)\n");
  CHECK(store.revision == 0);

  const Run unasked = fake.run({"gtenant", "apply", "-f", files.path()});
  CHECK(unasked.status == 2);
  CHECK(unasked.err.find("standard input is no terminal to ask at; say --yes") !=
        std::string::npos);
  CHECK(store.revision == 0);

  const Run done = fake.run({"gtenant", "apply", "-y", "-m", "first", "-f", files.path()});
  CHECK(done.status == 0);
  CHECK(done.out.ends_with("(revision 0)\nApplied as revision 1.\n"));
  CHECK(fake.last<proto::ApplyTenancy>().comment == "first");
  CHECK(fake.last<proto::ApplyTenancy>().base_revision == 0u);

  const std::size_t asked = fake.count(proto::MessageType::ApplyTenancy);
  const Run again = fake.run({"gtenant", "apply", "-y", "-f", files.path()});
  CHECK(again.out == "0 to create, 0 to change, 0 to remove, 2 unchanged (revision 1)\n");
  CHECK(fake.count(proto::MessageType::ApplyTenancy) == asked + 1);  // only the plan was asked for
  CHECK(store.revision == 1);
  CHECK(fake.run({"gtenant", "diff", "-f", files.path()}).status == 0);

  std::string less = kFraud;
  less.replace(less.find("64"), 2, "48");
  const Run diff = fake.run({"gtenant", "diff", "-f", "-"}, less);
  CHECK(diff.status == 3);
  CHECK(diff.out.starts_with("~ Tenant fraud\n    quota.gpu.nominal  64 -> 48\n"));
  const Run json = fake.run({"gtenant", "apply", "-y", "--json", "-f", "-"}, less);
  CHECK(json.status == 0);
  CHECK(json.out.find("\"applied\": true") != std::string::npos);
  CHECK(store.revision == 2);
}

TEST_CASE("a mistake in any file is refused with its place, and nothing is applied") {
  FakeController fake;
  TenancyStore store(fake);
  ScratchDir files;
  (void)files.file("a.yaml", kCohort);
  const std::string bad = files.file("b.yaml", kFraud + "---\n" + kCohort + "colour: red\n");
  const Run run = fake.run({"gtenant", "apply", "-y", "-f", files.path()});
  CHECK(run.status == 1);
  CHECK(run.err.find(bad + ":11:1: unknown key `colour`") != std::string::npos);
  CHECK(fake.count(proto::MessageType::ApplyTenancy) == 0);
  const Run check = fake.run({"gtenant", "check", "--offline", "-f", bad});
  CHECK(check.status == 1);
  CHECK(fake.run({"gtenant", "apply", "-y", "-f", "/nowhere.yaml"}).status == 1);
  CHECK(fake.run({"gtenant", "apply", "-y"}).status == 2);
}

TEST_CASE("Kubernetes manifests apply without edits, and fields without effect are named") {
  FakeController fake;
  TenancyStore store(fake);
  store.nodes = {machines()};
  const std::string folder = source_dir() + "/tests/tenancy/manifests";
  const Run run = fake.run(
      {"gtenant", "apply", "-y", "--user-domain", "example.com", "-f", folder + "/teams.yaml"});
  CHECK(run.status == 0);
  CHECK(run.out.find("note: " + folder +
                     "/teams.yaml:54:15: ResourceQuota fraud-detection/fraud-detection-quota: "
                     "spec.hard.services: Gantry has no objects of this kind to count\n") !=
        std::string::npos);
  CHECK(run.out.find("+ Tenant fraud-detection\n") != std::string::npos);
  CHECK(store.revision == 1);
}

TEST_CASE("create makes a tenant in one step and prints it") {
  FakeController fake;
  TenancyStore store(fake);
  store.nodes = {machines()};
  store.documents = {tenancy::Cohort{"ml-platform", "", {}, {}}};
  store.earlier[0] = store.documents;
  const Run run =
      fake.run({"gtenant",  "create",  "fraud",    "--gpus",  "64",     "--cpus", "512",
                "--memory", "4Ti",     "--borrow", "128",     "--lend", "32",     "--cost-center",
                "cc-1042",  "--admin", "alice",    "--group", "fraud",  "--yes"});
  CHECK(run.err.empty());
  CHECK(run.status == 0);
  CHECK(fake.count(proto::MessageType::ApplyTenancy) == 2);  // one plan and one change
  CHECK(run.out.find("Applied as revision 1.\n\n"
                     "apiVersion: gantry/v1\n"
                     "kind: Tenant\n"
                     "name: fraud\n"
                     "cohort: ml-platform\n"
                     "labels:\n"
                     "  cost-center: cc-1042\n"
                     "quota:\n"
                     "  gpu:\n"
                     "    nominal: 64\n"
                     "    borrow: 128\n"
                     "    lend: 32\n"
                     "  cpu:\n"
                     "    nominal: 512\n"
                     "    borrow: 512\n"
                     "  memory:\n"
                     "    nominal: 4Ti\n"
                     "    borrow: 4Ti\n"
                     "roles:\n"
                     "  user:\n"
                     "    groups: [fraud]\n"
                     "  tenant-admin:\n"
                     "    users: [alice]\n"
                     "limits:\n"
                     "  queued_jobs: 2000\n"
                     "  running_jobs: 500\n"
                     "\n"
                     "Jobs go to it with `gbatch -p fraud`") != std::string::npos);
  const Run twice = fake.run({"gtenant", "create", "fraud", "--gpus", "1", "--yes"});
  CHECK(twice.status == 1);
  CHECK(twice.err.find("tenant fraud exists already") != std::string::npos);
  const Run part = fake.run({"gtenant", "create", "b", "--gpus", "3%", "--user", "bob", "--yes"});
  CHECK(part.out.find("note: Tenant b: --gpus: 3% of 640 gpu is 19 (rounded down from 19.2)") !=
        std::string::npos);
  CHECK(fake.run({"gtenant", "create", "c", "--gpus", "many", "--yes"}).status == 2);
  CHECK(fake.run({"gtenant", "create", "c", "--tier", "gold", "--yes"})
            .err.find("command line: Tenant c: tier: there is no Tier `gold`") !=
        std::string::npos);
  CHECK(fake.run({"gtenant", "create", "c/d", "--yes"}).status == 1);
}

TEST_CASE("get, export, delete, history and rollback work on the same documents") {
  FakeController fake;
  TenancyStore store(fake);
  store.nodes = {machines()};
  CHECK(fake.run({"gtenant", "apply", "-y", "-f", "-"}, kCohort + "---\n" + kFraud).status == 0);
  const auto first = store.documents;
  std::string less = kFraud;
  less.replace(less.find("64"), 2, "48");
  CHECK(fake.run({"gtenant", "apply", "-y", "-m", "less", "-f", "-"}, less).status == 0);

  const Run got = fake.run({"gtenant", "get", "cohorts"});
  CHECK(got.out == kCohort);
  CHECK(fake.run({"gtenant", "get", "tenant", "nobody"}).status == 1);
  CHECK(fake.run({"gtenant", "get", "tennant"}).err.find("did you mean `tenant`?") !=
        std::string::npos);

  ScratchDir folder;
  CHECK(fake.run({"gtenant", "export", "-d", folder.path() + "/out"}).status == 0);
  CHECK(slurp(folder.path() + "/out/cohort/ml-platform.yaml") == kCohort);
  const Run same = fake.run({"gtenant", "apply", "-y", "--prune", "-f", folder.path() + "/out"});
  CHECK(same.out == "0 to create, 0 to change, 0 to remove, 2 unchanged (revision 2)\n");

  const Run history = fake.run({"gtenant", "history"});
  CHECK(history.out ==
        "REVISION TIME                AUTHOR CHANGES       COMMENT\n"
        "       2 2026-01-31T09:00:00 root   ~Tenant fraud less\n"
        "       1 2026-01-31T09:00:00 root   +2            \n");
  CHECK(fake.run({"gtenant", "history", "-l"})
            .out.find("~ Tenant fraud\n    quota.gpu.nominal  64 -> 48\n") != std::string::npos);

  const Run back = fake.run({"gtenant", "rollback", "1", "--yes"});
  CHECK(back.out.starts_with("~ Tenant fraud\n    quota.gpu.nominal  48 -> 64\n"));
  CHECK(store.documents == first);
  CHECK(store.history.back().comment == "rollback to revision 1");

  const Run needed = fake.run({"gtenant", "delete", "tenant", "nobody", "--yes"});
  CHECK(needed.status == 1);
  const Run gone = fake.run({"gtenant", "delete", "tenant", "fraud", "--yes"});
  CHECK(gone.out.starts_with("- Tenant fraud\n"));
  CHECK(store.documents.size() == 1);
  const Run pruned = fake.run({"gtenant", "apply", "--prune", "--yes", "-f", "-"},
                              "apiVersion: gantry/v1\nkind: Cohort\nname: other\n");
  CHECK(pruned.out.find("- Cohort ml-platform\n") != std::string::npos);
  CHECK(store.documents.size() == 1);
}

TEST_CASE("offboard also removes the tenant's budgets, and only the caller can read the archive") {
  FakeController fake;
  TenancyStore store(fake);
  tenancy::Budget own, other;
  own.name = "money";
  own.tenant = "fraud";
  own.amount = Money{100'000'000};
  other = own;
  other.name = "elsewhere";
  other.tenant = "search";
  tenancy::Tenant search;
  search.name = "search";
  tenancy::PriceBook book;  // budgets need prices
  book.name = "prices";
  book.currency = "EUR";
  store.documents = {tenancy::Cohort{"ml-platform", "", {}, {}}, search, book, own, other};
  store.earlier[0] = store.documents;
  REQUIRE(fake.run({"gtenant", "apply", "-y", "-f", "-"}, kFraud).status == 0);
  fake.answer<proto::QueryHistory>(proto::HistoryReply{sample_history(), false, kNow, {}, {}});
  ScratchDir folder;
  const std::string archive = folder.path() + "/archive";

  const mode_t before = ::umask(0);  // with this mask every file would be readable by all
  const Run done = fake.run({"gtenant", "offboard", "fraud", "--yes", "--archive", archive});
  const Run exported = fake.run({"gtenant", "export", "-d", folder.path() + "/export"});
  ::umask(before);
  CHECK(done.err == "");
  REQUIRE(done.status == 0);
  CHECK(done.out.find("- Tenant fraud\n") != std::string::npos);
  CHECK(done.out.find("- Budget money\n") != std::string::npos);
  CHECK(exported.status == 0);
  std::set<std::string> left;
  for (const tenancy::Document& document : store.documents) left.insert(tenancy::name_of(document));
  CHECK(left == std::set<std::string>{"ml-platform", "search", "prices", "elsewhere"});

  namespace fs = std::filesystem;
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    CAPTURE(entry.path().string());
    const fs::perms mode = entry.status().permissions();
    CHECK((mode & (fs::perms::group_all | fs::perms::others_all)) == fs::perms::none);
    files += entry.is_regular_file() ? 1 : 0;
    if (entry.path().extension() == ".yaml" && entry.path().parent_path() == archive)
      CHECK(slurp(entry.path()).find("kind: Budget\nname: money\n") != std::string::npos);
  }
  CHECK(files >= 3);  // two files of the archive, and at least one that was exported
}

TEST_CASE(
    "offboard closes the queue, waits for the jobs, keeps an archive, and removes the tenant") {
  FakeController fake;
  TenancyStore store(fake);
  tenancy::NodePool pool;
  pool.name = "own";
  pool.nodes = "n01";
  pool.tenant = "fraud";
  store.documents = {tenancy::Cohort{"ml-platform", "", {}, {}}, pool};
  store.earlier[0] = store.documents;
  CHECK(fake.run({"gtenant", "apply", "-y", "-f", "-"}, kFraud).status == 0);
  store.use["fraud"].queued = 2;
  ScratchDir folder;

  const Run later =
      fake.run({"gtenant", "offboard", "fraud", "--no-wait", "--yes", "--archive", folder.path()});
  CHECK(later.status == 0);
  CHECK(later.out.find("run this again when its jobs have ended (2 jobs queued and 0 running)") !=
        std::string::npos);
  CHECK(std::get<tenancy::Tenant>(store.documents[0]).counts.queued_jobs == 0u);

  fake.on<proto::CancelJobs>([&](const proto::CancelJobs&) {
    store.use["fraud"].queued = 0;
    return proto::JobsDone{};
  });
  fake.answer<proto::QueryHistory>(proto::HistoryReply{sample_history(), false, kNow, {}, {}});
  const Run done =
      fake.run({"gtenant", "offboard", "fraud", "--cancel", "--yes", "--archive", folder.path()});
  CHECK(done.err.empty());
  CHECK(done.status == 0);
  // The tenant's jobs are cancelled in every partition, also in those of the site.
  CHECK(fake.last<proto::CancelJobs>().filter.tenants == std::vector<std::string>{"fraud"});
  CHECK(fake.last<proto::CancelJobs>().filter.partitions.empty());
  CHECK(done.out.find("- Tenant fraud\n") != std::string::npos);
  CHECK(done.out.find("note: NodePool own was its own, and is everybody's now\n") !=
        std::string::npos);
  REQUIRE(store.documents.size() == 2);
  CHECK(std::get<tenancy::NodePool>(store.documents[1]).tenant.empty());
  std::size_t records = 0;
  std::string archived;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".yaml") archived = slurp(entry.path());
    if (entry.path().extension() != ".jsonl") continue;
    std::istringstream lines(slurp(entry.path()));
    for (std::string line; std::getline(lines, line);) ++records;
  }
  CHECK(records == sample_history().size());
  CHECK(archived.find("name: fraud\n") != std::string::npos);
  // applying the archive brings the tenant back
  CHECK(fake.run({"gtenant", "apply", "-y", "-f", "-"}, archived).status == 0);
  CHECK(fake.run({"gtenant", "offboard", "nobody", "--yes"}).status == 1);
}
