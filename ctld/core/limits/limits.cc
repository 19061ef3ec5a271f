#include "ctld/core/limits/limits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/core.h>

#include "ctld/core/context.h"
#include "ctld/core/limits/limit_words.h"
#include "ctld/core/resources/uses.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/queues.h"

namespace gantry::core {
namespace {

using tenancy::TresAmounts;
using tenancy::UseLimits;

constexpr double kUnit = static_cast<double>(tenancy::kUsageFactorUnit);

// The share of a user, an account or a tenant; unset if no job of it has run.
std::optional<sched::ShareId> share_named(const State& state, std::optional<sched::ShareId> parent,
                                          const std::string& name) {
  const auto it = state.tenancy.share_ids.find({parent, name});
  if (it == state.tenancy.share_ids.end()) return std::nullopt;
  return it->second;
}

bool below(const State& state, std::optional<sched::ShareId> leaf, sched::ShareId above) {
  for (; leaf; leaf = state.tenancy.shares[leaf->value()].parent)
    if (*leaf == above) return true;
  return false;
}

template <class F>
UseSum sum_if(const State& state, F&& counts) {
  UseSum sum;
  for (const auto& [key, part] : state.uses)
    if (counts(key)) add_use(part, sum);
  return sum;
}

bool in_qos(const State& state, const UseKey& key, std::uint32_t qos) {
  return key.qos == qos || partition_qos(state, state.partition(key.partition)) == qos;
}

// Adds an association as a subject, if it has limits.
void add_association(const State& state, const CompiledTenant& tenant, const std::string& account,
                     const std::string& user, std::vector<LimitSubject>& out) {
  const auto it = tenant.associations.find(user.empty() ? account : account + "/" + user);
  if (it == tenant.associations.end()) return;
  LimitSubject subject;
  subject.name =
      user.empty() ? "account " + account : fmt::format("user {} in account {}", user, account);
  subject.limits = &it->second;
  find_shares(state, tenant.effective, account, user, subject);
  out.push_back(std::move(subject));
}

// True if a job of this key belongs to the subject, which is an association.
bool of_association(const State& state, const UseKey& key, const LimitSubject& s) {
  if (s.share && below(state, key.share, *s.share)) return true;
  return std::any_of(s.below.begin(), s.below.end(),
                     [&](sched::ShareId share) { return below(state, key.share, share); });
}

}  // namespace

void find_shares(const State& state, const tenancy::Tenant& tenant, const std::string& account,
                 const std::string& user, LimitSubject& subject) {
  subject.share = share_of(state, tenant.name, account, user);
  if (!user.empty() || account == tenant.name) return;
  for (const tenancy::Project& p : tenant.projects) {
    const auto above = tenancy::projects_above(tenant.projects, p.name);
    if (std::find(above.begin(), above.end(), account) == above.end()) continue;
    if (const auto share = share_of(state, tenant.name, p.name, ""))
      subject.below.push_back(*share);
  }
}

std::vector<std::string> records_of(const State& state, const LimitSubject& subject) {
  std::vector<std::string> out;
  if (subject.qos) out.push_back(key_of_use(state.tenancy.class_names.at(subject.index)));
  if (subject.share) out.push_back(key_of_use(*subject.share));
  for (const sched::ShareId share : subject.below) out.push_back(key_of_use(share));
  return out;
}

double used_by(const State& state, const LimitSubject& subject, const std::string& tres,
               Instant now) {
  double sum = 0;
  for (const std::string& record : records_of(state, subject))
    sum += used_seconds(state, record, tres, now);
  return sum;
}

void add_use(const UseSum& part, UseSum& sum) {
  sum.submitted += part.submitted;
  sum.running += part.running;
  for (const auto& [name, held] : part.held) {
    HeldTres& all = sum.held[name];
    all.amount += held.amount;
    all.rate += held.rate;
    all.rate_end += held.rate_end;
  }
  for (const auto& [node, jobs] : part.nodes) sum.nodes[node] += jobs;
}

std::optional<sched::ShareId> share_of(const State& state, const std::string& tenant,
                                       const std::string& account, const std::string& user) {
  std::optional<sched::ShareId> share = share_named(state, std::nullopt, tenant);
  if (share && !(user.empty() && account == tenant)) share = share_named(state, share, account);
  if (share && !user.empty()) share = share_named(state, share, user);
  return share;
}

std::optional<std::uint32_t> partition_qos(const State& state, const Partition& partition) {
  if (partition.declared == nullptr || partition.declared->qos.empty()) return std::nullopt;
  const auto& names = state.tenancy.class_names;
  const auto it = std::find(names.begin(), names.end(), partition.declared->qos);
  if (it == names.end()) return std::nullopt;
  return static_cast<std::uint32_t>(it - names.begin());
}

double running_seconds(const HeldTres& held, Instant now) {
  constexpr __int128 kMicros = 1'000'000;
  return std::max(0.0, static_cast<double>(held.rate_end * kMicros - held.rate * now.us) /
                           (kUnit * static_cast<double>(kMicros)));
}

UseSum sum_of(const State& state, const LimitSubject& subject) {
  if (subject.qos)
    return sum_if(state, [&](const UseKey& key) { return in_qos(state, key, subject.index); });
  return sum_if(state, [&](const UseKey& key) { return of_association(state, key, subject); });
}

UseSum sum_of_user(const State& state, std::uint32_t qos, Uid uid) {
  return sum_if(state,
                [&](const UseKey& key) { return key.uid == uid && in_qos(state, key, qos); });
}

std::vector<LimitSubject> subjects_of(const State& state, const UseDemand& demand) {
  const auto& limits = state.tenancy.compiled.class_limits;
  const auto& names = state.tenancy.class_names;
  std::vector<LimitSubject> out;
  const auto add_qos = [&](std::uint32_t index) {
    if (index >= limits.size()) return;
    out.push_back({true, "QOS " + names[index], &limits[index], index, {}});
  };
  const auto of_partition = partition_qos(state, state.partition(demand.key.partition));
  if (of_partition && *of_partition != demand.key.qos) add_qos(*of_partition);
  add_qos(demand.key.qos);
  if (out.size() == 2 && out[1].limits->over_partition) std::swap(out[0], out[1]);
  const CompiledTenant* tenant = state.tenancy.tenant(demand.tenant);
  if (tenant == nullptr || tenant->associations.empty()) return out;
  add_association(state, *tenant, demand.account, demand.user, out);
  if (demand.account != demand.tenant) add_association(state, *tenant, demand.account, "", out);
  for (const std::string& above :
       tenancy::projects_above(tenant->effective.projects, demand.account))
    if (above != demand.tenant) add_association(state, *tenant, above, "", out);
  add_association(state, *tenant, demand.tenant, "", out);
  return out;
}

namespace {

// Checks the limits of the subjects in their order and finds the first that would be exceeded.
class Judge {
 public:
  Judge(const State& state, const UseDemand& demand, Instant now)
      : state_(state), demand_(demand), now_(now), subjects_(subjects_of(state, demand)) {}

