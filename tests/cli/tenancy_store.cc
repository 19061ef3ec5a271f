#include "tests/cli/tenancy_store.h"

#include <algorithm>

#include "config/tenancy/capacity.h"
#include "config/tenancy/write.h"
#include "tests/cli/samples.h"

namespace gantry::test {

TenancyStore::TenancyStore(FakeController& fake) {
  earlier.emplace_back();
  fake.on<proto::ApplyTenancy>([this](const proto::ApplyTenancy& m) { return apply(m); });
  fake.on<proto::GetTenancy>([this](const proto::GetTenancy& get) {
    proto::TenancyDocuments reply;
    reply.revision = get.revision.value_or(revision);
    const auto listed = [](const std::vector<std::string>& list, std::string_view word) {
      return list.empty() || std::find(list.begin(), list.end(), word) != list.end();
    };
    for (const auto& d : earlier.at(reply.revision))
      if (listed(get.kinds, kind_of(d)) && listed(get.names, name_of(d)))
        reply.documents.push_back(d);
    if (get.with_nodes) reply.nodes = nodes;
    return reply;
  });
  fake.on<proto::TenancyHistory>([this](const proto::TenancyHistory&) {
    return proto::TenancyHistoryReply{{history.rbegin(), history.rend()}};
  });
  fake.on<proto::TenantUsage>([this](const proto::TenantUsage& usage) {
    proto::TenantUsageReply reply;
    for (const auto& d : documents) {
      const auto* tenant = std::get_if<tenancy::Tenant>(&d);
      if (tenant == nullptr) continue;
      if (!usage.names.empty() && usage.names[0] != tenant->name) continue;
      proto::TenantUse row = use[tenant->name];
      row.name = tenant->name;
      row.max_queued = tenant->counts.queued_jobs;
      reply.rows.push_back(row);
    }
    return reply;
  });
}

proto::TenancyPlanned TenancyStore::apply(const proto::ApplyTenancy& request) {
  proto::TenancyPlanned plan;
  const auto after = tenancy::with_changes(documents, request.documents, request.removals);
  plan.revision = revision;
  plan.changes = tenancy::difference(documents, after);
  plan.warnings = tenancy::warnings_of(after, nodes);
  if (request.dry_run) return plan;
  plan.applied = true;
  plan.revision = ++revision;
  documents = after;
  earlier.push_back(after);
  history.push_back({revision, kNow, "root", request.comment, plan.changes, true});
  return plan;
}

}  // namespace gantry::test
