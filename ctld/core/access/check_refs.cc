// Checks the references to jobs in a request, whatever message it is; see select.h.
#include <vector>

#include <fmt/core.h>

#include "common/proto/any/message_visit.h"
#include "ctld/core/access/select.h"

namespace gantry::core {
namespace {

struct RefCount {
  std::size_t refs = 0, ranges = 0;
  std::uint64_t steps = 0;
};

Result<void> count_ref(const proto::JobRef& ref, RefCount& n) {
  ++n.refs;
  n.ranges += ref.tasks.size();
  for (const IndexRange& r : ref.tasks) {
    if (r.step == 0 || r.first > r.last)
      return fail(ErrorCode::invalid_argument, "an index range is FIRST-LAST, with a step above 0");
    if (r.step > 1) n.steps += r.last - r.first + 1;
  }
  if (n.refs <= kMaxRefs && n.ranges <= kMaxRefRanges && n.steps <= kMaxRefSteps) return {};
  return fail(
      ErrorCode::limit_exceeded,
      fmt::format("a request names at most {} jobs and {} index ranges", kMaxRefs, kMaxRefRanges));
}

Result<void> count_refs(const std::vector<proto::JobRef>& refs, RefCount& n) {
  for (const proto::JobRef& ref : refs)
    if (auto r = count_ref(ref, n); !r) return r;
  return {};
}

template <class Message>
Result<void> check_message(const Message& m) {
  RefCount n;
  if constexpr (requires { m.filter.jobs; }) {
    return count_refs(m.filter.jobs, n);
  } else if constexpr (requires { count_refs(m.jobs, n); }) {
    return count_refs(m.jobs, n);
  } else if constexpr (requires { count_ref(m.job, n); }) {
    return count_ref(m.job, n);
  } else {
    return {};
  }
}

constexpr bool asked(const proto::MessageRow& row) {
  return asked_of_core(row) || asked_of_shell(row);
}

}  // namespace

Result<void> check_refs(const proto::AnyMessage& message) {
  return proto::visit_where<asked>([](const auto& m) { return check_message(m); }, message);
}

}  // namespace gantry::core
