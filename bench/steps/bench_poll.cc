// Clients that poll. Each asks once a second for its own ten jobs, half of the clients as squeue
// does and half as sacct does. Each client has its own session, and all run in this process.
//
//   bench_poll CLIENTS SECONDS FIRST_JOB JOBS     the ids of JOBS jobs in a row, from FIRST_JOB on
//
// The program prints one JSON line: how many questions were answered, and how long the answers
// took. If answers are late, a question that is due is sent at once afterwards, and its time counts
// from when it was due.
#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <deque>

#include "cli/session.h"

namespace gantry::bench {
namespace {

using cli::Session;
constexpr std::uint64_t kJobsOfOne = 10;
constexpr double kPeriodMs = 1000;

[[noreturn]] void die(const std::string& why) {
  fmt::print(stderr, "bench_poll: {}\n", why);
  std::exit(1);
}

double now_ms() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

struct Client {
  Session session;
  proto::JobFilter filter;
  bool squeue = true;
  double due = 0;
  std::optional<std::uint64_t> asked;
};

struct Tally {
  std::vector<double> squeue, sacct;
};

void ask(Client& client) {
  Result<std::uint64_t> sent;
  if (client.squeue) {
    proto::ListJobs list;
    list.filter = client.filter;
    sent = client.session.send(list);
  } else {
    proto::QueryHistory query;
    query.filter = client.filter;
    sent = client.session.send(query);
  }
  if (!sent) die(sent.error().message);
  client.asked = *sent;
}

// Returns true if the answer was there, or came within `wait`.
bool answered(Client& client, Tally& tally, Duration wait) {
  Result<void> got;
  if (client.squeue) {
    if (auto reply = client.session.receive<proto::ListJobsReply>(*client.asked, wait); !reply)
      got = tl::unexpected(reply.error());
  } else if (auto reply = client.session.receive<proto::HistoryReply>(*client.asked, wait);
             !reply) {
    got = tl::unexpected(reply.error());
  }
  if (!got && got.error().code == ErrorCode::timed_out) return false;
  if (!got) die(got.error().message);
  (client.squeue ? tally.squeue : tally.sacct).push_back(now_ms() - client.due);
  client.asked.reset();
  client.due += kPeriodMs;
  return true;
}

std::vector<Client> connect(std::size_t count, std::uint64_t first_job, std::uint64_t jobs) {
  rlimit files{};  // Each client needs a socket.
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  std::vector<Client> clients;
  for (std::size_t i = 0; i < count; ++i) {
    auto session = Session::open("poll");
    if (!session) die(session.error().message);
    Client client{std::move(*session), {}, i % 2 == 0, 0, {}};
    for (std::uint64_t j = 0; j < kJobsOfOne; ++j)
      client.filter.jobs.push_back({JobId(first_job + (i * kJobsOfOne + j) % jobs), {}});
    clients.push_back(std::move(client));
  }
  return clients;
}

double percentile(std::vector<double>& all, double p) {
  if (all.empty()) return 0;
  std::sort(all.begin(), all.end());
  return all[static_cast<std::size_t>(p * static_cast<double>(all.size() - 1))];
}

Tally poll_for(std::vector<Client>& clients, double milliseconds) {
  const double begin = now_ms();
  for (std::size_t i = 0; i < clients.size(); ++i)
    clients[i].due =
        begin + kPeriodMs * static_cast<double>(i) / static_cast<double>(clients.size());
  Tally tally;
  std::deque<Client*> waiting;
  std::size_t next = 0;  // Clients are due in turn.
  for (double now = begin; now < begin + milliseconds || !waiting.empty(); now = now_ms()) {
    while (now < begin + milliseconds && clients[next].due <= now && !clients[next].asked) {
      ask(clients[next]);
      waiting.push_back(&clients[next]);
      next = (next + 1) % clients.size();
    }
    // The loop pauses, because a busy loop would take processor time from the controller, which is
    // measured.
    const Duration pause = microseconds(
        static_cast<std::int64_t>(std::clamp((clients[next].due - now) * 1e3, 50.0, 1e3)));
    if (waiting.empty()) {
      const timespec nap{0, pause.us * 1000};
      ::nanosleep(&nap, nullptr);
    } else {
      if (answered(*waiting.front(), tally, pause)) waiting.pop_front();
      std::erase_if(waiting, [&](Client* client) { return answered(*client, tally, {}); });
    }
  }
  return tally;
}

int run(const std::vector<std::string>& args) {
  if (args.size() != 4) die("usage: bench_poll CLIENTS SECONDS FIRST_JOB JOBS");
  auto clients = connect(std::stoul(args[0]), std::stoull(args[2]), std::stoull(args[3]));
  fmt::print("ready\n");
  std::fflush(stdout);
  Tally tally = poll_for(clients, std::stod(args[1]) * 1e3);
  fmt::print(
      "{{\"squeue\": {}, \"squeue_p50_ms\": {:.2f}, \"squeue_p99_ms\": {:.2f}, "
      "\"sacct\": {}, \"sacct_p50_ms\": {:.2f}, \"sacct_p99_ms\": {:.2f}}}\n",
      tally.squeue.size(), percentile(tally.squeue, 0.5), percentile(tally.squeue, 0.99),
      tally.sacct.size(), percentile(tally.sacct, 0.5), percentile(tally.sacct, 0.99));
  return 0;
}

}  // namespace
}  // namespace gantry::bench

int main(int argc, char** argv) {
  return gantry::bench::run({argv + 1, argv + argc});
}
