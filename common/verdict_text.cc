#include "common/verdict_text.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/text.h"

namespace gantry {

std::string describe_tenancy_reason(const Verdict& v) {
  switch (v.reason) {
    case Reason::tenant_quota:
      return fmt::format("its tenant would use {} of {}, and may use {}", v.a, v.subject, v.b);
    case Reason::cohort_quota:
      return fmt::format("it would borrow {} of {}, and {} are left to borrow", v.a, v.subject,
                         std::max<std::int64_t>(v.b, 0));
    case Reason::tenant_jobs:
      return fmt::format("{} jobs of its tenant run, the limit is {}", v.a, v.b);
    case Reason::reclaiming:
      return fmt::format("{} jobs leave for it; they are gone by {}", v.a, format_time({v.b}));
    case Reason::planned:
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
    default: return {};
  }
}

}  // namespace gantry
