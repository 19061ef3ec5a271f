#include "common/job/verdict_text.h"

#include <algorithm>
#include <cstdint>

#include <fmt/core.h>

#include "common/money/money.h"
#include "common/resources/resources.h"
#include "common/text/text.h"

namespace gantry {
namespace {

// The parts of a subject like "gpu of a100: red borrows 8 GPUs".
struct Cell {
  Resource resource = Resource::gpu;
  std::string flavor;  // " of a100" or ""
  std::string holders;
};
Cell cell_of(std::string_view subject) {
  Cell cell;
  const std::size_t colon = std::min(subject.find(": "), subject.size());
  cell.holders = subject.substr(colon);
  subject = subject.substr(0, colon);
  const std::size_t space = std::min(subject.find(' '), subject.size());
  cell.flavor = subject.substr(space);
  for (const ResourceRow& row : kResourceTable)
    if (row.name == subject.substr(0, space)) cell.resource = row.id;
  return cell;
}

std::string tenant_quota(const Verdict& v) {
  const Cell cell = cell_of(v.subject);
  return fmt::format("its tenant would use {}{}, and may use {}", amount_words(cell.resource, v.a),
                     cell.flavor, amount_words(cell.resource, std::max<std::int64_t>(v.b, 0)));
}

std::string cohort_quota(const Verdict& v) {
  const Cell cell = cell_of(v.subject);
  return fmt::format("it would borrow {}{}, and {} can be borrowed now{}",
                     amount_words(cell.resource, v.a), cell.flavor,
                     amount_words(cell.resource, std::max<std::int64_t>(v.b, 0)), cell.holders);
}

std::string resources(const Verdict& v) {
  if (!v.subject.empty())
    return fmt::format("its component {} needs {}; {} free for it beside the others", v.subject,
                       counted(v.b, "node"),
                       v.a == 0   ? "none is"
                       : v.a == 1 ? "1 is"
                                  : fmt::format("{} are", v.a));
  std::string out = fmt::format("it needs {}; ", counted(v.b, "node"));
  if (v.a <= 0) return out + "none is free";
  if (v.a < v.b)
    return out + fmt::format("{} free", v.a == 1 ? "only 1 is" : fmt::format("{} are", v.a));
  return out + fmt::format("{} room, but not for all of its tasks together",
                           v.a == 1 ? "1 has" : fmt::format("{} have", v.a));
}

// The reasons that concern tenants and plans; "" for others.
std::string tenancy_reason(const Verdict& v) {
  switch (v.reason) {
    case Reason::tenant_quota: return tenant_quota(v);
    case Reason::cohort_quota: return cohort_quota(v);
    case Reason::tenant_jobs:
      return fmt::format("{} of its tenant {}, the limit is {}", counted(v.a, "job"),
                         v.a == 1 ? "runs" : "run", v.b);
    case Reason::reclaiming:
      return fmt::format("{} for it, and {} gone by {}",
                         v.a == 1 ? "1 job leaves" : fmt::format("{} jobs leave", v.a),
                         v.a == 1 ? "is" : "are", format_time({v.b}));
    case Reason::planned:
      if (v.subject.empty()) return "it would delay the planned start of a job of others";
      return fmt::format("it would delay the planned start of job {}", v.subject);
    case Reason::topology:
      return fmt::format("no {} has {} free for it; the best has {}", v.subject,
                         counted(v.b, "node"), v.a);
    case Reason::anti_affinity:
      return fmt::format("jobs that it keeps away from are everywhere: {}", v.subject);
    case Reason::reservation:
      return fmt::format("reservation {} has not begun, or is full", v.subject);
    case Reason::maintenance:
      return fmt::format("it would run into {}, which begins at {}", v.subject, format_time({v.a}));
    case Reason::tainted: return fmt::format("it does not tolerate {}", v.subject);
    case Reason::no_tenant:
      return fmt::format(
          "it belongs to no tenant, and every job here is a tenant's: `gctl update job JOB "
          "account=TENANT` gives it to one");
    case Reason::account_not_allowed:
      return fmt::format("its account may not use partition {}", v.subject);
    case Reason::qos_not_allowed:
      return fmt::format("its priority class may not be used in partition {}", v.subject);
    case Reason::dataset_denied:
      return fmt::format(
          "its tenant may not use the dataset {} any more: it waits until its owner grants that "
          "again",
          v.subject);
    case Reason::secret_missing:
      if (v.subject.find('@') != std::string::npos)
        return fmt::format(
            "its tenant has no secret {} any more, and a version that was removed does not come "
            "back: cancel the job, and submit it with another one",
            v.subject);
      return fmt::format(
          "its tenant has no secret {} any more: the job starts when there is one again "
          "(`gtenant secret set`)",
          v.subject);
    case Reason::budget:
      if (v.a == INT64_MAX)
        return fmt::format("budget {} sets aside what a job may cost, and it has no time limit",
                           v.subject);
      return fmt::format("budget {} has {} left, and it may cost up to {}", v.subject,
                         format_money(Money{v.b}, 2), format_money(Money{v.a}, 2));
    case Reason::mig_repartition:
      return fmt::format(
          "GPU {} of {} is emptied for its slices{}", v.b, v.subject,
          v.a > 0 ? "; by the limits it is free at " + format_time({v.a}) : std::string());
    default: return {};
  }
}

// Limits, and requests of the job itself.
std::string own_reason(const Verdict& v, Instant now) {
  switch (v.reason) {
    case Reason::begin_time:
      return fmt::format("it begins at {}, in {}", format_time({v.a}),
                         format_duration(Instant{v.a} - now));
    case Reason::array_task_limit:
      return fmt::format("{} of its array {}, and its limit is {}", counted(v.a, "task"),
                         v.a == 1 ? "runs" : "run", v.b);
    case Reason::licenses:
      return fmt::format("it asks for {} of {}, of which {} free", counted(v.b, "licence"),
                         v.subject,
                         v.a == 0   ? "none is"
                         : v.a == 1 ? "1 is"
                                    : fmt::format("{} are", v.a));
    case Reason::partition_down:
      return fmt::format("partition {} is down: an operator lets no job start there", v.subject);
    case Reason::partition_node_limit:
      return fmt::format("it asks for {}; its partition allows {}", counted(v.a, "node"), v.b);
    case Reason::partition_time_limit:
      return fmt::format("it asks for {}; its partition allows {}", format_duration(minutes(v.a)),
                         format_duration(minutes(v.b)));
    case Reason::special_exit:
      return "it is held because its end was special" + (v.subject.empty() ? "" : ": " + v.subject);
    case Reason::use_limit: {
      const std::size_t colon = v.subject.find(": ");
      return colon == std::string::npos ? v.subject : v.subject.substr(colon + 2);
    }
    case Reason::deadline: return "it can no longer end before its deadline";
    case Reason::maintenance:
      if (v.a <= now.us) return "nodes that it needs are set aside for " + v.subject;
      return tenancy_reason(v);
    default: return tenancy_reason(v);
  }
}

}  // namespace

std::string counted(std::int64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string as_sentence(std::string clause) {
  if (clause.empty()) return clause;
  char& first = clause.front();
  if (first >= 'a' && first <= 'z') first = static_cast<char>(first - 'a' + 'A');
  if (clause.back() != '.') clause += '.';
  return clause;
}

std::string describe_verdict(const Verdict& v, Instant now) {
  switch (v.reason) {
    case Reason::none: return "the scheduler has not looked at it yet";
    case Reason::priority:
      if (v.a <= 0) return "other jobs stand in front of it";
      return fmt::format("{} in front of it",
                         v.a == 1 ? "1 job stands" : fmt::format("{} jobs stand", v.a));
    case Reason::resources: return resources(v);
    case Reason::dependency: return "it waits for " + v.subject;
    case Reason::never_satisfied:
      return fmt::format("its dependency {} can never be met; cancel it", v.subject);
    case Reason::held_user: return "its owner holds it; `gctl release` lets it go";
    case Reason::held_admin:
      return fmt::format("an administrator holds it{}{}; an operator can let it go (gctl release)",
                         v.subject.empty() ? "" : ": ", v.subject);
    case Reason::nodes_unavailable:
      return "nodes that it needs are not available" +
             (v.subject.empty() ? std::string() : ": " + v.subject);
    case Reason::requeued: return "its start failed; it waits until " + format_time({v.a});
    case Reason::bad_constraints:
      return v.subject.empty() ? "no node of its partition has what it asks for at present"
                               : "no node of its partition has at present: " + v.subject;
    case Reason::launch_failed_held:
      return fmt::format(
          "it is held because it was requeued too often: {}; `gctl release` tries "
          "it again",
          v.subject);
    default: return own_reason(v, now);
  }
}

}  // namespace gantry
