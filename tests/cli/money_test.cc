// Tests gtenant price, greport, and the costs in gqueue and gbatch, against a controller that gives
// fixed replies.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cli/samples.h"
#include "tests/cli/tenancy_store.h"
#include "tests/places.h"

using namespace gantry;
using namespace gantry::test;

namespace {

const std::string kBase =
    "apiVersion: gantry/v1\nkind: PriceBook\nname: base\ncurrency: EUR\n"
    "gpu: {a100: 2.50, v100: 1.80, t4: 0.60, default: 1.00, a100:1g.5gb: 0.40}\ncpu: 0.02\n"
    "plans: {spot: {factor: 0.4, classes: [best-effort]}}\n"
    "hours: {night: {from: 22:00, until: 06:00, factor: 0.5, days: [fri, sat]}}\n";
const std::string kLater =
    "apiVersion: gantry/v1\nkind: PriceBook\nname: later\nfrom: 2027-01-01\ncpu: 0.03\n";

Held gpu_hours(std::int64_t thousandths) {
  Held held;
  add_held(held, thousandths, hours(1), kThousandthsUnit);
  return held;
}

proto::LedgerReply ledger() {
  proto::LedgerReply reply;
  reply.currency = "EUR";
  reply.zone = "UTC";
  reply.now = kNow;
  const auto row = [&](const std::string& tenant, const std::string& item, Held held, Money cost,
                       Money credit) {
    proto::LedgerRow r;
    r.period = "2026-11";
    r.tenant = tenant;
    r.item = item;
    (item == "cpu" ? r.cpu : r.gpu) = held;
    r.cost = cost;
    r.credit = credit;
    r.list = cost;
    if (item == "cpu") {
      r.runs = r.starts = 3;
      r.waited = minutes(9);
      r.waste = {500'000};
      r.idle_cpu = gpu_hours(1'000);
    }
    if (item == "gpu:a100") r.idle_gpu = gpu_hours(250);
    reply.rows.push_back(r);
  };
  row("fraud", "cpu", gpu_hours(100'000), {2'000'000}, {});
  row("fraud", "gpu:a100", gpu_hours(12'500), {31'250'000}, {1'000'001});
  row("fraud", "gpu:a100:1g.5gb", gpu_hours(142), {400'000}, {});
  row("search", "cpu", gpu_hours(1'333), {26'667}, {});
  row("search", "gpu:t4", gpu_hours(2'000), {1'200'000}, {});
  return reply;
}

}  // namespace

TEST_CASE("gtenant price applies, lists and compares price books, and refuses other documents") {
  FakeController fake;
  TenancyStore store(fake);
  ScratchDir files;
  const std::string base = files.file("base.yaml", kBase);
  const Run none = fake.run({"gtenant", "price", "list"});
  CHECK(none.status == 0);
  CHECK(none.err.find("there are no prices") != std::string::npos);
  const Run done = fake.run({"gtenant", "price", "apply", "-y", "-f", base});
  CHECK(done.status == 0);
  CHECK(done.out.starts_with("+ PriceBook base\n    currency"));
  CHECK(done.out.find("    gpu.a100:1g.5gb  ") != std::string::npos);
  CHECK(store.revision == 1);

  const std::string later = files.file("later.yaml", kLater);
  const Run diff = fake.run({"gtenant", "price", "diff", "-f", later});
  CHECK(diff.status == 3);
  CHECK(diff.out.starts_with("+ PriceBook later\n    from  2027-01-01\n    cpu   0.03\n"));
  CHECK(fake.run({"gtenant", "price", "apply", "-y", "-f", later}).status == 0);
  const Run list = fake.run({"gtenant", "price", "list"});
  CHECK(list.out ==
        "BOOK  FROM       WHAT                 PRICE PER\n"
        "base  always     gpu a100              2.50 EUR, GPU-hour\n"
        "base  always     gpu a100:1g.5gb       0.40 EUR, slice-hour\n"
        "base  always     gpu default           1.00 EUR, GPU-hour\n"
        "base  always     gpu t4                0.60 EUR, GPU-hour\n"
        "base  always     gpu v100              1.80 EUR, GPU-hour\n"
        "base  always     cpu                   0.02 EUR, core-hour\n"
        "base  always     plan spot            x 0.4 class best-effort\n"
        "base  always     hours night          x 0.5 22:00 to 06:00 on fri, sat\n"
        "later 2027-01-01 cpu                   0.03 EUR, core-hour\n");
  CHECK(fake.run({"gtenant", "price", "list", "--json"}).out.find("\"currency\": \"EUR\"") !=
        std::string::npos);

  const std::string tenant =
      files.file("tenant.yaml", "apiVersion: gantry/v1\nkind: Tenant\nname: fraud\n");
  const Run other = fake.run({"gtenant", "price", "apply", "-y", "-f", tenant});
  CHECK(other.status == 1);
  CHECK(other.err.find("Tenant fraud is no price book; gtenant apply takes every kind") !=
        std::string::npos);
  CHECK(fake.run({"gtenant", "price", "apply", "-y"}).status == 2);
  CHECK(fake.run({"gtenant", "price", "sell"}).status == 2);
  CHECK(store.revision == 2);
}

TEST_CASE("greport prints a bill by tenant, with GPUs by model and a total") {
  FakeController fake;
  fake.answer<proto::QueryLedger>(ledger());
  const Run run = fake.run({"greport"});
  CHECK(run.status == 0);
  CHECK(fake.last<proto::QueryLedger>().first == "this-month");
  CHECK(fake.last<proto::QueryLedger>().by == std::vector<std::string>{"period", "tenant", "item"});
  CHECK(run.out ==
        "PERIOD   TENANT  A100-HOURS  T4-HOURS  CORE-HOURS  GIB-HOURS  RUNS  WAIT   WASTE     COST "
        " CREDIT  NET EUR\n"
        "2026-11  fraud       12.642         -     100.000      0.000     3  3:00  0.5000  33.6500 "
        " 1.0000  32.6500\n"
        "2026-11  search           -     2.000       1.333      0.000     3  3:00  0.5000   1.2267 "
        " 0.0000   1.2267\n"
        "total    -           12.642     2.000     101.333      0.000     6  3:00  1.0000  34.8767 "
        " 1.0000  33.8767\n");
}

TEST_CASE("greport groups by labels of jobs") {
  FakeController fake;
  proto::LedgerReply reply = ledger();
  for (proto::LedgerRow& row : reply.rows) row.job_label = "nlp", row.labels = "team=nlp,code=p7";
  fake.answer<proto::QueryLedger>(reply);
  const Run run = fake.run({"greport", "-b", "job-label:team,labels"});
  CHECK(fake.last<proto::QueryLedger>().by ==
        std::vector<std::string>{"job-label:team", "labels", "item"});
  CHECK(run.out.starts_with("JOB-LABEL:TEAM  LABELS            A100-HOURS"));
  CHECK(run.out.find("\nnlp             team=nlp,code=p7 ") != std::string::npos);
  CHECK(fake.run({"greport", "-b", "job-label:"}).status == 2);
}

TEST_CASE(
    "greport shows metered and shared costs, and how much of the platform's cost is recovered") {
  FakeController fake;
  proto::LedgerReply reply = ledger();
  proto::LedgerRow metered;
  metered.period = "2026-11";
  metered.tenant = "fraud";
  metered.item = "meter:storage-gib-month";
  metered.metered = gpu_hours(12'345);
  metered.cost = metered.list = {246'900};
  reply.rows.push_back(metered);
  proto::LedgerRow shared = metered;
  shared.item = "overhead:network";
  shared.metered = {};
  shared.cost = shared.list = shared.overhead = {5'000'000};
  reply.rows.push_back(shared);
  reply.recovery.push_back({"2026-11", {100'000'000}, {39'123'543}});
  fake.answer<proto::QueryLedger>(reply);
  const Run run = fake.run({"greport", "-t", "fraud"});
  CHECK(run.out.find("  STORAGE-GIB-MONTH  ") != std::string::npos);
  CHECK(run.out.find("  12.345  ") != std::string::npos);
  CHECK(run.out.find("  OVERHEAD  ") != std::string::npos);
  CHECK(run.out.ends_with(
      "2026-11: 39.12 of 100.00 EUR that the platform costs recovered (39.1 %)\n"));
  const Run csv = fake.run({"greport", "--csv"});
  CHECK(csv.out.find(",scratch_gib_hours,storage-gib-month,cost,overhead,") != std::string::npos);
  CHECK(csv.out.find(",12.345,38.896900,5.000000,") != std::string::npos);
}

TEST_CASE(
    "greport --focus has the columns of FOCUS, with one line for a cost and one for a credit") {
  FakeController fake;
  proto::LedgerReply reply = ledger();
  for (proto::LedgerRow& row : reply.rows) row.project = "train";
  reply.rows[1].plan = "committed";
  reply.rows[1].list = {50'000'000};
  reply.rows[1].user = "ann,\"a\"";
  reply.rows[1].labels = "team=vision,code=a=\\,b\\\\";
  fake.answer<proto::QueryLedger>(reply);
  const Run run = fake.run({"greport", "--focus"});
  CHECK(fake.last<proto::QueryLedger>().by.size() == 9);
  const std::string& out = run.out;
  CHECK(out.starts_with("BilledCost,BillingAccountId,BillingAccountName,BillingCurrency,"));
  // a head, five rows, and one more row for the credit
  CHECK(std::count(out.begin(), out.end(), '\n') == 7);
  CHECK(out.find("31.250000,fraud,fraud,EUR,2026-12-01T00:00:00Z,2026-11-01T00:00:00Z,Usage,,"
                 "gpu:a100,Usage-Based,2026-12-01T00:00:00Z,2026-11-01T00:00:00Z,12.500,GPU-Hours,"
                 "31.250000,2.500000,31.250000,Gantry,50.000000,4.000000,Committed,12.500,"
                 "GPU-Hours,Gantry,Gantry,,,gpu:a100,gpu:a100,GPU,Compute,GPU,gpu:a100,"
                 "gpu:a100@committed,fraud/train,fraud/train,\"{\"\"user\"\":") !=
        std::string::npos);
  CHECK(
      out.find("\n-1.000001,fraud,fraud,EUR,2026-12-01T00:00:00Z,2026-11-01T00:00:00Z,Credit,,") !=
      std::string::npos);
  CHECK(out.find("\"\"plan\"\":\"\"committed\"\",\"\"label:team\"\":\"\"vision\"\","
                 "\"\"label:code\"\":\"\"a=,b\\\\\"\"}\"\n") != std::string::npos);
  CHECK(fake.run({"greport", "--focus", "--csv"}).status == 2);
  CHECK(fake.run({"greport", "--focus", "-b", "user"}).status == 2);
}

TEST_CASE("gctl top --cost shows the running jobs, the most expensive first") {
  FakeController fake;
  proto::ListJobsReply jobs;
  jobs.currency = "EUR";
  jobs.now = kNow;
  for (const std::int64_t rate : {2'000'000, 80'000'000, 500'000}) {
    proto::JobRow job;
    job.job = JobId(jobs.rows.size() + 1);
    job.name = "train";
    job.user = "alice";
    job.partition = "fraud";
    job.phase = Phase::running;
    job.started = kNow - minutes(90);
    job.cpus = 4;
    job.gpus = 8;
    job.cost = Money{rate + rate / 2};
    job.cost_rate = Money{rate};
    jobs.rows.push_back(std::move(job));
  }
  fake.answer<proto::ListJobs>(jobs);
  const Run run = fake.run({"gctl", "top", "--cost"});
  CHECK(run.out ==
        "JOB NAME  USER  PARTITION GPUS CORES ELAPSED     COST PER HOUR\n"
        "  2 train alice fraud        8     4 1:30:00 120.0000  80.0000\n"
        "  1 train alice fraud        8     4 1:30:00   3.0000   2.0000\n"
        "  3 train alice fraud        8     4 1:30:00   0.7500   0.5000\n");
  CHECK(fake.run({"gctl", "top", "--cost", "n01"}).status == 2);
  jobs.currency.clear();
  fake.answer<proto::ListJobs>(jobs);
  CHECK(fake.run({"gctl", "top", "--cost"}).status == 1);
}

TEST_CASE("gtenant meter reads CSV, and names the line that is wrong") {
  FakeController fake;
  proto::MeterReply charged;
  charged.currency = "EUR";
  charged.batches.push_back({"storage.csv", "", "root", kNow, 2, {246'900}});
  fake.answer<proto::ImportMeter>(charged);
  ScratchDir files;
  const std::string good = files.file("storage.csv",
                                      "# of the file servers\n"
                                      "tenant, meter, date, amount, user\r\n"
                                      "\n"
                                      "fraud,storage,2026-11-30,12.5,\"bob\"\r\n"
                                      "search,storage,2026-11-30,-0.155,\n");
  const Run run = fake.run({"gtenant", "meter", "import", good});
  CHECK(run.out == "storage.csv: 2 lines, 0.2469 EUR, charged\n");
  const auto& sent = fake.last<proto::ImportMeter>();
  CHECK(sent.name == "storage.csv");
  CHECK(sent.digest.size() == 32);
  REQUIRE(sent.lines.size() == 2);
  CHECK(sent.lines[0].line == 4);
  CHECK(sent.lines[0].user == "bob");
  CHECK(sent.lines[0].amount == 12'500);
  CHECK(sent.lines[1].amount == -155);
  for (const auto& [text, wrong] :
       {std::pair("tenant,meter,date\n", ":1: column amount is missing"),
        std::pair("tenant,meter,date,amount,colour\n", ":1: there is no column \"colour\""),
        std::pair("tenant,meter,date,amount,tenant\n", ":1: column tenant is there twice"),
        std::pair("tenant,meter,date,amount\na,b,2026-11-30\n", ":2: has 3 cells; columns: 4"),
        std::pair("tenant,meter,date,amount\na,b,2026-11-30,1.2345\n", ":2: amount: "),
        std::pair("tenant,meter,date,amount\na,,2026-11-30,1\n", ":2: meter is missing"),
        std::pair("", ": has no lines")}) {
    const Run bad = fake.run({"gtenant", "meter", "import", files.file("bad.csv", text)});
    CHECK(bad.status == 1);
    CHECK_MESSAGE(bad.err.find(std::string("bad.csv") + wrong) != std::string::npos, bad.err);
  }
  CHECK(fake.run({"gtenant", "meter", "import", "/nowhere.csv"}).status == 1);
  CHECK(fake.run({"gtenant", "meter", "import", "-"}).status == 2);
}

TEST_CASE("greport writes CSV with exact amounts, and refuses unknown columns") {
  FakeController fake;
  fake.answer<proto::QueryLedger>(ledger());
  const Run csv = fake.run({"greport", "2026-10", "2026-11", "--csv", "-t", "fraud,search"});
  CHECK(csv.out ==
        "period,tenant,gpu_hours,gpu_hours_a100,gpu_hours_t4,cpu_hours,memory_gib_hours,"
        "scratch_gib_hours,cost,overhead,credit,net,list_cost,waste,idle_gpu_hours,idle_cpu_hours,"
        "idle_memory_gib_hours,currency,runs,starts,waited_seconds\n"
        "2026-11,fraud,12.642,12.642,0.000,100.000,0.000,0.000,33.650000,0.000000,1.000001,"
        "32.649999,33.650000,0.500000,0.250,1.000,0.000,EUR,3,3,540\n"
        "2026-11,search,2.000,0.000,2.000,1.333,0.000,0.000,1.226667,0.000000,0.000000,1.226667,"
        "1.226667,0.500000,0.000,1.000,0.000,EUR,3,3,540\n");
  CHECK(fake.last<proto::QueryLedger>().first == "2026-10");
  CHECK(fake.last<proto::QueryLedger>().last == "2026-11");
  CHECK(fake.last<proto::QueryLedger>().tenants == std::vector<std::string>{"fraud", "search"});
  const Run json = fake.run({"greport", "--json"});
  CHECK(json.out.find("\"cost\": 31250000") != std::string::npos);
  CHECK(fake.run({"greport", "--json", "--csv"}).status == 2);
  CHECK(fake.run({"greport", "-b", "colour"}).err.find("there is no column \"colour\"") !=
        std::string::npos);
  CHECK(fake.run({"greport", "-b", "user,user"}).status == 2);
  CHECK(fake.run({"greport", "a", "b", "c"}).status == 2);
}

TEST_CASE("gqueue shows what each job has cost and costs per hour") {
  FakeController fake;
  proto::ListJobsReply jobs{sample_jobs(), false, {}, kNow, {}, "EUR"};
  jobs.rows.at(0).cost = Money{12'345'678};
  jobs.rows.at(0).cost_rate = Money{5'000'000};
  fake.answer<proto::ListJobs>(jobs);
  const Run run = fake.run({"gqueue", "--noheader", "-o", "%x %X", "-t", "all"});
  CHECK(run.out.starts_with("12.3457 5.0000\n- -\n"));
  CHECK(fake.run({"gqueue", "--cost"}).out.find("COST/HOUR") != std::string::npos);
}

TEST_CASE("gbatch says what a job would cost") {
  FakeController fake;
  proto::SubmitReply reply;
  reply.partition = "batch";
  reply.cpus = 4;
  reply.currency = "EUR";
  reply.cost_per_hour = Money{5'080'000};
  reply.cost_expected = Money{2'540'000};
  reply.cost_most = Money{10'160'000};
  fake.answer<proto::SubmitJob>(reply);
  const Run run = fake.run({"gbatch", "--test-only", "--wrap=true"});
  CHECK(run.err.find("cost: 5.0800 EUR an hour, 2.5400 if it starts then and runs to its limit, at "
                     "most 10.1600 in all\n") != std::string::npos);
}

TEST_CASE("metrics are in Prometheus's format, and the dashboard uses no others") {
  FakeController fake;
  proto::LedgerReply reply = ledger();
  for (proto::LedgerRow& row : reply.rows) row.job_type = "batch";
  reply.rows[3].tenant = "odd \"one\"\\";
  fake.answer<proto::QueryLedger>(reply);
  proto::TenantUsageReply usage;
  usage.rows.emplace_back().name = "fraud";
  usage.rows[0].running = 7;
  usage.rows[0].used.row(Resource::gpu) = 12'142;
  usage.rows.emplace_back().is_cohort = true;
  fake.answer<proto::TenantUsage>(usage);
  const Run run = fake.run({"greport", "--metrics"});
  CHECK(run.status == 0);
  CHECK(fake.last<proto::QueryLedger>().by ==
        std::vector<std::string>{"tenant", "job_type", "item"});
  CHECK(run.out.starts_with(
      "# HELP gantry_gpu_seconds_total GPU-seconds held; a slice is its part of one.\n"
      "# TYPE gantry_gpu_seconds_total counter\n"
      "gantry_gpu_seconds_total{tenant=\"fraud\",job_type=\"batch\",gpu_type=\"a100\"} "
      "45511.200000000\n"));
  CHECK(run.out.find("gantry_cost_total{tenant=\"fraud\",job_type=\"batch\",currency=\"EUR\"} "
                     "33.650000\n") != std::string::npos);
  CHECK(run.out.find("gantry_cpu_seconds_total{tenant=\"odd \\\"one\\\"\\\\\",") !=
        std::string::npos);
  CHECK(run.out.find("gantry_current_gpus{tenant=\"fraud\"} 12.142\n") != std::string::npos);
  CHECK(run.out.find("tenant=\"\"") == std::string::npos);  // the row of the cohort is left out
  // Each metric that the example dashboard uses must be exported.
  std::ostringstream dashboard;
  dashboard << std::ifstream(source_dir() + "/docs/examples/grafana/gantry.json").rdbuf();
  const std::string text = dashboard.str();
  std::size_t metrics = 0;
  for (std::size_t at = text.find("gantry_"); at != std::string::npos;
       at = text.find("gantry_", at + 1), ++metrics) {
    const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at);
    CHECK_MESSAGE(run.out.find("# TYPE " + text.substr(at, end - at) + " ") != std::string::npos,
                  text.substr(at, end - at));
  }
  CHECK(metrics >= 9);
  // Debian's package prometheus installs this program; without it the test ends here.
  const char* tool = "/usr/bin/promtool";
  if (!std::filesystem::exists(tool)) return;
  const Run checked = run_program({{tool, "check", "metrics"}, {}, run.out, "/tmp"});
  CHECK_MESSAGE(checked.status == 0, (checked.out + checked.err));
}

TEST_CASE("an invoice has a number, adds up, and is identical when it is made again") {
  FakeController fake;
  ScratchDir files;
  proto::LedgerReply reply = ledger();
  reply.rows.resize(3);
  for (proto::LedgerRow& row : reply.rows) {
    row.project = "research <&>";
    row.user = "ann";
    row.label = "CC-4711";
  }
  reply.issuer = "Research Computing, Building 7";
  reply.tenant_zone = "Europe/Berlin";
  reply.rows[0].cost.micros += 1'234'000'000;
  fake.answer<proto::QueryLedger>(reply);
  const auto slurp = [](const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  };
  const std::string page = files.path() + "/a.html";
  const Run run = fake.run({"greport", "2026-11", "-t", "fraud", "--invoice", page});
  CHECK(run.status == 0);
  CHECK(run.out.starts_with(page + ": invoice fraud-2026-11-"));
  CHECK(run.out.ends_with(", 1,266.65 EUR\n"));
  CHECK(fake.last<proto::QueryLedger>().by.back() == "label:cost-center");
  const std::string text = slurp(page);
  CHECK(text.find("<td class=n>31.25</td><td class=n>1.00</td>") != std::string::npos);
  for (const char* part :
       {"<tr><td>From</td><td>Research Computing, Building 7</td></tr>",
        "<tr><td>To</td><td>fraud</td></tr>", "<tr><td>Cost centre</td><td>CC-4711</td></tr>",
        "<tr><td>Period</td><td>2026-11, 2026-11-01 to 2026-11-30</td></tr>",
        "<tr><td>Time zone</td><td>Europe/Berlin</td></tr>"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
  CHECK(text.find("research &lt;&amp;&gt;") != std::string::npos);
  CHECK(text.find("<td class=n>1,267.65</td>") != std::string::npos);
  CHECK(fake.run({"greport", "2026-11", "-t", "fraud", "--exact", "--invoice", page}).status == 0);
  CHECK(slurp(page).find("<td class=n>1267.650000</td>") != std::string::npos);
  CHECK(slurp(page).find("<td class=n>1.000001</td>") != std::string::npos);
  CHECK(fake.run({"greport", "--exact"}).status == 2);
  const std::string paper = files.path() + "/a.pdf";
  CHECK(fake.run({"greport", "2026-11", "-t", "fraud", "--invoice", paper}).status == 0);
  const std::string pdf = slurp(paper);
  CHECK(pdf.starts_with("%PDF-1.4\n"));
  CHECK(pdf.ends_with("%%EOF\n"));
  CHECK(pdf.find("(1,267.65) Tj") != std::string::npos);
  CHECK(pdf.find("(Cost centre CC-4711) Tj") != std::string::npos);
  // The table of objects gives the byte at which each object begins.
  const std::size_t table = std::stoul(pdf.substr(pdf.find("startxref\n") + 10));
  CHECK(pdf.substr(table, 4) == "xref");
  const std::size_t first = std::stoul(pdf.substr(pdf.find("\n0000000", table) + 22, 10));
  CHECK(pdf.substr(first, 7) == "1 0 obj");
  CHECK(fake.run({"greport", "2026-11", "-t", "fraud", "--invoice", paper}).status == 0);
  CHECK(slurp(paper) == pdf);

  CHECK(fake.run({"greport", "-t", "fraud", "--invoice", "a.doc"}).status == 2);
  CHECK(fake.run({"greport", "--invoice", page}).status == 2);
  CHECK(fake.run({"greport", "-t", "a,b", "--invoice", page}).status == 2);
  CHECK(fake.run({"greport", "-t", "fraud", "--csv", "--invoice", page}).status == 2);
  fake.answer<proto::QueryLedger>(proto::LedgerReply{});
  proto::ListPartitionsReply partitions;
  partitions.partitions.resize(1);
  partitions.partitions[0].name = "fraud";
  fake.answer<proto::ListPartitions>(partitions);
  const Run nothing = fake.run({"greport", "-t", "fraud", "--invoice", page});
  CHECK(nothing.status == 1);
  CHECK(nothing.err.find("fraud held nothing in last-month") != std::string::npos);
}
