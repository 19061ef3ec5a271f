// Resolving references and filters; see select.h.
#include "ctld/core/access/select.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "common/proto/job_change.h"
#include "common/proto/job_ref.h"
#include "common/text/text.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/front_door.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

bool among(const std::vector<std::string>& list, const std::string& text) {
  return list.empty() || std::find(list.begin(), list.end(), text) != list.end();
}

// The tasks of one array that a request names, collected before any task is listed, so that naming
// an array a hundred thousand times costs no more than naming it once.
struct NamedArray {
  bool whole = false;
  bool whole_first = false;  // the array was named before any of its tasks
  std::vector<Span> tasks;   // ordinals that were named before the whole array

  // False if nothing that `ranges` names exists.
  bool add(const State& state, const Job& array, const std::vector<IndexRange>& ranges) {
    if (ranges.empty()) {
      whole_first = whole_first || (!whole && tasks.empty());
      whole = true;
      return true;
    }
    const OrdinalSet wanted = array.tasks->indexes.select(ranges);
    const auto& spans = wanted.spans();
    if (std::none_of(spans.begin(), spans.end(),
                     [&](Span span) { return has_any(state, *array.tasks, span); }))
      return false;
    if (!whole) tasks.insert(tasks.end(), spans.begin(), spans.end());
    return true;
  }

  void list(const State& state, const Job& array, std::vector<Selected>& out) const {
    const ArrayState& all = *array.tasks;
    const OrdinalSet wanted = OrdinalSet::from_spans(tasks);
    OrdinalSet pending = wanted.intersect(all.pending);
    if (whole)
      out.push_back({array.id, std::nullopt, whole_first && !all.elements.empty()});
    else if (!pending.empty())
      out.push_back({array.id, std::move(pending), false});
    for (const Span span : wanted.spans())
      for (auto it = all.elements.lower_bound(span.first);
           it != all.elements.end() && it->first <= span.last; ++it)
        if (state.jobs.find(it->second) != nullptr)
          out.push_back({it->second, std::nullopt, false});
    if (!whole) return;
    for (const auto& [ordinal, element] : all.elements)
      out.push_back({element, std::nullopt, true});
  }

 private:
  static bool has_any(const State& state, const ArrayState& tasks, Span span) {
    if (tasks.pending.meets(span)) return true;
    for (auto it = tasks.elements.lower_bound(span.first);
         it != tasks.elements.end() && it->first <= span.last; ++it)
      if (state.jobs.find(it->second) != nullptr) return true;
    return false;
  }
};

// 12+1 is one component; 12 (the id of the leader) means all; the own id of another component means
// it alone.
void add_components(const State& state, const Job& job, const proto::JobRef& ref,
                    std::vector<Selected>& out) {
  const HetPart& het = *class_of(state, job).het;
  if (ref.component && (het.offset != 0 || *ref.component >= het.size)) return;
  const bool all = het.offset == 0 && !ref.component;
  const JobId named = ref.component ? het.member(*ref.component) : job.id;
  for (std::uint32_t i = 0; i < het.size; ++i)
    if (const JobId id = het.member(i); all || id == named)
      if (state.jobs.find(id) != nullptr) out.push_back({id, std::nullopt, all && id != named});
}

}  // namespace

Result<JobMatch> JobMatch::make(const State& state, const proto::JobFilter& filter) {
  for (const auto* words : {&filter.users, &filter.names, &filter.partitions, &filter.accounts,
                            &filter.nodes, &filter.states, &filter.reservations, &filter.tenants})
    if (words->size() > kMaxFilterWords)
      return fail(ErrorCode::limit_exceeded,
                  fmt::format("a filter has at most {} words of a kind", kMaxFilterWords));
  JobMatch match;
  match.users_ = filter.users;
  match.names_ = filter.names;
  match.partitions_ = filter.partitions;
  match.accounts_ = filter.accounts;
  match.reservations_ = filter.reservations;
  match.tenants_ = filter.tenants;
  match.by_node_ = !filter.nodes.empty();
  for (const std::string& name : filter.nodes) {
    const Node* node = state.node_named(name);
    if (node == nullptr)
      return fail(ErrorCode::not_found, fmt::format("node \"{}\" is not in this cluster", name));
    match.nodes_.push_back(node->id);
  }
  if (filter.states.empty()) return match;
  ASSIGN(states, StateSet::parse(filter.states));
  match.states_ = *states;
  return match;
}

bool JobMatch::in_queue(const State& state, const Job& job) const {
  if (among(partitions_, state.partition(class_of(state, job).partition).name)) return true;
  if (job.phase != Phase::queued || !job.queues) return false;
  return std::any_of(job.queues->begin(), job.queues->end(),
                     [&](PartitionId id) { return among(partitions_, state.partition(id).name); });
}

