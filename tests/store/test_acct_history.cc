// Accounting queries: the tests check records, matching, and pages that join live jobs and the
// history.
#include <doctest/doctest.h>

#include <condition_variable>
#include <ctime>

#include "ctld/acct/history_reader.h"
#include "store_fixture.h"

namespace gantry::acct {

using proto::HistoryRow;
using proto::JobRef;
using proto::QueryHistory;
using store::FoldBatch;
using store::MemoryStore;

namespace {

// A job that was submitted at 100 * id, started 10 later and ended 20 later.
HistoryRow job(std::uint64_t id, Outcome outcome = Outcome::completed) {
  HistoryRow row;
  row.row.job = JobId{id};
  row.row.name = "train";
  row.row.user = "ada";
  row.row.uid = Uid{1001};
  row.row.partition = "batch";
  row.row.account = "vision";
  row.row.phase = Phase::ended;
  row.row.outcome = outcome;
  row.row.submitted = Instant{static_cast<std::int64_t>(100 * id)};
  row.row.started = row.row.submitted + Duration{10};
  row.row.ended = row.row.submitted + Duration{20};
  row.row.node_list = "n[1-2]";
  row.usage.memory_peak_bytes = 1 << 20;
  return row;
}

HistoryRow element(std::uint64_t id, std::uint64_t array, std::uint32_t task) {
  HistoryRow row = job(id);
  row.row.array_job = JobId{array};
  row.row.array_task = task;
  return row;
}

HistoryRow in_phase(HistoryRow row, Phase phase) {
  row.row.phase = phase;
  row.row.outcome.reset();
  row.row.ended.reset();
  if (phase == Phase::queued) row.row.started.reset();
  return row;
}

void record(store::Store& store, const std::vector<HistoryRow>& rows) {
  FoldBatch fold;
  for (const HistoryRow& row : rows) fold.history.push_back(to_entry(row));
  REQUIRE(store.fold(fold).has_value());
}

QueryHistory by_jobs(std::vector<JobRef> jobs) {
  QueryHistory query;
  query.filter.jobs = std::move(jobs);
  return query;
}

HistoryQuery made(const QueryHistory& message, std::optional<Uid> only = {}) {
  auto query = HistoryQuery::make(message, only);
  if (!query) FAIL(query.error().message);
  return *query;
}

std::string text(const HistoryRow& row) {
  std::string text = fmt::format("{}", row.row.job.value());
  if (row.row.restarts > 0) text += fmt::format("r{}", row.row.restarts);
  if (row.row.phase != Phase::ended) text += "*";
  return text;
}

// Reads all pages of a query. The result lists the job ids; `*` marks a live job and `|` separates
// pages. The first page gets all live rows at once.
std::string all(const store::Store& store, QueryHistory message, LiveRows live = {},
                std::optional<Uid> only = {}) {
  std::string out;
  for (int page = 0; page < 100; ++page) {
    HistoryQuery query = made(message, only);
    bool first = query.position().phase == PagePosition::Phase::live;
    auto reply = next_page(store, query, first ? live : LiveRows{}, Instant{77});
    if (!reply) FAIL(reply.error().message);
    CHECK(reply->now == Instant{77});
    for (const HistoryRow& row : reply->rows)
      out += (out.empty() || out.back() == ' ' ? "" : " ") + text(row);
    if (!reply->more) return out;
    out += " | ";
    message.position = reply->position;
  }
  FAIL("it does not end");
  return out;
}

std::string matching(const QueryHistory& message, const std::vector<HistoryRow>& rows) {
  HistoryQuery query = made(message);
  std::string out;
  for (const HistoryRow& row : rows)
    if (query.matches(row)) out += (out.empty() ? "" : " ") + text(row);
  return out;
}

}  // namespace

TEST_CASE("a history record is read back with all its fields") {
  HistoryRow row = element(7, 5, 3);
  row.cause = "exceeded its memory limit of 64M on n1, peak 80M";
  row.submit_line = "gbatch --array=0-9 a.sh";
  row.steps.emplace_back().step = "batch";
  store::HistoryEntry entry = to_entry(row);
  CHECK(entry.end == Instant{720});
  CHECK(entry.job == JobId{7});
  CHECK(entry.array == JobId{5});
  HistoryRow back = from_entry(entry).value();
  CHECK(back.cause == row.cause);
  CHECK(back.row.array_task == 3);
  CHECK(back.row.ended == row.row.ended);
  CHECK(back.steps.size() == 1);
  CHECK(entry.data.size() < 400);
  entry.data.resize(entry.data.size() / 2);
  CHECK(from_entry(entry).error().message.find("job 7") != std::string::npos);
  entry = to_entry(job(8));
  entry.job = JobId{9};
  CHECK(from_entry(entry).error().code == ErrorCode::malformed);
}

TEST_CASE("a page position survives the way to the client and back") {
  PagePosition live;
  live.live_after = JobId{77};
  PagePosition start;
  start.phase = PagePosition::Phase::history;
  PagePosition middle = start;
  middle.named = 3;
  middle.after = {Instant{1'700'000'000'000'000}, JobId{1ULL << 60}};
  for (const PagePosition& position : {PagePosition{}, live, start, middle})
    CHECK(page_position(to_bytes(position)) == position);
  CHECK(page_position("") == PagePosition{});
  Bytes good = to_bytes(middle);
  for (Bytes bad :
       {good + "x", good.substr(1), "\x02" + good.substr(1), Bytes(good.size(), '\xff')})
    CHECK(page_position(bad).error().code == ErrorCode::malformed);
}

TEST_CASE("a filter names jobs by id, by array, and by array element") {
  std::vector<HistoryRow> rows{job(4), element(11, 10, 0), element(12, 10, 1), element(13, 10, 6)};
  HistoryRow rest = in_phase(element(10, 10, 0), Phase::queued);
  rest.row.array_task.reset();
  rest.row.array_tasks = "2-5%2";
  rows.push_back(rest);
  CHECK(matching({}, rows) == "4 11 12 13 10*");
  CHECK(matching(by_jobs({{JobId{4}, {}}}), rows) == "4");
  CHECK(matching(by_jobs({{JobId{12}, {}}}), rows) == "12");
  CHECK(matching(by_jobs({{JobId{10}, {}}}), rows) == "11 12 13 10*");
  CHECK(matching(by_jobs({{JobId{10}, {{1, 1, 1}}}}), rows) == "12");
  CHECK(matching(by_jobs({{JobId{10}, {{0, 6, 3}}}}), rows) == "11 13 10*");
  CHECK(matching(by_jobs({{JobId{10}, {{7, 9, 1}}}}), rows) == "");
  CHECK(matching(by_jobs({{JobId{4}, {{0, 3, 1}}}}), rows) == "");  // Job 4 is no array.
  CHECK(matching(by_jobs({{JobId{4}, {}}, {JobId{13}, {}}}), rows) == "4 13");
}

TEST_CASE("every condition of a filter counts") {
  std::vector<HistoryRow> rows{job(1), job(2), job(3), job(4), job(5)};
  rows[0].row.user = "bob";
  rows[1].row.name = "eval";
  rows[2].row.partition = "long";
  rows[3].row.account = "speech";
  rows[4].row.node_list = "n[3-9]";
  QueryHistory query;
  query.filter.users = {"bob", "eve"};
  CHECK(matching(query, rows) == "1");
  query.filter = {};
  query.filter.names = {"eval"};
  CHECK(matching(query, rows) == "2");
  query.filter = {};
  query.filter.partitions = {"long", "batch"};
  CHECK(matching(query, rows) == "1 2 3 4 5");
  query.filter.accounts = {"speech"};
  CHECK(matching(query, rows) == "4");
  query.filter = {};
  query.filter.nodes = {"n2", "n[7-8]"};
  CHECK(matching(query, rows) == "1 2 3 4 5");
  query.filter.nodes = {"n[3,9]"};
  CHECK(matching(query, rows) == "5");
}

TEST_CASE("a filter by states looks at the states that a job had within the time window") {
  // Job 2 was submitted at 200, started at 210 and ended at 220. Job 5 runs since 510. Job 6 is
  // queued since 600.
  std::vector<HistoryRow> rows{job(2, Outcome::failed), in_phase(job(5), Phase::running),
                               in_phase(job(6), Phase::queued)};
  auto query = [](std::vector<std::string> states, std::optional<std::int64_t> start,
                  std::optional<std::int64_t> end) {
    QueryHistory q;
    q.filter.states = std::move(states);
    if (start) q.start = Instant{*start};
    if (end) q.end = Instant{*end};
    return q;
  };
  CHECK(matching(query({"F"}, {}, {}), rows) == "2");
  CHECK(matching(query({"R", "PD"}, {}, {}), rows) == "5* 6*");
  CHECK(matching(query({"all"}, {}, {}), rows) == "2 5* 6*");
  CHECK(matching(query({}, 221, {}), rows) == "5* 6*");
  CHECK(matching(query({}, 220, {}), rows) == "2 5* 6*");
  CHECK(matching(query({}, {}, 600), rows) == "2 5*");
  CHECK(matching(query({}, 250, 400), rows) == "");
  // A state counts if the job was in it within the window, whatever state it has now.
  CHECK(matching(query({"PD"}, 200, 205), rows) == "2");
  CHECK(matching(query({"PD"}, 211, 700), rows) == "5* 6*");
  CHECK(matching(query({"R"}, 215, 400), rows) == "2");
  CHECK(matching(query({"R"}, 215, 511), rows) == "2 5*");
  CHECK(matching(query({"R"}, 0, 510), rows) == "2");
  CHECK(matching(query({"F"}, 0, 220), rows) == "");
  CHECK(matching(query({"F"}, 0, 221), rows) == "2");
  CHECK(matching(query({"CG"}, 0, 900), rows) == "");
}

TEST_CASE("tasks of an array are found in a row of many, also where its list is cut") {
  const auto found = [](std::vector<IndexRange> asked, const std::string& tasks) {
    HistoryRow row = job(7);
    row.row.array_job = JobId{7};
    row.row.array_tasks = tasks;
    return made(by_jobs({{JobId{7}, std::move(asked)}})).matches(row);
  };
  CHECK(found({{3, 3, 1}}, "1-9:2,20"));
  CHECK_FALSE(found({{4, 4, 1}, {10, 19, 1}, {0, 8, 4}}, "1-9:2,20"));
  CHECK(found({{0, 100, 4}}, "1-9:2,20"));
  CHECK(found({{40, 50, 1}}, "1-9:2,20,..."));
  CHECK_FALSE(found({{10, 19, 1}}, "1-9:2,20,..."));
  // Each list is of a length that its user chose.
  std::string list = "1";
  for (std::uint32_t i = 3; i < 400'000; i += 2) list += fmt::format(",{}", i);
  const auto began = std::clock();
  CHECK_FALSE(found({{0, 399'998, 2}}, list));
  CHECK(std::clock() - began < 3 * CLOCKS_PER_SEC);
}

TEST_CASE("malformed queries are refused with a message") {
  auto refused = [](const QueryHistory& query) {
    auto made = HistoryQuery::make(query, std::nullopt);
    REQUIRE_FALSE(made.has_value());
    return made.error().message;
  };
  QueryHistory query;
  query.filter.states = {"asleep"};
  CHECK(refused(query).find("\"asleep\"") != std::string::npos);
  query = {};
  query.filter.nodes = {"n[1-"};
  CHECK(refused(query) != "");
  query = {};
  query.start = Instant{10};
  query.end = Instant{9};
  CHECK(refused(query).find("before its start") != std::string::npos);
  query = {};
  query.filter.jobs.resize(kMaxQueryJobs + 1);
  CHECK(refused(query).find("at most 10000 jobs") != std::string::npos);
  query = {};
  query.position = "somewhere";
  CHECK(refused(query).find("position") != std::string::npos);
}

TEST_CASE("pages have the live jobs first, then the history by time of end") {
  MemoryStore store;
  record(store, {job(3), job(1), job(2), job(4)});
  LiveRows live{{in_phase(job(8), Phase::running), in_phase(job(9), Phase::queued)}, false};
  CHECK(all(store, {}, live) == "8* 9* 1 2 3 4");
  QueryHistory query;
  query.limit = 2;
  CHECK(all(store, query, live) == "8* 9* | 1 2 | 3 4");
  query.limit = 3;
  CHECK(all(store, query, live) == "8* 9* 1 | 2 3 4");
  query.start = Instant{300};
  CHECK(all(store, query, live) == "8* 9* 3 | 4");
}

TEST_CASE("live jobs that do not fit one page continue on the next page") {
  MemoryStore store;
  record(store, {job(1)});
  QueryHistory message;
  message.limit = 2;
  LiveRows first{{in_phase(job(8), Phase::running), in_phase(job(9), Phase::running)}, true};
  auto reply = next_page(store, made(message), first, Instant{});
  REQUIRE(reply.has_value());
  CHECK(reply->rows.size() == 2);
  REQUIRE(reply->more);
  message.position = reply->position;
  CHECK(made(message).position().live_after == JobId{9});
  LiveRows rest{{in_phase(job(10), Phase::running)}, false};
  CHECK(all(store, message, rest) == "10* 1");
}

TEST_CASE("a job that is live and in the history comes once, as ended") {
  MemoryStore store;
  record(store, {job(1), job(2)});
  LiveRows live{{in_phase(job(2), Phase::running), in_phase(job(3), Phase::running)}, false};
  CHECK(all(store, {}, live) == "2 3* 1");
}

TEST_CASE("a requeued job comes with its last run, or with each run on demand") {
  MemoryStore store;
  HistoryRow again = job(1);
  again.row.restarts = 1;
  *again.row.ended = Instant{500};
  record(store, {job(1, Outcome::node_fail), again, job(2)});
  QueryHistory query;
  CHECK(all(store, query) == "1r1 2");
  HistoryRow third = in_phase(job(1), Phase::running);
  third.row.restarts = 2;
  CHECK(all(store, query, {{third}, false}) == "1r2* 2");
  query.duplicates = true;
  CHECK(all(store, query, {{third}, false}) == "1r2* 1 2 1r1");
}

TEST_CASE("jobs that a query names are looked up, and each comes once") {
  store::LmdbDisk disk;
  record(disk.store(), {element(11, 10, 0), element(12, 10, 1), job(4), job(5), job(6)});
  QueryHistory query = by_jobs({{JobId{5}, {}},
                                {JobId{10}, {}},
                                {JobId{12}, {}},
                                {JobId{99}, {}},
                                {JobId{5}, {}},
                                {JobId{4}, {}}});
  CHECK(all(disk.store(), query) == "5 11 12 4");
  query.limit = 1;
  CHECK(all(disk.store(), query) == "5 | 11 | 12 | 4");
  query = by_jobs({{JobId{10}, {{1, 1, 1}}}});
  CHECK(all(disk.store(), query) == "12");
}

TEST_CASE("a plain user sees only their own jobs") {
  MemoryStore store;
  HistoryRow other = job(2);
  other.row.uid = Uid{1002};
  HistoryRow other_live = in_phase(job(9), Phase::running);
  other_live.row.uid = Uid{1002};
  record(store, {job(1), other, job(3)});
  LiveRows live{{in_phase(job(8), Phase::running), other_live}, false};
  CHECK(all(store, {}, live, Uid{1001}) == "8* 1 3");
  CHECK(all(store, by_jobs({{JobId{2}, {}}}), {}, Uid{1001}) == "");
  CHECK(all(store, by_jobs({{JobId{2}, {}}}), {}, Uid{1002}) == "2");
}

TEST_CASE("a query that matches nothing ends its page after kMaxExamined records") {
  MemoryStore store;
  FoldBatch fold;
  for (std::uint64_t id = 1; id <= kMaxExamined + 10; ++id)
    fold.history.push_back(to_entry(job(id)));
  REQUIRE(store.fold(fold).has_value());
  QueryHistory query;
  query.filter.names = {"nothing like it"};
  CHECK(all(store, query) == " | ");
}

TEST_CASE("the history reader answers from its own thread through post()") {
  store::LmdbDisk disk;
  record(disk.store(), {job(1), job(2), job(3)});
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> answers;  // `mutex` guards this list.
  std::thread::id reader_thread;
  HistoryReader reader(disk.store(), [&](std::function<void()> handler) {
    std::lock_guard guard(mutex);
    reader_thread = std::this_thread::get_id();
    handler();
    changed.notify_one();
  });
  for (std::uint64_t id : {2, 3, 1}) {
    auto asked = reader.ask(made(by_jobs({{JobId{id}, {}}})), {}, Instant{5},
                            [&](Result<proto::HistoryReply> reply) {
                              answers.push_back(text(reply.value().rows.at(0)));
                            });
    REQUIRE(asked.has_value());
  }
  std::unique_lock guard(mutex);
  changed.wait(guard, [&] { return answers.size() == 3; });
  CHECK(answers == std::vector<std::string>{"2", "3", "1"});
  CHECK(reader_thread != std::this_thread::get_id());
}

TEST_CASE("the history reader refuses questions beyond its limit, and ends with some unanswered") {
  MemoryStore store;
  std::mutex gate;
  std::unique_lock closed(gate);
  int refused = 0;
  {
    HistoryReader reader(store, [&](std::function<void()>) { std::lock_guard wait(gate); });
    for (std::size_t i = 0; i < kMaxQuestions + 5; ++i) {
      auto asked = reader.ask(made({}), {}, Instant{}, [](auto&&) {});
      if (!asked) {
        CHECK(asked.error().code == ErrorCode::unavailable);
        ++refused;
      }
    }
    closed.unlock();
  }
  CHECK((refused == 4 || refused == 5));  // The reader may have taken one question already.
}

TEST_CASE("a query to a store that has failed gives the error of the store") {
  MemoryStore store;
  store.crash_next_fold(store::CrashPoint::before_commit);
  CHECK_FALSE(store.fold({}).has_value());
  CHECK(next_page(store, made({}), {}, Instant{}).error().code == ErrorCode::io_error);
}

}  // namespace gantry::acct
