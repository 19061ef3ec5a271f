// Listings of a large cluster through the real controller. They come complete, in replies that fit
// into messages, both to administrators and to users. With GANTRY_LONG=1 the cluster has 10,000
// nodes and 1,000 tenants that share all nodes, which makes ten million pairs of node and
// partition.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "cli/session.h"
#include "tests/wire/controller_process.h"

namespace gantry {
namespace {

constexpr Duration kPatience = seconds(300);

struct Scale {
  std::size_t nodes = 2'000;
  std::size_t tenants = 150;
};
Scale scale() {
  if (std::getenv("GANTRY_LONG") == nullptr) return {};
  return {10'000, 1'000};
}

cli::Session session_of(const test::Controller& controller, const auth::SigningKey& key) {
  const std::string file = fmt::format("/tmp/gantry-listing-{}.key", ::getpid());
  REQUIRE(auth::save_signing_key(file, key));
  cli::ClientConfig config;
  config.address = controller.address();
  config.server_key = controller.key();
  config.auth = cli::Auth::key;
  config.key_file = file;
  auto session = cli::Session::open("listing_test", config);
  std::filesystem::remove(file);
  REQUIRE(session);
  return std::move(*session);
}

// Tenants have long names, so that lists of all tenants are long.
std::string tenant_name(std::size_t number) {
  return fmt::format("tenant-with-a-name-as-long-as-those-of-departments-{:04}", number);
}

TEST_CASE("a large cluster is listed in full, in replies that fit into messages") {
  const Scale size = scale();
  test::Controller controller("", fmt::format("n[00001-{:05}]", size.nodes));
  (void)controller.connect();
  cli::Session root = session_of(controller, controller.root());
  proto::ApplyTenancy apply;
  for (std::size_t t = 0; t < size.tenants; ++t) {
    tenancy::Tenant tenant;
    tenant.name = tenant_name(t);
    if (t == 7) tenant.grants.push_back({tenancy::Role::user, "nobody", {}});
    apply.documents.emplace_back(std::move(tenant));
  }
  const auto applied = root.call<proto::TenancyPlanned>(apply, kPatience);
  REQUIRE_MESSAGE(applied, applied.error().message);

  // The session refuses a reply that is too large for a message, so each reply here did fit.
  const auto nodes = root.call<proto::ListNodesReply>(proto::ListNodes{}, kPatience);
  REQUIRE_MESSAGE(nodes, nodes.error().message);
  REQUIRE(nodes->nodes.size() == size.nodes);
  CHECK(nodes->nodes.front().name == "n00001");
  CHECK(nodes->nodes.back().name == fmt::format("n{:05}", size.nodes));
  const std::size_t queues = nodes->nodes.front().partitions.size();
  CHECK(queues >= size.tenants);
  CHECK(nodes->nodes.back().partitions == nodes->nodes.front().partitions);
  const auto partitions = root.call<proto::ListPartitionsReply>(proto::ListPartitions{}, kPatience);
  REQUIRE_MESSAGE(partitions, partitions.error().message);
  REQUIRE(partitions->partitions.size() == queues);
  for (const proto::PartitionRow& p : partitions->partitions) CHECK(p.nodes.size() == size.nodes);
  const auto config = root.call<proto::ShowConfigReply>(proto::ShowConfig{}, kPatience);
  REQUIRE_MESSAGE(config, config.error().message);
  CHECK(config->values.contains(fmt::format("nodes.n{:05}.cpus", size.nodes)));

  // A request without pages is refused, because its reply would not fit into a message.
  const auto asked = root.send(proto::ListNodes{});
  REQUIRE(asked);
  const auto refused = root.receive<proto::ListNodesReply>(*asked, kPatience);
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::limit_exceeded);

  cli::Session user = session_of(controller, controller.nobody());
  const auto own = user.call<proto::ListPartitionsReply>(proto::ListPartitions{}, kPatience);
  REQUIRE_MESSAGE(own, own.error().message);
  CHECK(own->partitions.size() == queues - size.tenants + 1);
  const auto seen = user.call<proto::ListNodesReply>(proto::ListNodes{}, kPatience);
  REQUIRE_MESSAGE(seen, seen.error().message);
  REQUIRE(seen->nodes.size() == size.nodes);
  for (const proto::NodeRow& node : seen->nodes)
    CHECK(std::find(node.partitions.begin(), node.partitions.end(), tenant_name(7)) !=
          node.partitions.end());
}

}  // namespace
}  // namespace gantry