  // With `alone`, checks whether the job could start if no other job ran and nothing were used up.
  std::optional<Verdict> judge(bool alone) {
    taken_.clear();
    for (const LimitSubject& subject : subjects_) {
      if (auto over = of_job(subject)) return over;
      if (auto over = of_group(subject, alone)) return over;
      if (subject.qos)
        if (auto over = of_one(subject, alone)) return over;
    }
    return alone ? std::nullopt : jobs_of_user_in_associations();
  }

  Result<void> submits(std::uint64_t jobs) {
    taken_.clear();
    for (const LimitSubject& subject : subjects_) {
      const UseLimits& l = *subject.limits;
      const auto check = [&](std::string_view name, const std::optional<std::uint32_t>& limit,
                             bool group, auto&& count, const std::string& whose) -> Result<void> {
        if (!limit || !takes(name, subject, group)) return {};
        const std::uint64_t would = count() + jobs;
        if (would <= *limit) return {};
        return fail(ErrorCode::limit_exceeded,
                    fmt::format("{} would have {} jobs that wait or run; {} of {} allows {}", whose,
                                would, name, subject.name, *limit));
      };
      if (auto r = check(
              "GrpSubmitJobs", l.group_submits, true,
              [&] { return sum_of(state_, subject).submitted; }, subject.name);
          !r)
        return r;
      if (auto r = check(
              subject.qos ? "MaxSubmitJobsPerUser" : "MaxSubmitJobs", l.user_submits, false,
              [&] { return of_user(subject).submitted; }, "user " + demand_.user);
          !r)
        return r;
      if (auto r = check(
              "MaxSubmitJobsPerAccount", l.account_submits, false,
              [&] { return of_account(subject).submitted; }, "account " + demand_.account);
          !r)
        return r;
    }
    return {};
  }

