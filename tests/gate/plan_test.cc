// What a gate decides: shares of versions, commands from one state to the next, tables of processes
// that do not know all backends, samples, probes, weights, keys.
#include <doctest/doctest.h>

#include "common/net/proxy_header.h"
#include "gate/plan/config_text.h"
#include "gate/plan/layout.h"
#include "gate/plan/probe_state.h"
#include "gate/plan/samples.h"

using namespace gantry;
using namespace gantry::gate;

namespace {

proto::AttemptKey key(std::uint64_t job) {
  return {JobId{job}, Attempt{1}};
}

proto::GateReplica replica(std::uint64_t job, const std::string& version, bool draining = false) {
  return {key(job), version, "10.0.0.1", static_cast<std::uint16_t>(30000 + job), "pw", draining};
}

proto::GateTable table_of(std::vector<proto::GateVersion> versions,
                          std::vector<proto::GateReplica> replicas) {
  proto::GateService s;
  s.tenant = "fraud";
  s.name = "api";
  s.route.hosts = {"api.example"};
  s.versions = std::move(versions);
  s.replicas = std::move(replicas);
  proto::GateTable out;
  out.services.push_back(std::move(s));
  return out;
}

const ReplicaState kReady{proto::ReplicaHealth::ready, kFullWeight};

std::string lines(const std::vector<std::string>& commands) {
  std::string out;
  for (const std::string& c : commands) out += c.substr(0, c.find(" weight 128 send")) + "\n";
  return out;
}

// The state of a process after the commands: the servers as wanted.
Seen seen_of(const Layout& layout) {
  Seen out;
  for (const auto& [name, backend] : layout.backends) {
    out[name];
    for (const auto& [server, s] : backend.servers)
      out[name].servers[server] = {s.address, s.weight, s.most, s.state, 0};
  }
  return out;
}

}  // namespace

TEST_CASE("shares add up, and nobody with a weight is left out") {
  CHECK(shares({90, 10}) == std::vector<int>{90, 10});
  CHECK(shares({1, 1, 1}) == std::vector<int>{34, 33, 33});
  CHECK(shares({10000, 1}) == std::vector<int>{99, 1});
  CHECK(shares({0, 5}) == std::vector<int>{0, 100});
  CHECK(shares({0, 0}) == std::vector<int>{0, 0});
}

TEST_CASE("a version gets its part when one of its replicas is ready") {
  const auto t = table_of({{"v1", 90}, {"v2", 10}}, {replica(1, "v1"), replica(2, "v2")});
  Layout one = lay_out(t, {{key(1), kReady}});
  CHECK(one.tables[table::kWhole]["fraud:api"] == "fraud:api:v1");
  CHECK(one.tables[table::kParts].empty());
  Layout both = lay_out(t, {{key(1), kReady}, {key(2), kReady}});
  CHECK(both.tables[table::kWhole].empty());
  CHECK(both.tables[table::kParts].size() == kBuckets);
  CHECK(both.tables[table::kParts]["fraud:api:99"] == "fraud:api:v2");
  Layout none = lay_out(t, {});
  CHECK(none.tables[table::kWhole].empty());
  CHECK(none.tables[table::kRoutes]["api.example/"] == "fraud:api");
}

TEST_CASE("a replica comes, is drained and goes") {
  const auto before = table_of({{"v1", 100}}, {replica(1, "v1")});
  const Layout one = lay_out(before, {{key(1), kReady}});
  const auto added = table_of({{"v1", 100}}, {replica(1, "v1"), replica(2, "v1")});
  auto commands = server_commands(lay_out(added, {{key(1), kReady}}), seen_of(one));
  CHECK(lines(commands.before) == "add server fraud:api:v1/j2.1 10.0.0.1:30002\n");
  const Layout two = lay_out(added, {{key(1), kReady}, {key(2), kReady}});
  Seen seen = seen_of(lay_out(added, {{key(1), kReady}}));
  commands = server_commands(two, seen);
  CHECK(lines(commands.before) == "set server fraud:api:v1/j2.1 state ready\n");
  const auto drained = table_of({{"v1", 100}}, {replica(1, "v1", true), replica(2, "v1")});
  const Layout less = lay_out(drained, {{key(1), kReady}, {key(2), kReady}});
  commands = server_commands(less, seen_of(two));
  CHECK(commands.before.empty());
  CHECK(lines(commands.after) == "set server fraud:api:v1/j1.1 state drain\n");
  seen = seen_of(less);
  seen["fraud:api:v1"].servers["j1.1"].running = 1;
  const auto gone = table_of({{"v1", 100}}, {replica(2, "v1")});
  const Layout last = lay_out(gone, {{key(2), kReady}});
  CHECK(lines(server_commands(last, seen).after) == "set server fraud:api:v1/j1.1 state maint\n");
  seen["fraud:api:v1"].servers["j1.1"] = {"10.0.0.1:30001", 128, 0, ServerState::maint, 0};
  CHECK(lines(server_commands(last, seen).after) == "del server fraud:api:v1/j1.1\n");
  CHECK(server_commands(last, seen_of(last)).after.empty());
}

