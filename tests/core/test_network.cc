// Which network profile a job has: who may ask for one, what it contains at the launch, and what is
// left when documents change meanwhile.
#include <fmt/core.h>

#include "common/proto/job_network.h"
#include "common/proto/job_submit.h"
#include "common/proto/node_report.h"
#include "common/proto/session.h"
#include "common/proto/tenancy.h"
#include "controller.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/core/tenancy/network.h"

namespace gantry::core::test::network_test {

const Identity kRoot = identity("root", 0);
const Identity kAlice = identity("alice", 1000);

std::vector<tenancy::Document> documents() {
  tenancy::NetworkService store;
  store.name = "store";
  store.to = {"10.1.0.7/32 tcp/443"};
  tenancy::NetworkProfile web, wide;
  web.name = "web";
  web.internet = web.same_tenant = true;
  web.proxy = "fd00::9 tcp/3128";
  web.services = {"store"};
  web.to_tenants = {"data tcp/8080"};
  wide.name = "wide";
  wide.to = {"0.0.0.0/0"};
  tenancy::Tenant fraud, data;
  fraud.name = "fraud";
  fraud.grants = {{tenancy::Role::user, "alice", {}}};
  fraud.network = {"", {"web"}, {"store"}};
  data.name = "data";
  data.grants = {{tenancy::Role::user, "alice", {}}};
  data.network.default_profile = "own";
  return {fraud, data, web, wide, store};
}

struct Cluster {
  Cluster() : controller(config()) { apply(documents()); }

  static Config config() {
    Config c = alike_nodes(2, 8, std::int64_t{16} << 30);
    return c;
  }
  void apply(std::vector<tenancy::Document> changed) {
    proto::ApplyTenancy m;
    m.documents = std::move(changed);
    const auto reply = controller.ask(kRoot, m);
    const auto* error = reply.get_if<proto::ErrorReply>();
    REQUIRE_MESSAGE(error == nullptr, error->message);
  }
  ReplyMessage submit(const std::string& queue, const std::string& profile) {
    proto::SubmitJob m = batch_job("job");
    m.spec.partition = queue;
    m.spec.network_profile = profile;
    return controller.ask(kAlice, std::move(m));
  }
  std::string refusal(const std::string& queue, const std::string& profile) {
    const auto reply = submit(queue, profile);
    const auto* error = reply.get_if<proto::ErrorReply>();
    return error == nullptr ? "accepted" : error->message;
  }
  [[nodiscard]] const Job& job(JobId id) const { return controller.state().jobs.at(id); }
  [[nodiscard]] proto::NetworkReach reach(JobId id, const std::string& asked) const {
    return reach_of(controller.state(), job(id), asked);
  }

