// Tests listings in pages: all pages together hold what one reply holds, for every user, and no row
// is given twice or left out when rows appear or vanish between two pages.
#include <fmt/core.h>

#include <functional>
#include <map>
#include <set>

#include "cli/pages.h"
#include "common/codec/codec.h"
#include "common/codec/limits.h"
#include "common/proto/any/message_visit.h"
#include "controller.h"

namespace gantry::core::test {
namespace {

using cli::Pages;

const Identity kRoot = identity("root", 0);

constexpr std::uint32_t kNodes = 2300;

std::string node_name(std::uint32_t i) {
  return fmt::format("n{:04}", i);
}

// Makes the nodes whose numbers are in `order`, all in the partition "site".
Config config_of(const std::vector<std::uint32_t>& order) {
  Config c;
  c.controller.max_user_jobs = 100'000;
  PartitionConfig p;
  p.name = "site";
  p.is_default = true;
  for (const std::uint32_t i : order) {
    NodeConfig node;
    node.name = node_name(i);
    node.cpus = 4;
    node.memory = std::int64_t{8} << 30;
    p.nodes.push_back(node.name);
    c.nodes.push_back(std::move(node));
  }
  c.partitions.push_back(std::move(p));
  return c;
}

std::vector<std::uint32_t> numbers(std::uint32_t n) {
  std::vector<std::uint32_t> out(n);
  // the nodes are not in the order of their names
  for (std::uint32_t i = 0; i < n; ++i) out[i] = n - 1 - i;
  return out;
}

tenancy::Tenant tenant(const std::string& name) {
  tenancy::Tenant t;
  t.name = name;
  t.grants.push_back({tenancy::Role::user, "u" + name, {}});
  t.projects.push_back({"lab", 2, {}});
  t.projects.push_back({"shop", 1, {}});
  return t;
}

tenancy::NodePool pool(const std::string& tenant, const std::string& nodes) {
  tenancy::NodePool p;
  p.name = tenant + "pool";
  p.nodes = nodes;
  p.tenant = tenant;
  return p;
}

void apply(Controller& controller, std::vector<tenancy::Document> documents,
           std::vector<proto::DocumentRef> removals = {}) {
  proto::ApplyTenancy m;
  m.documents = std::move(documents);
  m.removals = std::move(removals);
  m.comment = "changed";
  const ReplyMessage reply = controller.ask(kRoot, std::move(m));
  if (const auto* error = reply.get_if<proto::ErrorReply>()) FAIL(error->message);
}

// Makes `count` tenants; every seventh of the first 280 has a node of its own.
std::vector<tenancy::Document> tenants(std::uint32_t count) {
  std::vector<tenancy::Document> out;
  for (std::uint32_t t = 0; t < count; ++t) {
    const std::string name = fmt::format("t{:04}", t);
    out.emplace_back(tenant(name));
    if (t % 7 == 0 && t < 7 * 40) out.emplace_back(pool(name, node_name(t)));
  }
  return out;
}

// Reads all pages as the commands do; `between` is called after each page except the last.
template <class Reply, class Request>
Reply read(Controller& controller, const Identity& who, Request request,
           const std::function<void()>& between = {}, std::size_t* pages = nullptr) {
  Pages<Request>::first(request);
  Reply whole;
  std::size_t n = 0;
  while (true) {
    ReplyMessage reply = controller.ask(who, request);
    if (const auto* error = reply.get_if<proto::ErrorReply>()) FAIL(error->message);
    const std::size_t bytes =
        proto::visit([](const auto& m) { return codec::encode(m).size(); }, reply);
    CHECK(bytes < codec::kMaxMessageBytes / 8);
    ++n;
    if (!Pages<Request>::add(whole, std::move(reply.get<Reply>()), request)) break;
    if (between) between();
    REQUIRE(n < 1000);
  }
  Pages<Request>::finish(whole);
  if (pages != nullptr) *pages = n;
  return whole;
}

template <class Reply, class Request>
std::size_t check_same(Controller& controller, const Identity& who, const Request& request) {
  std::size_t pages = 0;
  const auto whole = read<Reply>(controller, who, request, {}, &pages);
  const ReplyMessage reply = controller.ask(who, request);
  REQUIRE(reply.is<Reply>());
  CAPTURE(who.owner.user);
  CHECK(codec::to_json(whole) == codec::to_json(reply.get<Reply>()));
  return pages;
}

void submit(Controller& controller, const std::string& tenant, std::uint32_t jobs,
            std::uint32_t uid = 1000) {
  for (std::uint32_t j = 0; j < jobs; ++j) {
    proto::SubmitJob m;
    m.spec.name = "job";
    m.spec.work_dir = "/home/x";
    m.spec.account = j % 2 == 0 ? "lab" : "shop";
    m.spec.nice = static_cast<std::int32_t>(j * 37 % 101);
    m.spec.time_limit = hours(1);
    m.script = "#!/bin/sh\n";
    const ReplyMessage reply = controller.ask(identity("u" + tenant, uid), std::move(m));
    if (const auto* error = reply.get_if<proto::ErrorReply>()) FAIL(error->message);
  }
}

TEST_CASE("all pages together hold the same as one reply, for every user") {
  Controller controller(config_of(numbers(kNodes)));
  apply(controller, tenants(600));
  apply(controller, {tenant("more")});
  submit(controller, "t0000", 1300);
  submit(controller, "t0001", 3, 1001);
  for (const Identity& who :
       {kRoot, identity("ut0000", 1000), identity("ut0001", 1001), identity("stranger", 1002)}) {
    const bool root = who.owner.user == "root";
    CHECK(check_same<proto::ListNodesReply>(controller, who, proto::ListNodes{}) >= 3);
    CHECK(check_same<proto::ListNodesReply>(controller, who, proto::ListNodes{{}, {}, true}) >= 10);
    (void)check_same<proto::ListNodesReply>(controller, who, proto::ListNodes{{}, {"t0000"}});
    (void)check_same<proto::ListNodesReply>(controller, who,
                                            proto::ListNodes{{node_name(8), node_name(3)}, {}});
    const std::size_t pages =
        check_same<proto::ListPartitionsReply>(controller, who, proto::ListPartitions{});
    CHECK((!root || pages > 3));
    const std::size_t options =
        check_same<proto::ShowConfigReply>(controller, who, proto::ShowConfig{});
    CHECK((!root || options > 3));
    (void)check_same<proto::ShareTreeReply>(controller, who, proto::ShareTree{});
    const std::size_t waiting =
        check_same<proto::PriorityTuplesReply>(controller, who, proto::PriorityTuples{});
    CHECK((!root || waiting > 1));
    (void)check_same<proto::TenancyHistoryReply>(controller, who, proto::TenancyHistory{1, "", ""});
  }
  CHECK(check_same<proto::TenancyHistoryReply>(controller, kRoot, proto::TenancyHistory{}) > 1);
  CHECK(check_same<proto::TenancyHistoryReply>(controller, kRoot,
                                               proto::TenancyHistory{2, "NodePool", ""}) >= 1);
}

TEST_CASE("nodes that appear or vanish between two pages change nothing for the other nodes") {
  Controller controller(config_of(numbers(kNodes)));
  apply(controller, {tenant("red")});
  std::vector<std::uint32_t> order = numbers(kNodes);
  std::uint32_t step = 0;
  const auto whole = read<proto::ListNodesReply>(controller, kRoot, proto::ListNodes{}, [&] {
    ++step;
    // A node of the first page and one of the last are removed; new ones are added at the front and
    // in the middle.
    std::erase(order, kNodes - 5 - step);
    std::erase(order, step);
    order.insert(order.begin(), kNodes + 2 * step);
    order.insert(order.begin() + 1500, kNodes + 2 * step + 1);
    controller.restart(config_of(order));
  });
  REQUIRE(step >= 2);
  std::map<std::string, int> seen;
  for (const proto::NodeRow& row : whole.nodes) ++seen[row.name];
  for (const auto& [name, times] : seen) CHECK_MESSAGE(times == 1, name);
  for (const std::uint32_t i : order)
    if (i < kNodes) CHECK_MESSAGE(seen.contains(node_name(i)), node_name(i));
  for (const proto::NodeRow& row : whole.nodes)
    CHECK(row.partitions == std::vector<std::string>{"site", "red"});
}

TEST_CASE("tenants that appear or vanish between two pages change nothing for the others") {
  Controller controller(config_of(numbers(40)));
  apply(controller, tenants(1500));
  std::set<std::string> gone;
  std::uint32_t step = 0;
  const auto change = [&] {
    ++step;
    for (const std::uint32_t t : {1 + step, 1100 + step}) {
      const std::string name = fmt::format("t{:04}", t);
      if (!gone.insert(name).second) continue;
      std::vector<proto::DocumentRef> removals{{"Tenant", name}};
      if (t % 7 == 0 && t < 7 * 40) removals.push_back({"NodePool", name + "pool"});
      apply(controller, {}, removals);
    }
    apply(controller, {tenant(fmt::format("a{:04}", step)), tenant(fmt::format("z{:04}", step))});
  };
  const auto each_once = [&](const std::map<std::string, int>& seen) {
    for (const auto& [name, times] : seen) CHECK_MESSAGE(times == 1, name);
    for (std::uint32_t t = 0; t < 1500; ++t) {
      const std::string name = fmt::format("t{:04}", t);
      if (!gone.contains(name)) CHECK_MESSAGE(seen.contains(name), name);
    }
  };
  SUBCASE("the list of partitions") {
    const auto whole =
        read<proto::ListPartitionsReply>(controller, kRoot, proto::ListPartitions{}, change);
    REQUIRE(step >= 1);
    std::map<std::string, int> seen;
    for (const proto::PartitionRow& row : whole.partitions) ++seen[row.name];
    each_once(seen);
  }
  SUBCASE("the history of the documents") {
    const ReplyMessage before = controller.ask(kRoot, proto::TenancyHistory{});
    const auto whole =
        read<proto::TenancyHistoryReply>(controller, kRoot, proto::TenancyHistory{}, change);
    REQUIRE(step >= 2);
    CHECK(codec::to_json(whole) == codec::to_json(before.get<proto::TenancyHistoryReply>()));
  }
}

TEST_CASE("jobs that appear or vanish between two pages change nothing for the other jobs") {
  Controller controller(config_of(numbers(4)));
  apply(controller, {tenant("red")});
  submit(controller, "red", 2500);
  std::set<std::uint64_t> gone;
  std::uint32_t step = 0;
  const auto whole =
      read<proto::PriorityTuplesReply>(controller, kRoot, proto::PriorityTuples{}, [&] {
        ++step;
        proto::CancelJobs cancel;
        for (const std::uint64_t job : {10 + step, 2000 + step}) {
          gone.insert(job);
          cancel.filter.jobs.push_back({JobId(job), {}});
        }
        REQUIRE(controller.ask(kRoot, cancel).is<proto::JobsDone>());
        submit(controller, "red", 5);
      });
  REQUIRE(step >= 2);
  std::map<std::uint64_t, int> seen;
  for (const proto::PriorityRow& row : whole.rows) ++seen[row.job.value()];
  for (const auto& [job, times] : seen) CHECK_MESSAGE(times == 1, job);
  for (std::uint64_t job = 1; job <= 2500; ++job)
    if (!gone.contains(job)) CHECK_MESSAGE(seen.contains(job), job);
  for (std::size_t i = 0; i < whole.rows.size(); ++i) CHECK(whole.rows[i].place == i + 1);
}

TEST_CASE("a filter by job id gives the order of these jobs only") {
  Controller controller(config_of(numbers(4)));
  apply(controller, {tenant("red")});
  submit(controller, "red", 9);
  proto::PriorityTuples some;
  some.filter.jobs = {{JobId(7), {}}, {JobId(3), {}}, {JobId(99), {}}};
  const auto whole = read<proto::PriorityTuplesReply>(controller, kRoot, some);
  REQUIRE(whole.rows.size() == 2);
  CHECK(whole.rows[0].job.value() + whole.rows[1].job.value() == 10);
  CHECK(check_same<proto::PriorityTuplesReply>(controller, kRoot, some) == 1);
}

TEST_CASE("a listing that is too large for one message is refused with a reason") {
  Controller controller(config_of(numbers(1000)));
  std::vector<tenancy::Document> documents;
  for (std::uint32_t t = 0; t < 330; ++t) documents.emplace_back(tenant(fmt::format("{:060}", t)));
  apply(controller, documents);
  for (const ReplyMessage& reply : {controller.ask(kRoot, proto::ListNodes{})}) {
    const auto* error = reply.get_if<proto::ErrorReply>();
    REQUIRE(error != nullptr);
    CHECK(error->message ==
          "the list of all nodes with their names is larger than a message may be (16 MiB): ask "
          "for some of them, or use the commands of this release, which read it in pages");
  }
  const ReplyMessage some = controller.ask(kRoot, proto::ListNodes{{node_name(1)}, {}});
  CHECK(some.get<proto::ListNodesReply>().nodes.at(0).partitions.size() == 331);
  const auto whole = read<proto::ListNodesReply>(controller, kRoot, proto::ListNodes{});
  REQUIRE(whole.nodes.size() == 1000);
  for (const proto::NodeRow& row : whole.nodes) CHECK(row.partitions.size() == 331);
}

}  // namespace
}  // namespace gantry::core::test
