// The load generator of the system bench. Each call makes one measurement and prints one JSON line.
//
//   bench_load submit OUTSTANDING COUNT [CONSTRAINT]   durable submits of about 1 KB
//   bench_load array TASKS                             one submit of an array
//   bench_load pipe COUNT                              submitted, run, accounted
//   bench_load start COUNT                             submit to running, one after the other
//   bench_load list                                    all jobs, page by page
//   bench_load cancel NAME                             all jobs of that name, one request
//   bench_load spawn PARALLEL COUNT COMMAND...         processes; "{}" is the number of the run
//   bench_load answer                                  connects and asks until it is answered
//
// With a last argument tenants=N, jobs go to the queues t1 to tN in turn. $GANTRY_CONF gives the
// cluster and the identity, as for any command.
#include <fmt/core.h>

#include <algorithm>
#include <deque>

#include "bench/system/spawn.h"
#include "cli/random_id.h"
#include "cli/session.h"

namespace gantry::bench {
namespace {

using cli::Session;
constexpr Duration kPatience = seconds(120);
std::size_t g_tenants = 0;  // the N of tenants=N

[[noreturn]] void die(const std::string& why) {
  fmt::print(stderr, "bench_load: {}\n", why);
  std::exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result) die(result.error().message);
  return std::move(*result);
}

Session connect() {
  return must(Session::open("bench"));
}

double percentile(std::vector<double> sorted, double p) {
  if (sorted.empty()) return 0;
  std::sort(sorted.begin(), sorted.end());
  const double at = p * static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(at)];
}

// The job takes about 1 KB in all, like a user's script with its environment.
proto::SubmitJob typical_job(const std::string& constraint) {
  proto::SubmitJob m;
  m.spec.name = constraint.empty() ? "run" : "wait";
  m.spec.work_dir = "/tmp";
  m.spec.std_out = "/dev/null";
  m.spec.time_limit = minutes(1);
  m.spec.shape.constraint = constraint;
  m.spec.shape.memory_per_node = 16 << 20;
  m.spec.submit_line = "gbatch --mem=16M -t 1 job.sh";
  m.script = "#!/bin/sh\ntrue\n" + std::string(500, '#') + "\n";
  m.environment = {
      {"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/root"}, {"LANG", "C.UTF-8"}};
  return m;
}

struct Rate {
  double seconds = 0;
  std::vector<double> each_ms;
};

Rate submit_many(Session& session, std::size_t outstanding, std::size_t count,
                 const std::string& constraint) {
  proto::SubmitJob job = typical_job(constraint);
  const std::string prefix = cli::random_id();
  std::deque<std::pair<std::uint64_t, double>> open;
  Rate rate;
  rate.each_ms.reserve(count);
  const double begin = now_ms();
  for (std::size_t sent = 0; sent < count || !open.empty();) {
    while (sent < count && open.size() < outstanding) {
      if (g_tenants > 0) job.spec.partition = fmt::format("t{}", sent % g_tenants + 1);
      job.request_id = prefix + std::to_string(sent++);
      const double at = now_ms();
      open.emplace_back(must(session.send(job)), at);
    }
    must(session.receive<proto::SubmitReply>(open.front().first, kPatience));
    rate.each_ms.push_back(now_ms() - open.front().second);
    open.pop_front();
  }
  rate.seconds = (now_ms() - begin) / 1e3;
  return rate;
}

int submit(std::size_t outstanding, std::size_t count, const std::string& constraint) {
  Session session = connect();
  const Rate rate = submit_many(session, outstanding, count, constraint);
  fmt::print("{{\"per_second\": {:.0f}, \"p50_ms\": {:.3f}, \"p99_ms\": {:.3f}}}\n",
             static_cast<double>(count) / rate.seconds, percentile(rate.each_ms, 0.5),
             percentile(rate.each_ms, 0.99));
  return 0;
}

int array(std::uint32_t tasks) {
  Session session = connect();
  proto::SubmitJob job = typical_job("parked");
  job.request_id = cli::random_id();
  job.spec.name = "array";
  job.spec.array = ArraySpec{{{0, tasks - 1, 1}}, std::nullopt};
  const double begin = now_ms();
  must(session.call<proto::SubmitReply>(job));
  fmt::print("{{\"ms\": {:.3f}}}\n", now_ms() - begin);
  return 0;
}