  Controller controller;
};

TEST_CASE("a job has the profile that its tenant's document names, and no other") {
  Cluster c;
  CHECK(c.refusal("fraud", "web") == "accepted");
  CHECK(c.refusal("fraud", "own") == "accepted");
  CHECK(c.refusal("fraud", "wide") ==
        "jobs of tenant fraud may not have the network profile \"wide\"; its document names basic, "
        "web, own");
  CHECK(c.refusal("data", "basic").find("may not have") != std::string::npos);
  CHECK(c.refusal("data", "nosuch").find("names own") != std::string::npos);
}

TEST_CASE("a profile becomes what its documents say when the job starts") {
  Cluster c;
  const JobId of_data = submitted(c.submit("data", ""));
  const JobId id = submitted(c.submit("fraud", "web"));
  const std::uint32_t fraud = network_group(c.controller.state(), c.job(id));
  const std::uint32_t data = network_group(c.controller.state(), c.job(of_data));
  CHECK(fraud >= 65536);
  CHECK(data >= 65536);
  CHECK(fraud != data);
  CHECK(tenant_of_group(c.controller.state(), fraud) == "fraud");
  const auto web = c.reach(id, "web");
  CHECK(web.profile == "web");
  CHECK(web.required);
  CHECK(web.internet);
  CHECK_FALSE(web.resolvers);
  CHECK(web.ranges == std::vector<std::string>{"10.1.0.7/32 tcp/443", "fd00::9 tcp/3128"});
  CHECK(web.proxy == "http://[fd00::9]:3128");
  REQUIRE(web.to.size() == 2);
  CHECK(web.to[0].group == fraud);
  CHECK(web.to[1].group == data);
  CHECK(web.to[1].ports == "tcp/8080");
  REQUIRE(web.from.size() == 1);
  CHECK(web.from[0].group == fraud);
  const auto basic = c.reach(id, "");
  CHECK(basic.profile == "basic");
  CHECK(basic.resolvers);
  CHECK(basic.ranges == std::vector<std::string>{"10.1.0.7/32 tcp/443"});
  CHECK(basic.proxy.empty());
  CHECK_FALSE(c.reach(of_data, "").leaves());
}

TEST_CASE("a profile that was taken away meanwhile opens nothing") {
  Cluster c;
  const JobId id = submitted(c.submit("fraud", "web"));
  auto changed = documents();
  std::get<tenancy::Tenant>(changed[0]).network.profiles.clear();
  c.apply({changed[0]});
  const auto reach = c.reach(id, "web");
  CHECK(reach.profile == "own");
  CHECK_FALSE(reach.leaves());
  CHECK(reach.to.empty());
}

TEST_CASE("what a document may not say of networks is refused with its field") {
  Cluster c;
  const auto refused = [&](const tenancy::Document& document) {
    proto::ApplyTenancy m;
    m.documents = {document};
    const auto reply = c.controller.ask(kRoot, m);
    const auto* error = reply.get_if<proto::ErrorReply>();
    return error == nullptr ? std::string("accepted") : error->message;
  };
  tenancy::NetworkProfile p;
  p.name = "p";
  for (const auto& [range, why] :
       {std::pair{"169.254.169.254/32 tcp/80", "is within 169.254.0.0/16, which no job reaches"},
        {"fe80::/64", "is within fe80::/10"},
        {"10.0.0.0/8 tcp/80 accept", "has no port or range of ports"},
        {"10.0.0.0/8; accept", "has not 0 to 32 bits"}}) {
    p.to = {range};
    const std::string said = refused(p);
    CAPTURE(said);
    CHECK(said.find("NetworkProfile p: to: ") == 0);
    CHECK(said.find(why) != std::string::npos);
  }
  p.to.clear();
  for (const char* proxy : {"10.1.0.0/24 tcp/3128", "10.1.0.9", "10.1.0.9 udp/3128",
                            "10.1.0.9 tcp/1-9", "10.1.0.9:3128", "127.0.0.1 tcp/3128"}) {
    p.proxy = proxy;
    CHECK(refused(p).find("NetworkProfile p: proxy: ") == 0);
  }
  p.proxy.clear();
  p.to_tenants = {"nobody"};
  CHECK(refused(p).find("to_tenants: there is no Tenant `nobody`") != std::string::npos);
  p.to_tenants = {"data tcp/0"};
  CHECK(refused(p).find("to_tenants: ") != std::string::npos);
  p = {};
  p.name = "own";
  CHECK(refused(p).find("name: ") != std::string::npos);
  tenancy::Tenant t;
  t.name = "t";
  t.network.profiles = {"wbe"};
  CHECK(refused(t).find("network.profiles: there is no NetworkProfile `wbe`") != std::string::npos);
  tenancy::NetworkService s;
  s.name = "s";
  CHECK(refused(s).find("to: is missing") != std::string::npos);
}

TEST_CASE("where no node makes networks, jobs have loopback unless they ask for one") {
  Cluster c;
  for (const char* name : {"n1", "n2"}) {
    proto::NodeRegister m;
    m.node = name;
    m.boot_id = name;
    m.memory = std::int64_t{16} << 30;
    for (std::uint16_t cpu = 0; cpu < 8; ++cpu) m.cpus.push_back(cpu);
    m.layers_off = {std::string(proto::kNoJobNetworks) + "the node daemon is not root"};
    c.controller.step(FromNode{name, std::move(m)});
    if (std::string(name) == "n1") {
      CHECK(c.refusal("fraud", "web") ==
            "only a job with a network of its own (--network=job) has a network profile");
      proto::SubmitJob beside = batch_job("job");
      beside.spec.partition = "fraud";
      beside.spec.network = NetworkMode::job;
      beside.spec.shape.excluded_nodes = {"n1"};
      CHECK_FALSE(c.controller.ask(kAlice, std::move(beside)).is<proto::ErrorReply>());
    }
  }
  CHECK(c.refusal("fraud", "web") ==
        "only a job with a network of its own (--network=job) has a network profile");
  CHECK(c.refusal("fraud", "") == "accepted");
  proto::SubmitJob m = batch_job("job");
  m.spec.partition = "fraud";
  m.spec.network = NetworkMode::job;
  const auto reply = c.controller.ask(kAlice, std::move(m));
  REQUIRE(reply.is<proto::ErrorReply>());
  CHECK(reply.get<proto::ErrorReply>().message ==
        "node n1 of partition fraud gives jobs no network of their own (the node daemon is not "
        "root); leave such nodes out with --exclude");
}

}  // namespace gantry::core::test::network_test