  [[nodiscard]] bool denies() const {
    return std::any_of(subjects_.begin(), subjects_.end(),
                       [](const LimitSubject& s) { return s.qos && s.limits->deny_on_limit; });
  }

  // The longest time that the job may run, by the wall-time limit and by the remaining minutes.
  std::optional<Duration> wall() {
    taken_.clear();
    std::optional<Duration> least;
    const auto most = [&](Duration d) { least = std::min(least.value_or(d), d); };
    for (const LimitSubject& s : subjects_) {
      if (s.limits->wall && takes("wall", s, false)) most(*s.limits->wall);
      for (const auto& [tres, limit] : s.limits->job_minutes)
        if (takes("job_minutes", s, false, tres) && asked(tres) > 0)
          most(minutes(std::max<std::int64_t>(1, limit / asked(tres))));
    }
    return least;
  }

 private:
  // Whether this limit applies: no earlier subject has the same limit. A limit of groups applies
  // for each association.
  bool takes(std::string_view limit, const LimitSubject& subject, bool group,
             const std::string& tres = {}) {
    const bool fresh = taken_.emplace(std::string(limit) + "/" + tres).second;
    if (subject.qos || !group) {
      if (fresh && subject.qos) by_qos_.emplace(std::string(limit) + "/" + tres);
      return fresh;
    }
    return !by_qos_.contains(std::string(limit) + "/" + tres);
  }

  [[nodiscard]] std::int64_t asked(const std::string& tres) const {
    const auto it = demand_.job.find(tres);
    return it == demand_.job.end() ? 0 : it->second;
  }
  [[nodiscard]] double seconds() const {
    return demand_.limit ? static_cast<double>(demand_.limit->seconds()) : 1e18;
  }

  Verdict over(const LimitSubject& subject, LimitKind kind, const std::string& tres, double would,
               double limit) const {
    return {Reason::use_limit, static_cast<std::int64_t>(std::min(would, 9e18)),
            static_cast<std::int64_t>(limit),
            fmt::format("{}: {}", reason_name(subject.qos, kind, tres),
                        limit_words(subject.name, kind, tres, would, limit))};
  }

  std::optional<Verdict> of_job(const LimitSubject& s) {
    const UseLimits& l = *s.limits;
    for (const auto& [tres, most] : l.job)
      if (takes("job", s, false, tres) && asked(tres) > most)
        return over(s, LimitKind::job, tres, static_cast<double>(asked(tres)),
                    static_cast<double>(most));
    for (const auto& [tres, most] : l.node) {
      const auto it = demand_.node.find(tres);
      if (takes("node", s, false, tres) && it != demand_.node.end() && it->second > most)
        return over(s, LimitKind::node, tres, static_cast<double>(it->second),
                    static_cast<double>(most));
    }
    for (const auto& [tres, most] : l.job_minutes) {
      const double would = static_cast<double>(asked(tres)) * seconds() / 60;
      if (takes("job_minutes", s, false, tres) && would > static_cast<double>(most))
        return over(s, LimitKind::job_minutes, tres, would, static_cast<double>(most));
    }
    for (const auto& [tres, least] : l.least)
      if (takes("least", s, false, tres) && asked(tres) < least)
        return over(s, LimitKind::least, tres, static_cast<double>(asked(tres)),
                    static_cast<double>(least));
    if (l.wall && takes("wall", s, false)) {
      const auto most = static_cast<double>(l.wall->seconds());
      if (seconds() > most) return over(s, LimitKind::wall, "", seconds() / 60, most / 60);
    }
    return std::nullopt;
  }

