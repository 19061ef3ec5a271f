// Namespaces made in advance: a job that gets one has the same as with a new one, none is reused,
// and packets neither enter nor leave one without a job.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <set>

#include "tests/network/probes.h"

using namespace gantry;
using namespace gantry::network;
using namespace gantry::network::test;

namespace {

// The kernel's number of the namespace that the file holds.
ino_t number_of(const std::string& file) {
  struct stat about {};
  REQUIRE(::stat(file.c_str(), &about) == 0);
  return about.st_ino;
}

std::string links_of(const Host& host) {
  return output_in(host.directory + "/node/net", "ip -o link");
}

std::unique_ptr<Netlink> hosts_links(const Host& host) {
  std::unique_ptr<Netlink> out;
  const auto space = open_space(host.directory + "/node/net");
  REQUIRE(space);
  REQUIRE(inside(*space, [&]() -> Result<void> {
    out = std::make_unique<Netlink>(std::move(*Netlink::open()));
    return {};
  }));
  return out;
}

std::map<proto::AttemptKey, bool> turn(Fabric& fabric, const std::vector<proto::AttemptKey>& ends,
                                       const std::vector<JobNetwork>& starts) {
  std::map<proto::AttemptKey, bool> out;
  fabric.turn(ends, starts, [&](const proto::AttemptKey& key, const Result<void>& done) {
    out[key] = done.has_value();
  });
  return out;
}

}  // namespace

TEST_CASE("jobs that begin together in namespaces made in advance reach their parts alone") {
  if (!is_able()) return;
  Hosts hosts(2);
  for (std::uint32_t n : {1U, 2U}) {
    hosts.open(hosts[n], {});
    for (int i = 0; i < 3; ++i) REQUIRE(hosts[n].fabric->make_ready());
    CHECK(hosts[n].fabric->ready() == 3);
    // The fourth one is made when it is needed.
    std::vector<JobNetwork> jobs;
    for (const std::uint64_t id : {1, 2, 3, 4}) jobs.push_back(hosts.job(id, {1, 2}, n));
    const auto made = turn(*hosts[n].fabric, {}, jobs);
    CHECK(made.size() == 4);
    for (const auto& [key, done] : made) CHECK(done);
    CHECK(hosts[n].fabric->ready() == 0);
    CHECK(hosts[n].fabric->attempts() == 4);
  }
  std::vector<Inside> parts;
  std::vector<std::string> all;
  for (const std::uint64_t id : {1, 2, 3, 4})
    for (std::uint32_t n : {1U, 2U}) {
      parts.push_back(look_inside(hosts, hosts.job(id, {1, 2}, n)));
      all.insert(all.end(), {parts.back().six, parts.back().four});
    }
  for (const Inside& from : parts) {
    std::set<std::string> own;
    for (const Inside& to : parts)
      if (to.network.key.job == from.network.key.job) own.insert({to.six, to.four});
    CHECK(reached(from.space, all, std::chrono::milliseconds(2500)) == own);
  }
}

TEST_CASE("a namespace goes with its job, and another job never gets it") {
  if (!is_able()) return;
  Hosts hosts(1);
  hosts.open(hosts[1], {});
  Fabric& fabric = *hosts[1].fabric;
  std::set<ino_t> seen;
  for (std::uint64_t id = 1; id <= 6; ++id) {
    while (fabric.ready() < 2) REQUIRE(fabric.make_ready());
    const JobNetwork job = hosts.job(id, {1}, 1);
    // The job before ends in the same moment.
    std::vector<proto::AttemptKey> ends;
    if (id > 1) ends.push_back(hosts.job(id - 1, {1}, 1).key);
    for (const auto& [key, done] : turn(fabric, ends, {job})) CHECK(done);
    CHECK(seen.insert(number_of(fabric.space_file(job.key))).second);
    CHECK(fabric.attempts() == 1);
  }
  const auto left = fabric.take_left();
  CHECK(left.size() == 5);
  for (const std::string& directory : left) REQUIRE(release_directory(directory));
  CHECK(fabric.take_left().empty());
  std::set<std::string> there;
  for (const auto& entry : std::filesystem::directory_iterator(hosts[1].directory))
    there.insert(entry.path().filename());
  CHECK(there == std::set<std::string>{"6.1", "node"});
  // An attempt that begins again before its first network was removed gets a new one.
  const JobNetwork again = hosts.job(6, {1}, 1);
  const ino_t before = number_of(fabric.space_file(again.key));
  (void)turn(fabric, {again.key}, {again});
  CHECK(number_of(fabric.space_file(again.key)) != before);
  CHECK(fabric.take_left().size() == 1);
}

TEST_CASE("nothing leaves a namespace that is nobody's yet, and nothing reaches an ended job") {
  if (!is_able()) return;
  Hosts hosts(1);
  hosts.open(hosts[1], {});
  Fabric& fabric = *hosts[1].fabric;
  REQUIRE(fabric.attach(hosts.job(1, {1}, 1)));
  const Inside one = look_inside(hosts, hosts.job(1, {1}, 1));
  const auto links = hosts_links(hosts[1]);
  ReadySpaces spaces(*links, 1000, 1430);
  const auto ready = spaces.take();
  REQUIRE(ready);
  CHECK(reached(ready->space, {one.six, one.four, "10.9.0.1", "fe80::1"},
                std::chrono::milliseconds(500), "eth0")
            .empty());
  // Ended, and not removed yet: of its two parts on this node neither reaches the other.
  JobNetwork near = hosts.job(2, {1}, 1), other = hosts.job(3, {1}, 1);
  near.peers.push_back({other.part, {}});
  other.peers.push_back({near.part, {}});
  (void)turn(fabric, {}, {near, other});
  const Inside from = look_inside(hosts, near), to = look_inside(hosts, other);
  CHECK(reached(from.space, {to.six}, std::chrono::seconds(5)).size() == 1);
  (void)turn(fabric, {other.key, near.key}, {});
  CHECK(reached(from.space, {to.six, to.four}, std::chrono::milliseconds(500)).empty());
}