TEST_CASE("rows of tables come before others go") {
  const Tables has{{table::kWhole, {{"a:b", "a:b:v1"}}}, {table::kHolds, {{"a:b", "5"}}}};
  const Tables wanted{{table::kParts, {{"a:b:0", "a:b:v2"}}}, {table::kHolds, {{"a:b", "6"}}}};
  CHECK(
      lines(table_commands(wanted, has, "/d")) ==
      "set map /d/holds.map a:b 6\nadd map /d/parts.map a:b:0 a:b:v2\ndel map /d/whole.map a:b\n");
}

TEST_CASE("a process that does not know a version sends its part to another one") {
  const Tables all{{table::kRoutes, {{"x/", "a:b"}, {"y/", "a:c"}}},
                   {table::kParts, {{"a:b:0", "a:b:v1"}, {"a:b:1", "a:b:v2"}}},
                   {table::kWhole, {{"a:c", "a:c:v1"}}}};
  Tables some = tables_for(all, {"a:b:v1"});
  CHECK(some[table::kParts]["a:b:1"] == "a:b:v1");
  CHECK(some[table::kRoutes].size() == 1);
  CHECK(some[table::kWhole].empty());
}

TEST_CASE("a changed document takes another process, a changed replica does not") {
  auto t = table_of({{"v1", 100}}, {replica(1, "v1")});
  Settings settings;
  settings.listen = {"127.0.0.1:1"};
  settings.state_dir = "/d";
  const Layout layout = lay_out(t, {{key(1), kReady}});
  const Blocks blocks = blocks_of(settings, layout, "iss", {});
  CHECK(read_blocks(config_text(blocks, layout)) == blocks);
  auto more = table_of({{"v1", 100}}, {replica(1, "v1"), replica(2, "v1")});
  CHECK(can_serve(blocks, blocks_of(settings, lay_out(more, {}), "iss", {})));
  t.services[0].route.repeat = true;
  CHECK_FALSE(can_serve(blocks, blocks_of(settings, lay_out(t, {}), "iss", {})));
  CHECK_FALSE(can_serve(blocks, blocks_of(settings, layout, "iss", {{"k", "/k.pem"}})));
}

TEST_CASE("names that would mean something to HAProxy stay out") {
  auto t = table_of({{"v1", 100}}, {replica(1, "v1")});
  t.services[0].name = "api\n  bind :1";
  CHECK(lay_out(t, {}).backends.empty());
  t.services[0].name = "api";
  t.services[0].route.hosts = {"a b", "ok.example"};
  t.services[0].replicas[0].password = "x;quit";
  Layout layout = lay_out(t, {});
  CHECK(layout.tables[table::kRoutes].size() == 1);
  CHECK(layout.tables[table::kDoors].empty());
}

