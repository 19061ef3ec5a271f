// Links of jobs by real CNI plugins (Debian's containernetworking-plugins): made, checked, removed,
// also after a daemon that was killed, and refused with the plugin's own sentence.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "noded/network/cni.h"
#include "tests/network/probes.h"
#include "tests/skip.h"

using namespace gantry;
using namespace gantry::network;
using namespace gantry::network::test;

namespace {

namespace fs = std::filesystem;

constexpr const char* kPlugins = "/usr/lib/cni";

bool has_plugins() {
  if (::access("/usr/lib/cni/bridge", X_OK) == 0) return true;
  gantry::test::pass_over("there are no CNI plugins in /usr/lib/cni");
  return false;
}

// One machine with a job, and the site's list of plugins.
struct Site {
  explicit Site(const std::string& subnet = "10.77.0.0/24") : hosts(1) {
    hosts.open(hosts[1], {});
    for (std::uint64_t id : {1U, 2U}) REQUIRE(hosts[1].fabric->attach(hosts.job(id, {1}, 1)));
    write(fmt::format(R"({{"cniVersion": "1.0.0", "name": "site", "plugins": [
      {{"type": "bridge", "bridge": "site0", "isGateway": true,
        "ipam": {{"type": "host-local", "dataDir": "{}/ipam",
                  "ranges": [[{{"subnet": "{}"}}]]}}}},
      {{"type": "tuning", "sysctl": {{"net.core.somaxconn": "517"}}}},
      {{"type": "portmap", "snat": false}}]}})",
                      hosts.top(), subnet));
  }
  void write(const std::string& text) { std::ofstream(list()) << text; }
  [[nodiscard]] std::string list() const { return hosts.top() + "/site.conflist"; }
  [[nodiscard]] Result<Cni> open() const {
    return Cni::open({list(), {"/nowhere", kPlugins}, hosts.top() + "/cni", "n1"});
  }
  [[nodiscard]] std::string space(const proto::AttemptKey& key) {
    return hosts[1].fabric->space_file(key);
  }
  // Plugins run in the machine's namespace.
  Result<void> add(Cni& cni, const proto::AttemptKey& key) {
    return inside(hosts[1].space, [&] { return cni.add(key, space(key)); });
  }
  Result<void> remove(Cni& cni, const proto::AttemptKey& key, const std::string& where) {
    return inside(hosts[1].space, [&] { return cni.remove(key, where); });
  }
  [[nodiscard]] std::size_t leases() const {
    std::size_t out = 0;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(hosts.top() + "/ipam/site", error))
      out += entry.path().filename().string().starts_with("10.") ? 1 : 0;
    return out;
  }
  ~Site() { (void)run_in(hosts.top() + "/host1", "ip link delete site0 2>/dev/null"); }
  Hosts hosts;
};

const proto::AttemptKey kOne{JobId(1), Attempt(1)}, kTwo{JobId(2), Attempt(1)};

}  // namespace

TEST_CASE("real plugins give a job a link, which is checked and goes with the job") {
  if (!is_able() || !has_plugins()) return;
  Site site;
  auto cni = site.open();
  REQUIRE_MESSAGE(cni, (cni ? "" : cni.error().message));
  for (const auto& key : {kOne, kTwo}) {
    const auto added = site.add(*cni, key);
    REQUIRE_MESSAGE(added, (added ? "" : added.error().message));
  }
  CHECK(cni->addresses(kOne) == std::vector<std::string>{"10.77.0.2/24"});
  CHECK(cni->attempts() == std::vector<proto::AttemptKey>{kOne, kTwo});
  CHECK(site.leases() == 2);
  CHECK(output_in(site.space(kOne), "ip -o -4 address show net1").find("10.77.0.2/24") !=
        std::string::npos);
  CHECK(output_in(site.space(kOne), "cat /proc/sys/net/core/somaxconn") == "517\n");
  // The first job reaches the second through it, and the machine behind the bridge.
  const Inside two = look_inside(site.hosts, site.hosts.job(2, {1}, 1));
  const auto space = open_space(site.space(kOne));
  std::vector<Fd> listening;
  for (const Fd* where : std::initializer_list<const Fd*>{&two.space, &site.hosts[1].space})
    REQUIRE(inside(*where, [&]() -> Result<void> {
      listening.push_back(listener(where == &two.space ? "10.77.0.3" : "10.77.0.1", SOCK_STREAM));
      return {};
    }));
  CHECK(reached(*space, {"10.77.0.1", "10.77.0.3", two.four}, std::chrono::milliseconds(2500)) ==
        std::set<std::string>{"10.77.0.1", "10.77.0.3"});
  const auto checked =
      inside(site.hosts[1].space, [&] { return cni->check(kOne, site.space(kOne)); });
  CHECK_MESSAGE(checked, (checked ? "" : checked.error().message));
  REQUIRE(run_in(site.space(kTwo), "ip link delete net1"));
  const auto wrong =
      inside(site.hosts[1].space, [&] { return cni->check(kTwo, site.space(kTwo)); });
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message.find("the CNI plugin bridge of") != std::string::npos);
  for (const auto& key : {kOne, kTwo}) {
    const auto removed = site.remove(*cni, key, site.space(key));
    CHECK_MESSAGE(removed, (removed ? "" : removed.error().message));
  }
  CHECK(site.leases() == 0);
  CHECK(cni->attempts().empty());
  CHECK(output_in(site.space(kOne), "ip -o link").find("net1") == std::string::npos);
  CHECK(site.remove(*cni, kOne, site.space(kOne)));  // nothing is there
}