bool JobMatch::in_window(const State& state, const Job& job) const {
  if (among(reservations_, class_of(state, job).reservation)) return true;
  if (job.phase != Phase::queued || !job.windows) return false;
  return std::any_of(job.windows->begin(), job.windows->end(),
                     [&](const std::string& name) { return among(reservations_, name); });
}

bool JobMatch::operator()(const State& state, const Job& job) const {
  if (states_ && !states_->has(shown_phase(job), job.outcome)) return false;
  if (!among(users_, state.names.text(job.user)) || !among(names_, state.names.text(job.name)) ||
      !among(accounts_, state.names.text(job.account)))
    return false;
  if (!reservations_.empty() && !in_window(state, job)) return false;
  if (!partitions_.empty() && !in_queue(state, job)) return false;
  if (!tenants_.empty() &&
      !among(tenants_, state.partition(class_of(state, job).partition).payer()))
    return false;
  if (!by_node_) return true;
  if (!job.placed()) return false;
  for (const NodeRun& run : job.active->nodes)
    if (!run.given_back && std::find(nodes_.begin(), nodes_.end(), run.grant.node) != nodes_.end())
      return true;
  return false;
}

std::vector<Selected> resolve(const State& state, const Identity& who,
                              const std::vector<proto::JobRef>& refs,
                              std::vector<proto::JobRef>& unknown, May what) {
  const Reach reach(state, who);
  std::vector<Selected> out;
  std::map<JobId, NamedArray> arrays;
  std::set<JobId> whole;  // leaders that are named with all their components
  for (const proto::JobRef& ref : refs) {
    const Job* job = state.jobs.find(ref.job);
    const bool known = job != nullptr && reach.may(what, state, *job) && [&] {
      if (job->is_array()) return arrays[job->id].add(state, *job, ref.tasks);
      if (!ref.tasks.empty()) return false;
      const auto& het = class_of(state, *job).het;
      if (het && het->offset == 0 && !ref.component && !whole.insert(job->id).second) return true;
      const std::size_t before = out.size();
      if (het)
        add_components(state, *job, ref, out);
      else if (!ref.component)
        out.push_back({job->id, std::nullopt, false});
      return out.size() > before;
    }();
    if (!known) unknown.push_back(ref);
  }
  for (const auto& [id, named] : arrays) named.list(state, state.jobs.at(id), out);
  std::stable_sort(out.begin(), out.end(),
                   [](const Selected& a, const Selected& b) { return a.job < b.job; });
  const auto end = std::unique(out.begin(), out.end(),
                               [](const Selected& a, const Selected& b) { return a.job == b.job; });
  out.erase(end, out.end());
  return out;
}

void walk_jobs(const State& state, const Identity& who, const JobMatch& match, JobId after,
               const std::function<bool(const Job&)>& f, May what) {
  const Reach reach(state, who);
  if (!reach.only_own()) {
    state.jobs.walk(after, [&](const Job& job) {
      return !reach.may(what, state, job) || !match(state, job) || f(job);
    });
    return;
  }
  const auto user = state.users.find(who.owner.uid);
  if (user == state.users.end()) return;
  const std::vector<JobId> ids = user->second.jobs.ids();
  for (auto it = std::upper_bound(ids.begin(), ids.end(), after); it != ids.end(); ++it) {
    const Job* job = state.jobs.find(*it);
    if (job == nullptr || job->uid != who.owner.uid || !match(state, *job)) continue;
    if (!f(*job)) return;
  }
}

void refuse_others(const State& state, const Identity& who, std::vector<proto::JobRef>& unknown,
                   proto::JobsDone& done) {
  const Reach reach(state, who);
  std::erase_if(unknown, [&](const proto::JobRef& ref) {
    const Job* job = state.jobs.find(ref.job);
    if (job == nullptr || job->phase == Phase::ended || reach.may(May::change, state, *job))
      return false;
    constexpr auto kCode = static_cast<std::uint16_t>(ErrorCode::permission_denied);
    done.refused.push_back({ref, {kCode, "Access/permission denied"}});
    return true;
  });
}

bool has_row(const Job& job) {
  if (!job.is_array() || !job.tasks->pending.empty()) return true;
  return job.phase == Phase::ended && job.tasks->elements.empty();
}

proto::JobRef ref_of(const State& state, const Job& job) {
  if (const auto& het = class_of(state, job).het) return {het->leader, {}, het->offset};
  if (!job.is_element()) return {job.id, {}};
  return {job.array, {{job.task, job.task, 1}}};
}

}  // namespace gantry::core
