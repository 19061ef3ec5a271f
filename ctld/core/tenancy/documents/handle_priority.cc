// PriorityTuples: the values by which the scheduler orders waiting jobs. Read only; each asker sees
// the jobs that the asker may see.
//
// With pages, rows come by job id and the asker puts them in order, because ordering needs all rows
// and a page must not cost as much as all. The form without pages, for commands of earlier
// releases, orders as many jobs as a reply holds.
#include <algorithm>

#include <fmt/core.h>

#include "common/proto/job_query.h"
#include "common/proto/job_ref.h"
#include "common/proto/priority_order.h"
#include "common/proto/tenancy_view.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/select.h"
#include "ctld/core/context.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/rows.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/memory.h"
#include "ctld/core/tenancy/multifactor.h"
#include "ctld/core/tenancy/share_lines.h"
#include "ctld/core/tenancy/subject.h"
#include "ctld/core/tenancy/tenant_submit.h"
#include "ctld/core/tenancy/tenants.h"

namespace gantry::core {
namespace {

constexpr std::uint32_t kMaxTuples = 20'000;   // most rows that are put in order, in one reply
constexpr std::uint32_t kPageTuples = 1000;    // rows in a page by job id
constexpr std::uint32_t kPageLooked = 20'000;  // jobs examined for a page by job id

class Tuples {
 public:
  explicit Tuples(const Context& ctx) : ctx_(ctx), lines_(ctx) {}

  proto::PriorityRow of(const Job& job) {
    const State& state = ctx_.state;
    const sched::ClassKey& key = class_of(state, job);
    const Partition& partition = state.partition(key.partition);
    proto::PriorityRow row;
    const proto::JobRow plain = plain_row(state, job);
    row.job = job.id;
    row.array_job = plain.array_job;
    row.array_tasks = plain.array_tasks;
    row.user = plain.user;
    row.account = plain.account;
    row.partition = partition.name;
    row.partition_priority = partition.declared != nullptr ? partition.declared->priority : 0;
    const auto& classes = state.tenancy.compiled.view->classes;
    row.priority_class = classes.at(key.priority_class).name;
    row.class_value = classes[key.priority_class].value;
    row.rank = rank_now(ctx_, job).value;
    row.priority = priority_now(ctx_, job);
    row.terms = terms_of(ctx_, job);
    row.since = job.eligible;
    row.site_factor = job.site_factor;
    if (const auto node = quota_node_of(state, key.partition)) borrowing(*node, job, row);
    if (job.share && row.terms.empty()) {  // with weights, the sum contains the fair share
      row.project_level = level(*state.tenancy.shares[job.share->value()].parent);
      row.user_level = level(*job.share);
    }
    return row;
  }

 private:
  void borrowing(std::uint32_t node, const Job& job, proto::PriorityRow& row) const {
    sched::QuotaNeed need;
    const sched::ClassKey& key = class_of(ctx_.state, job);
    need.amount = asked_of_quota(key.shape, ctx_.state.partition(key.partition));
    row.borrow_levels = ctx_.rt.tenancy->quota->fit(node, need).levels;
    const auto& nodes = ctx_.state.tenancy.compiled.view->nodes;
    for (std::uint32_t n = node; nodes[n].parent != sched::kNoIndex; n = nodes[n].parent)
      row.share_values.insert(row.share_values.begin(),
                              ctx_.rt.tenancy->quota->share_value(n, need));
  }
  std::optional<double> level(sched::ShareId id) {
    const auto [it, made] = levels_.try_emplace(id);
    if (!made) return it->second;
    const ShareLine line = lines_.line(id);  // shares over usage; unset without usage
    if (line.usage > 0) it->second = line.shares / line.usage;
    return it->second;
  }

  const Context& ctx_;
  ShareLines lines_;
  std::map<sched::ShareId, std::optional<double>> levels_;
};

bool waits_in_order(const Context& ctx, const Job& job) {
  return job.phase == Phase::queued && has_row(job) && startable(ctx, job) != 0;
}

// Calls f for the jobs that the filter selects and the asker may see, in id order above `after`,
// until f returns false.
void walk(const Context& ctx, const Identity& who, const JobMatch& match,
          const proto::JobFilter& filter, JobId after, const std::function<bool(const Job&)>& f) {
  if (filter.jobs.empty()) return walk_jobs(ctx.state, who, match, after, f);
  std::vector<proto::JobRef> unknown;
  for (const Selected& s : resolve(ctx.state, who, filter.jobs, unknown)) {
    const Job& job = ctx.state.jobs.at(s.job);
    if (job.id > after && match(ctx.state, job) && !f(job)) return;
  }
}

// All rows in order, each with its place.
Result<proto::PriorityTuplesReply> in_order(const Context& ctx, const Identity& who,
                                            const JobMatch& match, const proto::PriorityTuples& m) {
  Tuples tuples(ctx);
  std::vector<proto::PriorityRow> all;
  bool too_many = false;
  walk(ctx, who, match, m.filter, JobId{}, [&](const Job& job) {
    if (!waits_in_order(ctx, job)) return true;
    too_many = all.size() >= kMaxTuples;
    if (!too_many) all.push_back(tuples.of(job));
    return !too_many;
  });
  if (too_many)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("more than {} jobs wait, too many to put in order in one reply: name "
                            "users, partitions or jobs, or use the commands of this release, which "
                            "read them in pages",
                            kMaxTuples));
  std::sort(all.begin(), all.end(), proto::comes_first);
  const std::uint32_t limit = m.limit == 0 ? kMaxTuples : std::min(m.limit, kMaxTuples);
  proto::PriorityTuplesReply reply;
  for (std::uint32_t i = m.after; i < all.size(); ++i) {
    if (reply.rows.size() == limit) {
      reply.more = true;
      break;
    }
    all[i].place = i + 1;
    reply.rows.push_back(std::move(all[i]));
  }
  return reply;
}

proto::PriorityTuplesReply by_job(const Context& ctx, const Identity& who, const JobMatch& match,
                                  const proto::PriorityTuples& m) {
  const std::uint32_t limit = m.limit == 0 ? kPageTuples : std::min(m.limit, kPageTuples);
  Tuples tuples(ctx);
  proto::PriorityTuplesReply reply;
  proto::PriorityPage& page = reply.page.emplace();
  JobId last = *m.after_job;
  std::uint32_t looked = 0;
  walk(ctx, who, match, m.filter, last, [&](const Job& job) {
    if (reply.rows.size() >= limit || looked >= kPageLooked) {
      page.next = last;
      return false;
    }
    ++looked;
    last = job.id;
    if (waits_in_order(ctx, job)) reply.rows.push_back(tuples.of(job));
    return true;
  });
  return reply;
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::PriorityTuples&& m) {
  const auto match = JobMatch::make(ctx.state, m.filter);
  if (!match) return refuse(ctx, from, match.error());
  Result<proto::PriorityTuplesReply> reply =
      m.after_job ? by_job(ctx, from.who, *match, m) : in_order(ctx, from.who, *match, m);
  if (!reply) return refuse(ctx, from, reply.error());
  reply->weights = weights_of(ctx);
  reply->now = ctx.now;
  ctx.reply(from, std::move(*reply));
}

const Subject kPriorityMessages{.name = "priority", .handlers = kHandlers<proto::PriorityTuples>};

}  // namespace gantry::core
