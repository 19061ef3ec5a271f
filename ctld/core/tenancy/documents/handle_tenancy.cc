// Tenancy documents: apply (all or nothing, answered with the plan), read, history.
#include <algorithm>
#include <limits>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/proto/tenancy.h"
#include "common/text/hostlist.h"
#include "config/config.h"
#include "config/tenancy/capacity.h"
#include "config/tenancy/check.h"
#include "config/tenancy/write.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/handler.h"
#include "ctld/core/money/budget_gate.h"
#include "ctld/core/money/posted.h"
#include "ctld/core/request.h"
#include "ctld/core/services/reconcile.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/documents/may_change.h"
#include "ctld/core/tenancy/subject.h"
#include "ctld/core/tenancy/tenant_submit.h"
#include "ctld/core/tenancy/tenants.h"

namespace gantry::core {
namespace {

using tenancy::Document;
using tenancy::Tenant;

constexpr std::size_t kMaxDocuments = 20'000;  // documents in one request
constexpr std::size_t kMaxCommentText = 1024;
constexpr std::size_t kPageChanges = 500;  // changes examined for a page of the history

std::vector<Document> all_documents(const Documents& documents) {
  std::vector<Document> out;
  out.reserve(documents.size());
  for (const auto& [key, document] : documents) out.push_back(document);
  return out;
}

std::vector<proto::NodesAlike> nodes_alike(const State& state, const Sight& sight) {
  std::vector<proto::NodesAlike> out;
  std::vector<std::vector<std::string>> names;
  for (const NodeId id : state.node_order) {
    if (!sight.node(id)) continue;
    const NodeConfig& node = *state.node(id).declared;
    proto::NodesAlike kind;
    kind.features = node.features;
    kind.gpu_model = node.gpu_model;
    kind.each.set<Resource::cpu>(thousandths_of(Cores{node.cpus}));
    kind.each.set<Resource::memory>(ByteCount{node.memory});
    kind.each.set<Resource::gpu>(thousandths_of(Gpus{node.gpus}));
    kind.each.set<Resource::scratch>(ByteCount{node.scratch});
    const auto it = std::find_if(out.begin(), out.end(), [&](const proto::NodesAlike& other) {
      return other.features == kind.features && other.gpu_model == kind.gpu_model &&
             other.each == kind.each;
    });
    const auto at = static_cast<std::size_t>(it - out.begin());
    if (it == out.end()) {
      out.push_back(std::move(kind));
      names.emplace_back();
    }
    names[at].push_back(node.name);
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i].nodes = compress_hostlist(names[i]);
  return out;
}

Result<void> check_removal(const State& state, const Identity& who, const proto::DocumentRef& ref) {
  if (!may_remove(state, who, ref))
    return fail(ErrorCode::permission_denied,
                fmt::format("{} may not remove {} {}", who.owner.user, ref.kind, ref.name));
  const auto known = std::any_of(
      state.tenancy.documents.begin(), state.tenancy.documents.end(), [&](const auto& entry) {
        return tenancy::kind_of(entry.second) == ref.kind && entry.first.second == ref.name;
      });
  if (!known)
    return fail(ErrorCode::not_found, fmt::format("there is no {} {}", ref.kind, ref.name));
  if (ref.kind != Tenant::kName) return {};
  const QueueCounts counts = state.tenant_counts(ref.name);
  if (counts.queued + counts.active == 0) return {};
  return fail(ErrorCode::wrong_state,
              fmt::format("tenant {} has {} queued and {} active jobs: they have to end first "
                          "(gtenant offboard drains it)",
                          ref.name, counts.queued, counts.active));
}

Result<void> check_request(const Context& ctx, const Identity& who, const proto::ApplyTenancy& m) {
  const TenancyState& tenancy = ctx.state.tenancy;
  if (m.base_revision && *m.base_revision != tenancy.revision)
    return fail(ErrorCode::wrong_state,
                fmt::format("the documents are at revision {} now, this was planned on {}: look "
                            "at the plan again",
                            tenancy.revision, *m.base_revision));
  if (m.comment.size() > kMaxCommentText)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("the comment has {} bytes; at most {} are allowed", m.comment.size(),
                            kMaxCommentText));
  for (const Document& document : m.documents) {
    if (!is_admin(who))
      if (auto r = may_change(ctx, who, document); !r) return r;
    const std::string& name = tenancy::name_of(document);
    if (std::holds_alternative<Tenant>(document))
      for (const PartitionConfig& p : ctx.config.partitions)
        if (p.name == name)
          return fail(ErrorCode::already_exists,
                      fmt::format("Tenant {}: the cluster's configuration has a partition of this "
                                  "name, and a tenant's queue is one",
                                  name));
    if (const auto* c = std::get_if<tenancy::PriorityClass>(&document);
        c != nullptr && c->victim_mode == tenancy::VictimMode::suspend)
      return fail(
          ErrorCode::invalid_argument,
          fmt::format("PriorityClass {}: victim_mode: suspend makes no room, as a suspended "
                      "job keeps its memory and GPUs; use requeue or cancel",
                      name));
  }
  for (const proto::DocumentRef& ref : m.removals)
    if (auto r = check_removal(ctx.state, who, ref); !r) return r;
  return {};
}

// Tenants that would hold more than they could get.
std::vector<proto::OverQuota> over_quota(const State& state, const CompiledTenancy& compiled) {
  sched::QuotaTree quota(compiled.view);
  state.jobs.walk(JobId{}, [&](const Job& job) {
    if (!job.placed()) return true;
    const auto it = compiled.tenants.find(state.partition(class_of(state, job).partition).payer());
    if (it == compiled.tenants.end()) return true;
    for (const NodeRun& run : job.active->nodes)
      if (run.state != RunState::released)
        quota.add(it->second.quota_node, quota_need(compiled, run.grant));
    return true;
  });
  std::vector<proto::OverQuota> out;
  for (std::uint32_t n = 0; n < compiled.view->nodes.size(); ++n)
    for (std::uint32_t f = 0; f < compiled.view->flavors.size(); ++f)
      for (const ResourceRow& row : kResourceTable) {
        const std::int64_t left = quota.available(n, f, row.id);
        const std::int64_t used = quota.usage(n, f, row.id);
        // A tenant within its own quota has to return nothing, however much others borrow.
        const std::int64_t own = std::max<std::int64_t>(0, quota.subtree(n, f, row.id));
        if (left >= 0 || used <= own) continue;
        out.push_back({compiled.view->nodes[n].name, compiled.view->flavors[f].name, row.id, used,
                       std::max(own, used + left)});
      }
  return out;
}

// The documents that differ, each before and after.
std::vector<DocumentChange> changes_of(const TenancyState& tenancy,
                                       const std::vector<Document>& after) {
  std::vector<DocumentChange> out;
  Documents next;
  for (const Document& document : after) next.emplace(key_of(document), document);
  for (const auto& [key, document] : tenancy.documents) {
    const auto it = next.find(key);
    if (it == next.end())
      out.push_back({key.first, key.second, document, std::nullopt});
    else if (!(it->second == document))
      out.push_back({key.first, key.second, document, it->second});
  }
  for (const auto& [key, document] : next)
    if (!tenancy.documents.contains(key))
      out.push_back({key.first, key.second, std::nullopt, document});
  return out;
}

void commit(Context& ctx, const ClientRequest& from, std::string comment,
            std::vector<DocumentChange> changes, const Documents& next) {
  for (const DocumentChange& change : changes)
    if (change.kind == Tenant::kKind && change.after &&
        !ctx.state.partition_ids.contains(change.name))
      ctx.record(event::PartitionDeclared{
          PartitionId(static_cast<std::uint32_t>(ctx.state.partitions.size())), change.name});
  event::TenancyApplied e;
  e.revision = ctx.state.tenancy.revision + 1;
  e.author = from.who.owner.user;
  e.comment = std::move(comment);
  e.changes = std::move(changes);
  e.new_classes = new_class_names(next, ctx.state.tenancy.class_names);
  ctx.record(e);
  compile_tenancy(ctx);
  close_months(ctx);
  look_at_budgets(ctx);
  services_changed(ctx, from.who);
}

// The documents as they were after `revision`, made by undoing later changes. They point into
// State.
using DocumentRefs = std::map<DocumentKey, const Document*>;
Result<DocumentRefs> documents_at(const TenancyState& tenancy, std::uint64_t revision) {
  const std::uint64_t oldest =
      tenancy.history.empty() ? tenancy.revision : tenancy.history.front().revision - 1;
  if (revision > tenancy.revision || revision < oldest)
    return fail(ErrorCode::not_found, fmt::format("revision {} is not kept; {} to {} are", revision,
                                                  oldest, tenancy.revision));
  DocumentRefs out;
  for (const auto& [key, document] : tenancy.documents) out.emplace(key, &document);
  for (auto it = tenancy.history.rbegin(); it != tenancy.history.rend(); ++it) {
    if (it->revision <= revision) break;
    for (const DocumentChange& change : it->changes) {
      const DocumentKey key{change.kind, change.name};
      if (change.before)
        out.insert_or_assign(key, &*change.before);
      else
        out.erase(key);
    }
  }
  return out;
}

bool listed(const std::vector<std::string>& list, std::string_view word) {
  return list.empty() || std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::ApplyTenancy&& m) {
  if (auto r = check_request(ctx, from.who, m); !r) return refuse(ctx, from, r.error());
  std::vector<Document> before = all_documents(ctx.state.tenancy.documents);
  tenancy::sort_documents(before);
  const std::vector<Document> after = tenancy::with_changes(before, m.documents, m.removals);
  if (after.size() > kMaxDocuments)
    return refuse(ctx, from,
                  {ErrorCode::limit_exceeded,
                   fmt::format("there would be more than {} documents", kMaxDocuments)});
  if (auto r = tenancy::check_documents(after); !r) return refuse(ctx, from, r.error());

  proto::TenancyPlanned reply;
  reply.revision = ctx.state.tenancy.revision;
  std::set<std::pair<std::string_view, std::string_view>> asked;
  for (const Document& d : m.documents) asked.emplace(tenancy::kind_of(d), tenancy::name_of(d));
  for (proto::DocumentChange& change : tenancy::difference(before, after))
    if (asked.contains({change.kind, change.name}) ||
        change.action != proto::ChangeAction::unchanged)
      reply.changes.push_back(std::move(change));
  Documents next;
  for (const Document& document : after) next.emplace(key_of(document), document);
  const Sight sight(ctx.state, from.who);
  reply.over = over_quota(ctx.state, compile_for(ctx, next));
  std::erase_if(reply.over, [&](const auto& over) { return !sight.tenant(over.name); });
  if (is_admin(from.who))
    reply.warnings = tenancy::warnings_of(after, nodes_alike(ctx.state, sight));

  std::vector<DocumentChange> changes = changes_of(ctx.state.tenancy, after);
  if (!m.dry_run) {
    if (!changes.empty()) commit(ctx, from, std::move(m.comment), std::move(changes), next);
    reply.applied = true;
    reply.revision = ctx.state.tenancy.revision;
  }
  ctx.reply(from, std::move(reply));
}

static void handle(Context& ctx, const ClientRequest& from, proto::GetTenancy&& m) {
  const TenancyState& tenancy = ctx.state.tenancy;
  const std::uint64_t revision = m.revision.value_or(tenancy.revision);
  const auto documents = documents_at(tenancy, revision);
  if (!documents) return refuse(ctx, from, documents.error());
  proto::TenancyDocuments reply;
  reply.revision = revision;
  const Sight sight(ctx.state, from.who);
  for (const auto& [key, document] : *documents) {
    if (!listed(m.kinds, tenancy::kind_of(*document)) || !listed(m.names, key.second)) continue;
    if (auto seen = sight.document(*document)) reply.documents.push_back(std::move(*seen));
  }
  if (m.with_nodes) reply.nodes = nodes_alike(ctx.state, sight);
  ctx.reply(from, std::move(reply));
}

namespace {

// Reads the history from a given place on, newest first, up to a number of changes.
class HistoryReader {
 public:
  HistoryReader(const Context& ctx, const Identity& who, const proto::TenancyHistory& asked)
      : history_(ctx.state.tenancy.history), sight_(ctx.state, who), m_(asked) {}

