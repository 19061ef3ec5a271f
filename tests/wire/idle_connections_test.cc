// Ten thousand clients connect and then stay silent. The router goes on answering, and the test
// prints the memory that each connection takes.
#include <doctest/doctest.h>

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <vector>

#include "common/loop/loop.h"
#include "common/net/client.h"
#include "common/net/router.h"
#include "tests/skip.h"

namespace gantry::net {
namespace {

constexpr int kConnections = 10'000;

std::size_t resident_kb() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  std::size_t resident = 0;
  file >> pages >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

// The results of the clients' process, which come through a pipe.
struct Report {
  int failed = 0;  // number of connections that failed
  int unanswered = 0;
  double seconds = 0;
};

// The clients run in their own process, because one process may not have enough descriptors for
// both ends.
Report run_clients(const std::string& address, const PublicKey& server_key) {
  const auto connect = [&] {
    return Client::connect(
        {.address = address, .server_key = server_key, .keys = {}, .timeout = seconds(30)});
  };
  const auto answered = [](Result<Client>& client) {
    if (!client || !client->send("h", "b", seconds(10))) return false;
    return client->receive(seconds(10)).has_value();
  };
  Report report;
  const auto start = std::chrono::steady_clock::now();
  std::vector<Result<Client>> idle;
  for (int i = 0; i < kConnections; ++i) {
    idle.push_back(connect());
    if (!idle.back()) ++report.failed;
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  auto late = connect();
  for (Result<Client>* client : {&late, &idle.front(), &idle.back()})
    if (!answered(*client)) ++report.unanswered;
  return report;
}

TEST_CASE("a server with ten thousand idle connections still answers") {
  constexpr rlim_t kFiles = kConnections + 1000;
  rlimit limit = {};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  if (limit.rlim_max < kFiles) SKIP_CASE("too few open files are allowed");
  limit.rlim_cur = kFiles;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);

  int to_clients[2];
  int from_clients[2];
  REQUIRE(pipe(to_clients) == 0);
  REQUIRE(pipe(from_clients) == 0);
  const KeyPair keys = generate_key_pair();
  const pid_t child = fork();  // This forks before any thread starts.
  if (child == 0) {
    char address[128] = "";
    if (read(to_clients[0], address, sizeof address - 1) <= 0) _exit(1);
    const Report report = run_clients(address, keys.public_key);
    _exit(write(from_clients[1], &report, sizeof report) == sizeof report ? 0 : 1);
  }

  const std::size_t before = resident_kb();
  auto router = Router::open({.endpoints = {"tcp://127.0.0.1:0"}, .keys = keys});
  REQUIRE(router);
  loop::Loop loop;
  const loop::Watch queue = loop.add_queue(*router, [&] {
    const auto message = router->receive();
    if (message) (void)router->send(message->peer, message->header, message->body);
    return message.has_value();
  });
  const auto end = loop.on_process_end(child, [&](loop::ProcessEnd) { loop.stop(); });
  REQUIRE(end);
  const std::string address = router->endpoints()[0];
  REQUIRE(write(to_clients[1], address.data(), address.size()) ==
          static_cast<ssize_t>(address.size()));
  loop.run();

  Report report;
  REQUIRE(read(from_clients[0], &report, sizeof report) == sizeof report);
  CHECK(report.failed == 0);
  CHECK(report.unanswered == 0);
  MESSAGE(fmt::format("{} connections in {:.1f} s, {} KB each here", kConnections, report.seconds,
                      (resident_kb() - before) / kConnections));
  for (const int fd : {to_clients[0], to_clients[1], from_clients[0], from_clients[1]}) close(fd);
}

}  // namespace
}  // namespace gantry::net
