// Accounting queries. The rows that the core still has are collected here. The history reader's
// thread reads the rest from the store, and sends the page back to the loop.
#include "ctld/answers.h"

#include "common/codec/codec.h"
#include "common/proto/history.h"
#include "common/proto/job_ref.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/select.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/history_row.h"
#include "ctld/core/state/state.h"
#include "ctld/rpc/dispatch.h"

namespace gantry::ctld {
namespace {

constexpr std::size_t kLivePage = 250;  // rows collected on the loop at a time: a few milliseconds

Result<acct::LiveRows> live_rows(const core::State& state, const core::Runtime& rt,
                                 const core::Identity& who, proto::JobFilter filter,
                                 const acct::HistoryQuery& query, Instant now) {
  acct::LiveRows live;
  if (query.position().phase != acct::PagePosition::Phase::live) return live;
  // The job may have been in the state at any time of the window; query.matches() checks that.
  filter.states.clear();
  ASSIGN(match, core::JobMatch::make(state, filter));
  const std::size_t most = std::min(query.limit(), kLivePage);
  const auto visit = [&](const core::Job& job) {
    if (!core::has_row(job)) return true;
    proto::HistoryRow row = core::history_row(state, job, now);
    if (!query.matches(row)) return true;
    core::put_live_usage(rt, job, row);
    if (live.rows.size() == most) {
      live.more = true;
      return false;
    }
    live.rows.push_back(std::move(row));
    return true;
  };
  const JobId after = query.position().live_after;
  if (filter.jobs.empty()) {
    core::walk_jobs(state, who, *match, after, visit);
    return live;
  }
  std::vector<proto::JobRef> unknown;
  for (const core::Selected& named : core::resolve(state, who, filter.jobs, unknown)) {
    const core::Job* job = state.jobs.find(named.job);
    if (named.job > after && job != nullptr && (*match)(state, *job) && !visit(*job)) break;
  }
  return live;
}

}  // namespace

void Answers::query_history(const Asked& asked, const proto::QueryHistory& message) {
  const core::Identity& who = asked.who;
  const core::Reach reach(shell_.core.state(), who);
  const std::optional<Uid> only = reach.everything() ? std::nullopt : std::optional(who.owner.uid);
  std::vector<std::string> tenants;
  for (const PartitionId id : reach.tenants())
    tenants.push_back(shell_.core.state().partition(id).name);
  auto query = acct::HistoryQuery::make(message, only, tenants);
  if (!query) return connections_.refuse(asked.session, asked.request, query.error());
  const auto answered = question(history_questions_, who);
  if (!answered) return connections_.refuse(asked.session, asked.request, answered.error());
  auto live = live_rows(shell_.core.state(), shell_.core.runtime(), who, message.filter, *query,
                        shell_.clock.now());
  const auto done =
      [this, id = asked.session.id, request = asked.request, answered = *answered,
       currency = shell_.core.state().ledger.prices.currency](Result<proto::HistoryReply> reply) {
        answered();
        const rpc::Session* asker = connections_.find(id);
        if (asker == nullptr) return;
        if (!reply) {
          connections_.refuse(*asker, request, reply.error());
          return;
        }
        reply->currency = currency;
        connections_.send(*asker, request, *reply);
      };
  const Result<void> waits =
      live ? history_.ask(std::move(*query), std::move(*live), shell_.clock.now(), done)
           : Result<void>(tl::unexpected(live.error()));
  if (waits) return;
  (*answered)();
  connections_.refuse(asked.session, asked.request, waits.error());
}

}  // namespace gantry::ctld