TEST_CASE("what a daemon that was killed had made is removed by the next one") {
  if (!is_able() || !has_plugins()) return;
  Site site;
  {
    auto cni = site.open();
    REQUIRE(cni);
    REQUIRE(site.add(*cni, kOne));
    REQUIRE(site.add(*cni, kTwo));
  }
  REQUIRE(site.hosts[1].fabric->detach(kOne));  // its namespace is gone
  auto next = site.open();
  REQUIRE(next);
  CHECK(next->attempts().size() == 2);
  const auto removed = site.remove(*next, kOne, "");
  CHECK_MESSAGE(removed, (removed ? "" : removed.error().message));
  CHECK(site.leases() == 1);
  CHECK(next->addresses(kTwo) == std::vector<std::string>{"10.77.0.3/24"});
  CHECK(site.remove(*next, kTwo, site.space(kTwo)));
  CHECK(site.leases() == 0);
}

TEST_CASE("a plugin that refuses is quoted, and nothing is left of the others") {
  if (!is_able() || !has_plugins()) return;
  Site site("10.77.0.0/30");  // the bridge and one job
  auto cni = site.open();
  REQUIRE(cni);
  REQUIRE(site.add(*cni, kOne));
  const auto refused = site.add(*cni, kTwo);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        fmt::format("the CNI plugin bridge of {}: failed to allocate for range 0: no IP addresses "
                    "available in range set: 10.77.0.1-10.77.0.2",
                    site.list()));
  CHECK(cni->attempts() == std::vector<proto::AttemptKey>{kOne});
  CHECK(output_in(site.space(kTwo), "ip -o link").find("net1") == std::string::npos);
  CHECK(site.leases() == 1);
  REQUIRE(site.remove(*cni, kOne, site.space(kOne)));
  // The second plugin refuses: the first one's link goes.
  site.write(fmt::format(R"({{"cniVersion": "0.4.0", "name": "site", "plugins": [
    {{"type": "bridge", "bridge": "site0", "ipam": {{"type": "host-local", "dataDir": "{}/ipam",
      "subnet": "10.77.0.0/24"}}}},
    {{"type": "tuning", "sysctl": {{"net.core.no_such_thing": "1"}}}}]}})",
                         site.hosts.top()));
  cni = site.open();
  REQUIRE(cni);
  const auto second = site.add(*cni, kOne);
  REQUIRE_FALSE(second);
  CHECK(second.error().message.find("the CNI plugin tuning of") == 0);
  CHECK(output_in(site.space(kOne), "ip -o link").find("net1") == std::string::npos);
  CHECK(site.leases() == 0);
  CHECK(cni->attempts().empty());
}

TEST_CASE("a list of plugins is read, or refused with what is wrong") {
  const std::string dir = fmt::format("/tmp/gantry-cni.{}", ::getpid());
  fs::create_directory(dir);
  std::ofstream(dir + "/some").close();
  fs::permissions(dir + "/some", fs::perms::owner_all);
  const std::string list = dir + "/x.conflist";
  const auto said = [&](const std::string& text) {
    std::ofstream(list) << text;
    const auto cni = Cni::open({list, {dir}, dir + "/cni", "n1"});
    return cni ? std::string("fine") : cni.error().message.substr(12 + list.size());
  };
  CHECK(said("{") == "is not JSON: " + said("{").substr(13));
  CHECK(said("{}") == "has no name");
  CHECK(said(R"({"name": "x", "cniVersion": "0.2.0"})") ==
        "has the cniVersion \"0.2.0\", which is none of 0.3.0, 0.3.1, 0.4.0, 1.0.0");
  CHECK(said(R"({"name": "x", "cniVersion": "1.0.0", "plugins": []})") ==
        "has no list of 1 to 16 plugins");
  CHECK(said(R"({"name": "x", "cniVersion": "1.0.0", "plugins": [{}]})") ==
        "has a plugin without a type, the 1. one");
  CHECK(said(R"({"name": "x", "cniVersion": "1.0.0", "plugins": [{"type": "other"}]})") ==
        "names the plugin other, which is in none of " + dir);
  CHECK(said(R"({"name": "x", "cniVersion": "1.0.0", "plugins": [{"type": "some"}]})") == "fine");
  const auto none = Cni::open({dir + "/none", {dir}, dir + "/cni", "n1"});
  CHECK(none.error().message == "noded.cni: " + dir +
                                    "/none cannot be read: No such file or "
                                    "directory");
  fs::remove_all(dir);
}

TEST_CASE("a program that does not end is killed, and one that is not there is no success") {
  const auto late = run_program("/bin/sh", {"A=b"}, "sleep 20; echo $A", milliseconds(200));
  CHECK_FALSE(late.in_time);
  const auto right = run_program("/bin/sh", {"A=b"}, "echo $A; echo no >&2; exit 3", seconds(20));
  CHECK(right.output == "b\n");
  CHECK(right.errors == "no\n");
  CHECK(right.status == 3);
  CHECK(run_program("/nowhere", {}, "", seconds(1)).status == 127);
}
