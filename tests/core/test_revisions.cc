// The history of the tenants' documents is limited in number and bytes. It is pruned in the same
// way by every controller, so that after a restart the history is the same.
#include "tests/core/controller.h"

#include "common/codec/codec.h"
#include "common/proto/session.h"
#include "common/proto/tenancy.h"
#include "ctld/core/apply.h"
#include "ctld/core/apply/audit.h"
#include "ctld/core/request.h"

namespace gantry::core::test {
namespace {

const Identity kAdministrator = identity("root", 0);
const Identity kTenantAdmin = identity("carol", 1001);

Config one_node() {
  Config c;
  c.cluster = "test";
  NodeConfig& node = c.nodes.emplace_back();
  node.name = "n1";
  node.cpus = 1;
  node.memory = 1 << 30;
  return c;
}

// Applies a document of a tenant with `users` users in its project; `number` makes it differ from
// the last one.
void apply(Controller& controller, const Identity& who, std::size_t users, std::size_t number) {
  tenancy::Tenant tenant;
  tenant.name = "fraud";
  tenant.grants = {{tenancy::Role::tenant_admin, "carol", {}},
                   {tenancy::Role::user, "u" + std::to_string(number), {}}};
  tenancy::Project& project = tenant.projects.emplace_back();
  project.name = "p";
  for (std::size_t i = 0; i < users; ++i)
    project.users.push_back(
        {"a-user-with-a-name-as-long-as-a-name-may-be-in-documents-" + std::to_string(10'000 + i),
         1});
  proto::ApplyTenancy m;
  m.documents.emplace_back(std::move(tenant));
  const auto reply = controller.ask(who, std::move(m));
  REQUIRE(reply.is<proto::TenancyPlanned>());
  REQUIRE(reply.get<proto::TenancyPlanned>().applied);
}

std::size_t stored_bytes(const State& state) {
  std::size_t bytes = 0;
  for (const TenancyRevision& r : state.tenancy.history) bytes += codec::encode(r).size();
  return bytes;
}

std::string error_at(Controller& controller, std::uint64_t revision) {
  proto::GetTenancy m;
  m.revision = revision;
  const auto reply = controller.ask(kAdministrator, std::move(m));
  const auto* error = reply.get_if<proto::ErrorReply>();
  return error == nullptr ? "" : error->message;
}

}  // namespace

TEST_CASE("a tenant's admin who applies large documents again and again does not fill the memory") {
  Controller controller(one_node());
  apply(controller, kAdministrator, 0, 0);
  std::size_t rounds = 0;
  for (; rounds < 100; ++rounds) apply(controller, kTenantAdmin, 20'000, 1 + rounds % 2);
  const TenancyState& tenancy = controller.state().tenancy;
  CHECK(tenancy.revision == 101);
  CHECK(stored_bytes(controller.state()) <= kMaxRevisionBytes);
  CHECK(tenancy.history.size() >= 10);
  CHECK(tenancy.history_bytes == stored_bytes(controller.state()));
  const std::uint64_t oldest = tenancy.history.front().revision - 1;
  CHECK(error_at(controller, oldest).empty());
  CHECK(error_at(controller, oldest - 1) == "revision " + std::to_string(oldest - 1) +
                                                " is not kept; " + std::to_string(oldest) +
                                                " to 101 are");

  // After a restart from the journal the history is the same, and it is pruned in the same way.
  const std::string before = audit(controller.state());
  controller.restart(one_node());
  CHECK(audit(controller.state()) == before);
  CHECK(controller.state().tenancy.history_bytes == stored_bytes(controller.state()));
  apply(controller, kTenantAdmin, 20'000, 1 + rounds % 2);
  CHECK(stored_bytes(controller.state()) <= kMaxRevisionBytes);
}

TEST_CASE(
    "the newest revision is kept however large it is; small ones are limited by their number") {
  Controller controller(one_node());
  for (std::size_t i = 0; i <= kMaxRevisions + 5; ++i) apply(controller, kAdministrator, 0, i);
  CHECK(controller.state().tenancy.history.size() == kMaxRevisions);
  CHECK(controller.state().tenancy.history_bytes == stored_bytes(controller.state()));

  MutableState state;
  const TenancyState& tenancy = state.tenancy;
  const auto keep = [&](std::uint64_t number, std::size_t bytes) {
    TenancyRevision r;
    r.revision = number;
    r.comment.assign(bytes, 'x');
    keep_revision(state, std::move(r));
  };
  keep(1, 100);
  keep(2, kMaxRevisionBytes + 1);
  REQUIRE(tenancy.history.size() == 1);
  CHECK(tenancy.history.front().revision == 2);
  keep(3, 100);
  REQUIRE(tenancy.history.size() == 1);
  CHECK(tenancy.history.front().revision == 3);
  CHECK(state.unfolded.revisions == std::vector<std::uint64_t>{1, 2, 1, 3, 2});
}

}  // namespace gantry::core::test
