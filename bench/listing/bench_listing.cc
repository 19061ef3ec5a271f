// Each listing on a large cluster: the bench measures how long one message holds the controller's
// loop.
//
//   bench_listing [nodes [tenants [jobs]]]     defaults 10,000, 1,000 and 20,000
//
// The controller's own handlers answer, and their replies are encoded as the loop encodes them. All
// nodes are shared, so the queue of every tenant has all of them. An operator, a user of one
// tenant, and a user of no tenant ask. A listing that comes in pages is read to its end as the
// commands do.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "cli/pages.h"
#include "common/assert.h"
#include "common/proto/budget.h"
#include "common/proto/cluster.h"
#include "common/proto/control.h"
#include "common/proto/job_query.h"
#include "common/proto/job_submit.h"
#include "common/proto/ledger.h"
#include "common/proto/partitions.h"
#include "common/proto/reservation.h"
#include "common/proto/session.h"
#include "common/proto/tenancy.h"
#include "common/proto/tenancy_view.h"
#include "common/proto/tenant_events.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"
#include "ctld/rpc/dispatch.h"

namespace gantry::core {
namespace {

double millis() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

Config config_of(std::uint32_t nodes) {
  Config config;
  config.controller.max_user_jobs = 100'000'000;
  config.controller.max_user_bytes = std::int64_t{1} << 40;
  PartitionConfig partition;
  partition.name = "main";
  partition.is_default = true;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    NodeConfig node;
    node.name = fmt::format("n{:05}", i);
    node.cpus = 64;
    node.memory = std::int64_t{512} << 30;
    node.gpus = 8;
    node.gpu_model = "a100";
    partition.nodes.push_back(node.name);
    config.nodes.push_back(std::move(node));
  }
  config.partitions.push_back(std::move(partition));
  return config;
}

Identity identity(std::string user, std::uint32_t uid) {
  Identity who;
  who.owner.uid = Uid(uid);
  who.owner.user = std::move(user);
  if (uid == 0) who.role = proto::Role::admin;
  return who;
}

tenancy::Tenant tenant(std::uint32_t number) {
  tenancy::Tenant t;
  t.name = fmt::format("t{:04}", number);
  t.cohort = "all";
  tenancy::QuotaLine gpus;
  gpus.resource = Resource::gpu;
  gpus.nominal = 8 * kGpuUnit;
  t.quota.push_back(gpus);
  for (std::uint32_t p = 0; p < 3; ++p) t.projects.push_back({fmt::format("p{}", p), 1, {}});
  for (std::uint32_t u = 0; u < 10; ++u)
    t.grants.push_back({tenancy::Role::user, fmt::format("u{:04}x{}", number, u), {}});
  return t;
}

class Bench {
 public:
  Bench(std::uint32_t nodes, std::uint32_t tenants, std::uint32_t jobs) : core_(config_of(nodes)) {
    GANTRY_ASSERT(core_.start(now_).has_value(), "a new core starts");
    (void)core_.take_turn();
    proto::ApplyTenancy apply;
    tenancy::Cohort all;
    all.name = "all";
    apply.documents.emplace_back(std::move(all));
    for (std::uint32_t t = 0; t < tenants; ++t) apply.documents.emplace_back(tenant(t));
    must(ask(root_, std::move(apply)));
    for (std::uint32_t j = 0; j < jobs; ++j) {
      const std::uint32_t t = j % tenants, u = j / tenants % 10;
      proto::SubmitJob m;
      m.spec.name = fmt::format("job{}", j % 100);
      m.spec.work_dir = "/home/u";
      m.spec.account = fmt::format("p{}", j % 3);
      m.script = "#!/bin/sh\n";
      must(ask(identity(fmt::format("u{:04}x{}", t, u), 1000 + t * 10 + u), std::move(m)));
    }
  }