TEST_CASE("one job whose network cannot be made does not keep others that begin with it") {
  if (!is_able()) return;
  Hosts hosts(1);
  hosts.open(hosts[1], {});
  Fabric& fabric = *hosts[1].fabric;
  REQUIRE(fabric.make_ready());
  JobNetwork bad = hosts.job(1, {1}, 1);
  bad.peers.push_back({{2, JobId(1), 1}, {"not an address", 1}});
  JobNetwork range = hosts.job(2, {1}, 1);
  range.reach.ranges = {"not a range"};
  const JobNetwork good = hosts.job(3, {1}, 1);
  const auto made = turn(fabric, {}, {bad, range, good});
  CHECK_FALSE(made.at(bad.key));
  CHECK_FALSE(made.at(range.key));
  CHECK(made.at(good.key));
  CHECK(fabric.attempts() == 1);
  for (const JobNetwork* job : {&bad, &range})
    CHECK_FALSE(std::filesystem::exists(fabric.space_file(job->key)));
}

TEST_CASE("what was made in advance by a daemon that was killed is removed by the next one") {
  if (!is_able()) return;
  Hosts hosts(1);
  hosts.open(hosts[1], {});
  REQUIRE(hosts[1].fabric->make_ready());
  REQUIRE(hosts[1].fabric->attach(hosts.job(1, {1}, 1)));
  for (int i = 0; i < 3; ++i) REQUIRE(hosts[1].fabric->make_ready());
  const ino_t number = number_of(hosts[1].fabric->space_file(hosts.job(1, {1}, 1).key));
  CHECK(links_of(hosts[1]).find(" j4@") != std::string::npos);
  hosts.open(hosts[1], {hosts.job(1, {1}, 1)});
  CHECK(hosts[1].fabric->ready() == 0);
  for (const char* link : {" j2@", " j3@", " j4@"})
    CHECK(links_of(hosts[1]).find(link) == std::string::npos);
  CHECK(number_of(hosts[1].fabric->space_file(hosts.job(1, {1}, 1).key)) == number);
  // The next link has a name that no link of a running job has.
  REQUIRE(hosts[1].fabric->attach(hosts.job(2, {1}, 1)));
  CHECK(links_of(hosts[1]).find(" j2@") != std::string::npos);
  CHECK(links_of(hosts[1]).find(" j1@") != std::string::npos);
}

TEST_CASE("jobs that begin after somebody removed the rules get theirs, as others get them back") {
  if (!is_able()) return;
  Hosts hosts(2);
  for (std::uint32_t n : {1U, 2U}) {
    hosts.open(hosts[n], {});
    REQUIRE(hosts[n].fabric->attach(hosts.job(1, {1, 2}, n)));
    REQUIRE(run_in(hosts[n].directory + "/node/net", "nft delete table inet gantry"));
    const auto made =
        turn(*hosts[n].fabric, {}, {hosts.job(2, {1, 2}, n), hosts.job(3, {1, 2}, n)});
    CHECK(made.size() == 2);
    for (const auto& [key, done] : made) CHECK(done);
  }
  for (const std::uint64_t id : {1, 2, 3}) {
    const Inside from = look_inside(hosts, hosts.job(id, {1, 2}, 1));
    const Inside to = look_inside(hosts, hosts.job(id, {1, 2}, 2));
    CHECK(reached(from.space, {to.six, to.four}, std::chrono::seconds(5)).size() == 2);
  }
}

TEST_CASE("what jobs send and receive is counted for each, and what is refused by its cause") {
  if (!is_able()) return;
  Hosts hosts(1);
  hosts.open(hosts[1], {});
  Fabric& fabric = *hosts[1].fabric;
  JobNetwork near = hosts.job(2, {1}, 1), other = hosts.job(3, {1}, 1);
  near.peers.push_back({other.part, {}});
  other.peers.push_back({near.part, {}});
  (void)turn(fabric, {}, {near, other});
  const Inside from = look_inside(hosts, near), to = look_inside(hosts, other);
  const auto before = fabric.counts();
  REQUIRE(before);
  CHECK(reached(from.space, {to.six}, std::chrono::seconds(5)).size() == 1);
  CHECK(reached(from.space, {"100.127.0.1"}, std::chrono::milliseconds(300)).empty());
  const auto after = fabric.counts();
  REQUIRE(after);
  CHECK(after->attempts.size() == 2);
  const Fabric::Traffic &one = after->attempts.at(near.key), &two = after->attempts.at(other.key);
  CHECK(one.sent_packets > before->attempts.at(near.key).sent_packets);
  CHECK(two.received_bytes > before->attempts.at(other.key).received_bytes);
  CHECK(one.refused_packets > before->attempts.at(near.key).refused_packets);
  CHECK(two.refused_packets == before->attempts.at(other.key).refused_packets);
  CHECK(after->dropped.at("denied") > before->dropped.at("denied"));
  std::set<std::string> causes;
  for (const auto& [cause, packets] : after->dropped) causes.insert(cause);
  CHECK(causes == std::set<std::string>{"denied", "spoofed", "to_node", "unexpected"});
}