// Measures from the first submit until the controller has no more active or queued jobs than
// before.
int pipe(std::size_t count) {
  Session session = connect();
  const auto before = must(session.call<proto::PingReply>(proto::Ping{}));
  const double begin = now_ms();
  submit_many(session, 256, count, "");
  for (;;) {
    const auto now = must(session.call<proto::PingReply>(proto::Ping{}));
    if (now.jobs_queued <= before.jobs_queued && now.jobs_active <= before.jobs_active) break;
    const timespec nap{0, 2'000'000};
    ::nanosleep(&nap, nullptr);
  }
  const double seconds = (now_ms() - begin) / 1e3;
  fmt::print("{{\"per_second\": {:.0f}, \"pending\": {}}}\n", static_cast<double>(count) / seconds,
             before.jobs_queued);
  return 0;
}

int start(std::size_t count) {
  Session session = connect();
  std::vector<double> each;
  for (std::size_t i = 0; i < count; ++i) {
    proto::SubmitJob job = typical_job("");
    job.request_id = cli::random_id();
    const double begin = now_ms();
    proto::WaitJobs wait;
    wait.jobs.push_back({must(session.call<proto::SubmitReply>(job)).job, {}});
    wait.until_started = true;
    must(session.call<proto::WaitReply>(wait, kPatience));
    each.push_back(now_ms() - begin);
    wait.until_started = false;
    must(session.call<proto::WaitReply>(wait, kPatience));
  }
  fmt::print("{{\"p50_ms\": {:.2f}, \"p99_ms\": {:.2f}}}\n", percentile(each, 0.5),
             percentile(each, 0.99));
  return 0;
}

int list() {
  Session session = connect();
  proto::ListJobs request;
  std::size_t rows = 0;
  const double begin = now_ms();
  for (;;) {
    const auto reply = must(session.call<proto::ListJobsReply>(request, kPatience));
    rows += reply.rows.size();
    if (!reply.more) break;
    request.after = reply.next;
  }
  fmt::print("{{\"ms\": {:.2f}, \"rows\": {}}}\n", now_ms() - begin, rows);
  return 0;
}

int cancel(const std::string& name) {
  Session session = connect();
  proto::CancelJobs request;
  request.filter.names.push_back(name);
  const double begin = now_ms();
  const auto done = must(session.call<proto::JobsDone>(request, kPatience));
  fmt::print("{{\"ms\": {:.2f}, \"jobs\": {}}}\n", now_ms() - begin, done.changed);
  return 0;
}

int answer() {
  const double begin = now_ms();
  for (;;) {
    auto session = Session::open("bench");
    if (session && session->call<proto::PingReply>(proto::Ping{}, seconds(30))) break;
    if (now_ms() - begin > 60'000) die("no answer within a minute");
    const timespec nap{0, 5'000'000};
    ::nanosleep(&nap, nullptr);
  }
  fmt::print("{{\"ms\": {:.1f}}}\n", now_ms() - begin);
  return 0;
}

int spawn(std::size_t parallel, std::size_t count, const std::vector<std::string>& command) {
  const SpawnTimes times = spawn_runs(command, count, parallel);
  fmt::print("{{\"per_second\": {:.1f}, \"p50_ms\": {:.3f}, \"p99_ms\": {:.3f}, \"failed\": {}}}\n",
             static_cast<double>(count) / times.seconds, percentile(times.each_ms, 0.5),
             percentile(times.each_ms, 0.99), times.failed);
  return 0;
}

int run(std::vector<std::string> args) {
  if (!args.empty() && args.back().starts_with("tenants=")) {
    g_tenants = std::stoul(args.back().substr(8));
    args.pop_back();
  }
  const auto number = [&](std::size_t i) -> std::size_t {
    if (i >= args.size()) die("a number is missing; see the head of bench_load.cc");
    return std::stoul(args[i]);
  };
  const std::string what = args.empty() ? "" : args[0];
  if (what == "submit") return submit(number(1), number(2), args.size() > 3 ? args[3] : "parked");
  if (what == "array") return array(static_cast<std::uint32_t>(number(1)));
  if (what == "pipe") return pipe(number(1));
  if (what == "start") return start(number(1));
  if (what == "list") return list();
  if (what == "cancel" && args.size() == 2) return cancel(args[1]);
  if (what == "answer") return answer();
  if (what == "spawn" && args.size() > 3)
    return spawn(number(1), number(2), {args.begin() + 3, args.end()});
  die("usage: bench_load submit|array|pipe|start|list|cancel|answer|spawn ...");
}

}  // namespace
}  // namespace gantry::bench

int main(int argc, char** argv) {
  return gantry::bench::run({argv + 1, argv + argc});
}