  // Examines at most `most` changes; unset = all.
  proto::TenancyHistoryReply read(const proto::HistoryPlace& from,
                                  std::optional<std::size_t> most) {
    proto::TenancyHistoryReply reply;
    std::uint32_t first = from.change;
    std::size_t left = most.value_or(std::numeric_limits<std::size_t>::max());
    for (auto it = history_.rbegin(); it != history_.rend(); ++it) {
      if (from.revision != 0 && it->revision > from.revision) continue;
      if (from.revision != it->revision) first = 0;
      if (m_.limit != 0 && reply.revisions.size() >= m_.limit) break;
      const std::size_t end = it->changes.size() - std::min<std::size_t>(first, it->changes.size());
      const std::size_t some = std::min(left, end);
      if (auto revision = part_of(*it, first, some))
        reply.revisions.push_back(std::move(*revision));
      left -= some;
      const bool all = some == end;
      if (left > 0 || (all && std::next(it) == history_.rend())) continue;
      reply.page.emplace().next =
          all ? proto::HistoryPlace{std::next(it)->revision, 0}
              : proto::HistoryPlace{it->revision, first + static_cast<std::uint32_t>(some)};
      break;
    }
    if (most && !reply.page) reply.page.emplace();
    return reply;
  }

 private:
  std::optional<proto::TenancyRevision> part_of(const TenancyRevision& r, std::size_t first,
                                                std::size_t some) const {
    std::vector<Document> before, after;
    // If a part of the change is not visible, its comment may mention other tenants, so it is left
    // out; likewise for users when the request is for only a part of the change.
    bool all = some == r.changes.size() || sight_.everything();
    for (std::size_t i = first; i < first + some; ++i) {
      const DocumentChange& change = r.changes[i];
      const Document& document = change.after ? *change.after : *change.before;
      auto was = change.before ? sight_.document(*change.before) : std::nullopt;
      auto is = change.after ? sight_.document(*change.after) : std::nullopt;
      all = all && was.has_value() == change.before.has_value() &&
            is.has_value() == change.after.has_value();
      if (!m_.kind.empty() && tenancy::kind_of(document) != m_.kind) continue;
      if (!m_.name.empty() && change.name != m_.name) continue;
      if (was) before.push_back(std::move(*was));
      if (is) after.push_back(std::move(*is));
    }
    if (before.empty() && after.empty()) return std::nullopt;
    tenancy::sort_documents(before);
    tenancy::sort_documents(after);
    return proto::TenancyRevision{r.revision,
                                  r.at,
                                  r.author,
                                  all ? r.comment : std::string(),
                                  tenancy::difference(before, after),
                                  true};
  }

  const std::deque<TenancyRevision>& history_;
  Sight sight_;
  const proto::TenancyHistory& m_;
};

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::TenancyHistory&& m) {
  HistoryReader reader(ctx, from.who, m);
  if (m.from) return ctx.reply(from, reader.read(*m.from, kPageChanges));
  ctx.reply(from, reader.read({}, std::nullopt));
}

const Subject kTenancyMessages{
    .name = "tenancy",
    .handlers = kHandlers<proto::ApplyTenancy, proto::GetTenancy, proto::TenancyHistory>};

}  // namespace gantry::core