  // The nodes that the job adds to those that other jobs of the sum use.
  [[nodiscard]] std::int64_t more_nodes(const UseSum& sum) const {
    std::int64_t more = asked("node");
    for (const std::string& name : demand_.required_nodes)
      if (const Node* node = state_.node_named(name);
          node != nullptr && sum.nodes.contains(node->id))
        --more;
    return std::max<std::int64_t>(0, more);
  }

  [[nodiscard]] double held_with(const UseSum& sum, const std::string& tres) const {
    if (tres == "node")
      return static_cast<double>(static_cast<std::int64_t>(sum.nodes.size()) + more_nodes(sum));
    const auto it = sum.held.find(tres);
    return static_cast<double>((it == sum.held.end() ? 0 : it->second.amount) + asked(tres));
  }

  // The minutes that running jobs may still use plus those of the job, times their usage factors.
  [[nodiscard]] double running_with(const UseSum& sum, const std::string& tres) const {
    const auto it = sum.held.find(tres);
    const double running = it == sum.held.end() ? 0 : running_seconds(it->second, now_);
    return (running + static_cast<double>(asked(tres)) * seconds() * factor()) / 60;
  }
  [[nodiscard]] double factor() const {
    const auto& limits = state_.tenancy.compiled.class_limits;
    return demand_.key.qos < limits.size()
               ? static_cast<double>(limits[demand_.key.qos].usage_factor) / kUnit
               : 1;
  }

  std::optional<Verdict> of_group(const LimitSubject& s, bool alone) {
    const UseLimits& l = *s.limits;
    if (l.group.empty() && l.group_minutes.empty() && l.group_running_minutes.empty() &&
        !l.group_jobs && !l.group_wall)
      return std::nullopt;
    const UseSum sum = alone ? UseSum{} : sum_of(state_, s);
    for (const auto& [tres, most] : l.group)
      if (const double would = held_with(sum, tres);
          takes("group", s, true, tres) && would > static_cast<double>(most))
        return over(s, LimitKind::group, tres, would, static_cast<double>(most));
    for (const auto& [tres, most] : l.group_minutes) {
      const double used = alone ? 0 : used_by(state_, s, tres, now_) / 60;
      const double would = used + running_with(sum, tres);
      if (takes("group_minutes", s, true, tres) && would > static_cast<double>(most) + kSlack)
        return over(s, LimitKind::group_minutes, tres, would, static_cast<double>(most));
    }
    for (const auto& [tres, most] : l.group_running_minutes) {
      const double would = running_with(sum, tres);
      if (takes("group_running_minutes", s, true, tres) &&
          would > static_cast<double>(most) + kSlack)
        return over(s, LimitKind::group_running_minutes, tres, would, static_cast<double>(most));
    }
    if (alone) return std::nullopt;
    if (l.group_jobs && takes("group_jobs", s, true) && sum.running >= *l.group_jobs)
      return over(s, LimitKind::group_jobs, "", static_cast<double>(sum.running), *l.group_jobs);
    if (l.group_wall && takes("group_wall", s, true)) {
      const double used = used_by(state_, s, "", now_);
      const auto most = static_cast<double>(l.group_wall->seconds());
      if (used >= most) return over(s, LimitKind::group_wall, "", used / 60, most / 60);
    }
    return std::nullopt;
  }

  [[nodiscard]] UseSum of_user(const LimitSubject& s) const {
    if (s.qos) return sum_of_user(state_, s.index, demand_.key.uid);
    return sum_if(state_, [&](const UseKey& key) {
      return key.uid == demand_.key.uid && of_association(state_, key, s);
    });
  }