  // Reads a listing page by page. `next` makes the next request from a reply, or returns false if
  // that was the last page.
  template <class Request, class Next>
  void measure(std::string_view name, Request first, Next next) {
    const Identity users[] = {root_, identity("u0000x0", 1000), identity("stranger", 999'999)};
    static constexpr std::string_view kWho[] = {"operator", "user", "stranger"};
    for (std::size_t i = 0; i < std::size(users); ++i) {
      if (const ReplyMessage reply = ask(users[i], first); !reply.is<proto::ErrorReply>())
        measure_one(name, kWho[i], users[i], first, next);
    }
  }

 private:
  template <class Request, class Next>
  void measure_one(std::string_view name, std::string_view who_name, const Identity& who,
                   Request request, Next next) {
    double most = 0, all = 0;
    std::size_t largest = 0;
    std::size_t rows = 0, bytes = 0, calls = 0;
    for (bool more = true; more;) {
      const double before = millis();
      const ReplyMessage reply = ask(who, request);
      const rpc::Encoded encoded = rpc::encode_reply(reply);
      const double took = millis() - before;
      most = std::max(most, took);
      all += took;
      bytes += encoded.body.size();
      largest = std::max(largest, encoded.body.size());
      ++calls;
      more = next(reply, request, rows);
    }
    fmt::print("{:<18} {:<9} {:>8} {:>6} {:>10.2f} {:>10.1f} {:>12} {:>10}\n", name, who_name, rows,
               calls, most, all, bytes, largest);
    std::fflush(stdout);
  }

  ReplyMessage ask(const Identity& who, ClientMessage message) {
    core_.step(now_, ClientRequest{ConnectionId(1), ++request_, who, std::move(message)});
    Turn turn = core_.take_turn();
    GANTRY_ASSERT(turn.replies.size() == 1, "one answer");
    return std::move(turn.replies[0].message);
  }
  static void must(const ReplyMessage& reply) {
    const auto* error = reply.get_if<proto::ErrorReply>();
    if (error == nullptr) return;
    fmt::print(stderr, "refused: {}\n", error->message);
    std::exit(1);
  }

  Core core_;
  Instant now_{1'767'225'600'000'000};
  Identity root_ = identity("root", 0);
  std::uint64_t request_ = 0;
};

// Reads a listing as the commands do, in pages if it has them. `count` returns the number of rows
// of a reply.
template <class Reply, class Request, class Count>
void list(Bench& bench, std::string_view name, Request request, Count count) {
  if constexpr (cli::Pages<Request>::kAny) cli::Pages<Request>::first(request);
  bench.measure(name, std::move(request),
                [&](const ReplyMessage& m, auto& next, std::size_t& rows) {
                  const auto* reply = m.get_if<Reply>();
                  if (reply == nullptr) return false;
                  rows += count(*reply);
                  if constexpr (cli::Pages<Request>::kAny) {
                    Reply whole;
                    return cli::Pages<Request>::add(whole, Reply(*reply), next);
                  }
                  return false;
                });
}

void run(std::uint32_t nodes, std::uint32_t tenants, std::uint32_t jobs) {
  Bench bench(nodes, tenants, jobs);
  fmt::print("{} nodes, {} tenants, {} jobs\n", nodes, tenants, jobs);
  fmt::print("{:<18} {:<9} {:>8} {:>6} {:>10} {:>10} {:>12} {:>10}\n", "message", "asker", "rows",
             "calls", "most ms", "ms in all", "octets", "of a reply");
  const auto rows = [](const auto& r) { return r.rows.size(); };
  list<proto::ListNodesReply>(bench, "ListNodes", proto::ListNodes{},
                              [](const auto& r) { return r.nodes.size(); });
  list<proto::ListPartitionsReply>(bench, "ListPartitions", proto::ListPartitions{},
                                   [](const auto& r) { return r.partitions.size(); });
  list<proto::ShowConfigReply>(bench, "ShowConfig", proto::ShowConfig{},
                               [](const auto& r) { return r.values.size(); });
  list<proto::PingReply>(bench, "Ping", proto::Ping{}, [](const auto&) { return 1u; });
  list<proto::ShowStatsReply>(bench, "ShowStats", proto::ShowStats{},
                              [](const auto& r) { return r.values.size(); });
  list<proto::TenantUsageReply>(bench, "TenantUsage", proto::TenantUsage{}, rows);
  list<proto::ShareTreeReply>(bench, "ShareTree", proto::ShareTree{}, rows);
  list<proto::TenancyDocuments>(bench, "GetTenancy", proto::GetTenancy{},
                                [](const auto& r) { return r.documents.size(); });
  list<proto::TenancyHistoryReply>(bench, "TenancyHistory", proto::TenancyHistory{},
                                   [](const auto& r) { return r.revisions.size(); });
  list<proto::ListReservationsReply>(bench, "ListReservations", proto::ListReservations{},
                                     [](const auto& r) { return r.reservations.size(); });
  list<proto::TenantEventsReply>(bench, "TenantEvents", proto::TenantEvents{},
                                 [](const auto&) { return 0u; });
  list<proto::BudgetList>(bench, "ListBudgets", proto::ListBudgets{}, rows);
  proto::QueryLedger ledger;
  ledger.first = ledger.last = "this-month";
  ledger.by = {"tenant"};
  list<proto::LedgerReply>(bench, "QueryLedger", ledger, rows);
  bench.measure("ListJobs", proto::ListJobs{},
                [](const ReplyMessage& m, proto::ListJobs& next, std::size_t& count) {
                  const auto& reply = m.get<proto::ListJobsReply>();
                  count += reply.rows.size();
                  next.after = reply.next;
                  return reply.more;
                });
  list<proto::PriorityTuplesReply>(bench, "PriorityTuples", proto::PriorityTuples{}, rows);
}

}  // namespace
}  // namespace gantry::core

int main(int argc, char** argv) {
  const auto number = [&](int i, std::uint32_t usual) {
    return argc > i ? static_cast<std::uint32_t>(std::atoi(argv[i])) : usual;
  };
  gantry::core::run(number(1, 10'000), number(2, 1000), number(3, 20'000));
}
