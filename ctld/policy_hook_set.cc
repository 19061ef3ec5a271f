// The fields of a job that a policy hook may set.
#include <fmt/core.h>

#include "common/policy/facts.h"
#include "common/text/text.h"
#include "ctld/policy_hook.h"

namespace gantry::ctld {
namespace {

template <class Enum>
Result<Enum> value_of(const std::string& text) {
  std::string names;
  for (const auto& [value, name] : enum_names(Enum{})) {
    if (name == text) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  return fail(ErrorCode::malformed, fmt::format("\"{:.40}\" is none of {}", text, names));
}

}  // namespace

Result<void> set_by_hook(JobSpec& spec, const std::string& field, const std::string& value) {
  if (field.starts_with(policy::kLabelFact)) {
    spec.labels.insert_or_assign(field.substr(policy::kLabelFact.size()), value);
  } else if (field == "account") {
    spec.account = value;
  } else if (field == "comment") {
    spec.comment = value;
  } else if (field == "network_profile") {
    spec.network_profile = value;
  } else if (field == "partition") {
    spec.partition = value;
  } else if (field == "priority_class") {
    spec.priority_class = value;
  } else if (field == "wckey") {
    spec.wckey = value;
  } else if (field == "time") {
    ASSIGN(limit, parse_duration(value));
    spec.time_limit = *limit;
  } else if (field == "sandbox") {
    ASSIGN(level, value_of<Sandbox>(value));
    spec.sandbox = *level;
  } else if (field == "type") {
    ASSIGN(type, value_of<WorkType>(value));
    spec.work_type = *type;
  } else {
    return fail(ErrorCode::malformed,
                fmt::format("\"{:.40}\" cannot be set; account, comment, labels.KEY, "
                            "network_profile, partition, priority_class, sandbox, time, type and "
                            "wckey can",
                            field));
  }
  return {};
}

}  // namespace gantry::ctld