  [[nodiscard]] UseSum of_account(const LimitSubject& s) const {
    std::optional<sched::ShareId> account = share_named(state_, std::nullopt, demand_.tenant);
    if (account) account = share_named(state_, account, demand_.account);
    if (!account) return {};
    return sum_if(state_, [&](const UseKey& key) {
      return in_qos(state_, key, s.index) && below(state_, key.share, *account);
    });
  }

  // Limits of one user, and of one account, within a QOS.
  std::optional<Verdict> of_one(const LimitSubject& s, bool alone) {
    const UseLimits& l = *s.limits;
    if (!l.user.empty() || l.user_jobs) {
      const UseSum sum = alone ? UseSum{} : of_user(s);
      for (const auto& [tres, most] : l.user)
        if (const double would = held_with(sum, tres);
            takes("user", s, false, tres) && would > static_cast<double>(most))
          return over(s, LimitKind::user, tres, would, static_cast<double>(most));
      if (!alone && l.user_jobs && takes("user_jobs", s, false) && sum.running >= *l.user_jobs)
        return over(s, LimitKind::user_jobs, "", static_cast<double>(sum.running), *l.user_jobs);
    }
    if (l.account.empty() && !l.account_jobs) return std::nullopt;
    const UseSum sum = alone ? UseSum{} : of_account(s);
    for (const auto& [tres, most] : l.account)
      if (const double would = held_with(sum, tres);
          takes("account", s, false, tres) && would > static_cast<double>(most))
        return over(s, LimitKind::account, tres, would, static_cast<double>(most));
    if (!alone && l.account_jobs && takes("account_jobs", s, false) &&
        sum.running >= *l.account_jobs)
      return over(s, LimitKind::account_jobs, "", static_cast<double>(sum.running),
                  *l.account_jobs);
    return std::nullopt;
  }

  std::optional<Verdict> jobs_of_user_in_associations() {
    for (const LimitSubject& s : subjects_) {
      if (s.qos || !s.limits->user_jobs || !takes("user_jobs", s, false)) continue;
      const std::uint64_t running = of_user(s).running;
      if (running >= *s.limits->user_jobs)
        return over(s, LimitKind::user_jobs, "", static_cast<double>(running),
                    *s.limits->user_jobs);
    }
    return std::nullopt;
  }

  static constexpr double kSlack = 1e-6;  // floating-point sums

  const State& state_;
  const UseDemand& demand_;
  const Instant now_;
  std::vector<LimitSubject> subjects_;
  std::set<std::string> taken_, by_qos_;
};

// True if nothing limits jobs of this class and tenant, which is the usual case.
bool unlimited(const State& state, const sched::ClassKey& key) {
  const CompiledTenancy& compiled = state.tenancy.compiled;
  if (compiled.use_limited.empty()) return true;
  const auto limited = [&](std::uint32_t qos) {
    return qos < compiled.use_limited.size() && compiled.use_limited[qos];
  };
  if (limited(key.priority_class)) return false;
  const Partition& queue = state.partition(key.partition);
  if (const auto qos = partition_qos(state, queue); qos && limited(*qos)) return false;
  const CompiledTenant* tenant = tenant_of(state, queue);
  return tenant == nullptr || tenant->associations.empty();
}

}  // namespace

std::optional<Verdict> verdict_of_limits(const State& state, const Job& job, Instant now) {
  if (unlimited(state, class_of(state, job))) return std::nullopt;
  const UseDemand demand = demand_of(state, job);
  return Judge(state, demand, now).judge(false);
}

Result<void> check_use_limits(const Context& ctx, const UseDemand& demand, std::uint64_t jobs) {
  Judge judge(ctx.state, demand, ctx.now);
  if (auto r = judge.submits(jobs); !r) return r;
  if (!judge.denies()) return {};
  const auto never = judge.judge(true);
  if (!never) return {};
  return fail(ErrorCode::limit_exceeded,
              fmt::format("{} (the QOS has DenyOnLimit)",
                          never->subject.substr(never->subject.find(": ") + 2)));
}

std::optional<Duration> longest_wall(const State& state, const UseDemand& demand) {
  return Judge(state, demand, Instant{}).wall();
}

}  // namespace gantry::core
