// The tenants of the small cluster of samples.cc.
#include "tests/cli/samples.h"

namespace gantry::test {
namespace {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

proto::QuotaUse cell(Resource resource, std::int64_t used, std::int64_t nominal,
                     std::optional<std::int64_t> limit, std::int64_t available) {
  proto::QuotaUse out;
  out.resource = resource;
  out.used = used;
  out.nominal = nominal;
  out.borrowed = used > nominal ? used - nominal : 0;
  out.limit = limit;
  out.available = available;
  return out;
}

}  // namespace

proto::TenantUsageReply sample_tenants() {
  proto::TenantUsageReply reply;
  proto::TenantUse cohort;
  cohort.name = "ml-platform";
  cohort.is_cohort = true;
  cohort.cells = {cell(Resource::gpu, 240'000, 640'000, 640'000, 400'000)};
  proto::TenantUse fraud;
  fraud.name = "fraud";
  fraud.parent = "ml-platform";
  fraud.queued = 3;
  fraud.running = 12;
  fraud.max_queued = 2000;
  fraud.cells = {cell(Resource::gpu, 40'000, 64'000, 192'000, 152'000),
                 cell(Resource::cpu, 190'500, 200'000, 400'000, 209'500),
                 cell(Resource::memory, 700 * kGib, 800 * kGib, 1600 * kGib, 900 * kGib)};
  fraud.cells[0].lend = 32'000;
  fraud.cells[0].lent = 24'000;
  fraud.cells.push_back(fraud.cells[0]);
  fraud.cells.back().flavor = "a100";
  proto::TenantUse performance;
  performance.name = "performance";
  performance.parent = "ml-platform";
  performance.running = 1;
  performance.max_running = 500;
  performance.cells = {cell(Resource::gpu, 200'000, 128'000, std::nullopt, 0)};
  proto::TenantUse interns;
  interns.name = "interns";
  interns.max_queued = 0;
  interns.used.row(Resource::gpu) = 2'000;
  interns.used.row(Resource::cpu) = 500;
  proto::TenantUse over;
  over.name = "over";
  over.cells = {cell(Resource::gpu, 12'000, 8'000, 8'000, -4'000)};
  reply.rows = {cohort, fraud, performance, interns, over};
  reply.revision = 7;
  reply.now = kNow;
  return reply;
}

proto::ShareTreeReply sample_shares() {
  proto::ShareTreeReply reply;
  reply.half_life = hours(7 * 24);
  reply.now = kNow;
  const auto row = [&](const std::string& tenant, const std::string& project,
                       const std::string& user, std::uint32_t shares, double share, double usage,
                       double part, std::uint32_t place) {
    proto::ShareRow r;
    r.tenant = tenant;
    r.project = project;
    r.user = user;
    r.shares = shares;
    r.share = share;
    r.usage = usage;
    r.part = part;
    if (part > 0) r.level = share / part;
    r.place = place;
    reply.rows.push_back(r);
  };
  row("fraud", "", "", 1500, 0.6, 1'234'567, 0.4, 1);
  row("fraud", "retraining", "", 3, 0.75, 1'200'000, 0.972, 2);
  row("fraud", "retraining", "alice", 2, 0.667, 1'200'000, 1, 1);
  row("fraud", "research", "", 1, 0.25, 34'567, 0.028, 1);
  row("fraud", "research", "bob", 1, 1, 0, 0, 1);
  row("performance", "", "", 1000, 0.4, 1'851'850, 0.6, 2);
  reply.rows.back().borrows = 112'500;
  reply.rows.back().running = 1;
  return reply;
}

proto::PriorityTuplesReply sample_priorities() {
  proto::PriorityTuplesReply reply;
  reply.now = kNow;
  reply.weights = {{"age", 1000}, {"fairshare", 2000}};
  proto::PriorityRow first;
  first.place = 1;
  first.job = JobId{12};
  first.user = "alice";
  first.account = "retraining";
  first.partition = "fraud";
  first.priority_class = "production-critical";
  first.class_value = 1000;
  first.rank = 1000;
  first.share_values = {0, 0};
  first.project_level = 0.772;
  first.priority = 4'294'901'000;
  first.since = kNow - minutes(90);
  proto::PriorityRow second;
  second.place = 2;
  second.job = JobId{15};
  second.array_job = JobId{15};
  second.array_tasks = "3-9%2";
  second.user = "dave";
  second.partition = "performance";
  second.priority_class = "normal";
  second.class_value = 500;
  second.rank = 502;
  second.borrow_levels = 1;
  second.share_values = {112'500};
  second.user_level = 12.5;
  second.priority = 17;
  second.since = kNow - hours(4);
  reply.rows = {first, second};
  return reply;
}

}  // namespace gantry::test