TEST_CASE("samples: what reached a version, what was refused, response times, concurrency") {
  CHECK(bucket_of(microseconds(1)) == 0);
  CHECK(bucket_of(microseconds(1000)) == 0);
  CHECK(bucket_of(microseconds(1001)) == 1);
  CHECK(bucket_of(hours(1)) == proto::kLatencyBuckets.size());
  const auto line = [](const char* text) { return *read_request(text); };
  CHECK_FALSE(read_request("Server x/j1.1 is UP"));
  CHECK_FALSE(read_request("L a b c"));
  Samples samples;
  samples.take({1'000'000}, {}, {});
  const Instant half{1'500'000};
  samples.add(line("L fraud:api:v1 j1.1 200 5 1 94 500 -- 10 20 fraud:api GET\n"), half);
  samples.add(line("L fraud:api:v1 j1.1 500 0 0 10 10 -- 10 20 fraud:api GET"), half);
  samples.add(line("L fraud:api:v1 j1.1 -1 0 0 -1 10 CD 10 0 fraud:api GET"), half);
  samples.add(line("L requests <NOSRV> 429 -1 -1 -1 0 PR 10 20 fraud:api GET"), half);
  samples.add(line("L requests <NOSRV> 404 -1 -1 -1 0 LR 10 20 - GET"), half);
  Seen seen;
  seen["fraud:api:v1"].waiting = 1;
  seen["fraud:api:v1"].servers["j1.1"].running = 3;
  auto taken = samples.take({2'000'000}, {seen}, {{"fraud:api", 2}});
  REQUIRE(taken.size() == 2);
  CHECK(taken[0].version == "");
  CHECK(taken[0].refused == 1);
  CHECK(taken[0].waiting == 2);
  CHECK(taken[1].version == "v1");
  CHECK(taken[1].requests == 3);
  CHECK(taken[1].errors == 1);
  CHECK(taken[1].running == 3);
  CHECK(taken[1].waiting == 1);
  CHECK(taken[1].times[bucket_of(milliseconds(100))] == 1);
  CHECK(taken[1].concurrency == 2520);  // 0.52 s ended, and four that came meanwhile for half of it
  taken = samples.take({3'000'000}, {seen}, {});
  CHECK(taken.back().concurrency == 4000);  // all four were there the whole time
}

TEST_CASE("probes: ready at the first good answer, unready after some bad ones, dead for good") {
  const tenancy::ServiceProbe probe{"/", seconds(2), seconds(1), 2};
  Probed replica;
  ready_answered(replica, probe, {false, "503"}, {});
  CHECK(replica.health == proto::ReplicaHealth::starting);
  CHECK(replica.ready.next == Instant{} + kStartInterval);
  ready_answered(replica, probe, {true, ""}, {});
  CHECK(replica.health == proto::ReplicaHealth::ready);
  ready_answered(replica, probe, {false, "503"}, {});
  CHECK(replica.health == proto::ReplicaHealth::ready);
  ready_answered(replica, probe, {false, "503"}, {});
  CHECK(replica.health == proto::ReplicaHealth::unready);
  live_answered(replica, probe, {false, "x"}, {});
  live_answered(replica, probe, {false, "x"}, {});
  CHECK(replica.health == proto::ReplicaHealth::dead);
  ready_answered(replica, probe, {true, ""}, {});
  CHECK(replica.health == proto::ReplicaHealth::dead);
  CHECK_FALSE(read_answer("HTTP/1.1 20"));
  CHECK(read_answer("HTTP/1.1 204 No")->good);
  CHECK_FALSE(read_answer("HTTP/1.1 503 No")->good);
  CHECK_FALSE(read_answer("SSH-2.0")->good);
}

TEST_CASE("weights follow response times step by step") {
  const std::map<std::string, ReplicaTimes> times{{"a", {1000, 1, {}}}, {"b", {4000, 1, {}}}};
  auto now = weights_of({{"a", 128}, {"b", 128}}, times, {});
  CHECK(now == std::map<std::string, std::uint32_t>{{"a", 128}, {"b", 64}});
  now = weights_of(now, times, {});
  CHECK(now["b"] == 32);
  CHECK(weights_of(now, times, {})["b"] == 32);
  CHECK(weights_of(now, times, Instant{} + seconds(60))["b"] == 64);
}

TEST_CASE("keys of tokens") {
  const auto pems = pem_of_keys(
      R"({"keys":[{"kty":"EC","crv":"P-256","kid":"a",)"
      R"("x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
      R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"},{"kty":"RSA","kid":"b"}]})");
  REQUIRE(pems);
  CHECK(pems->size() == 1);
  CHECK(pems->at("a").starts_with("-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD"));
  CHECK_FALSE(pem_of_keys("[]"));
  CHECK(pem_of_keys("")->empty());
}

TEST_CASE("the header of a door's connection") {
  const std::string head = net::proxy_header(net::ProxyCommand::proxy, "secret");
  const auto start = net::read_proxy_start(std::string_view(head).substr(0, net::kProxyStart));
  REQUIRE(start);
  CHECK(start->command == net::ProxyCommand::proxy);
  const auto rest = std::string_view(head).substr(net::kProxyStart);
  CHECK(net::read_proxy_id(*start, rest) == "secret");
  for (std::size_t n = 0; n < rest.size(); ++n)
    CHECK(net::read_proxy_id({start->command, 0, n}, rest.substr(0, n)) == "");
  std::string wrong = head.substr(0, net::kProxyStart);
  wrong[3] = 'x';
  CHECK_FALSE(net::read_proxy_start(wrong));
}
