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

}  // namespace

std::string describe_tenancy_reason(const Verdict& v) {
  switch (v.reason) {
    case Reason::tenant_quota: return tenant_quota(v);
    case Reason::cohort_quota: return cohort_quota(v);
    case Reason::tenant_jobs:
      return fmt::format("{} jobs of its tenant run, the limit is {}", v.a, v.b);
    case Reason::reclaiming:
      return fmt::format("{} jobs leave for it; they are gone by {}", v.a, format_time({v.b}));
    case Reason::planned:
      if (v.subject.empty()) return "it would delay the planned start of a job of others";
      return fmt::format("it would delay the planned start of job {}", v.subject);
    case Reason::topology:
      return fmt::format("no {} has {} nodes free for it; the best has {}", v.subject, v.b, v.a);
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

}  // namespace gantry
