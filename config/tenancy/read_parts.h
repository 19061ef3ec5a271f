// Reads values that have a shape of their own: quota, projects, and their parts.
#pragma once

#include "config/tenancy/read.h"

namespace gantry::tenancy {

inline constexpr std::int64_t kMostShares = 1'000'000;
inline constexpr Thousandths kMostWeight = thousandths_of(Times{kMostShares});
// The greatest value of a priority class; Kubernetes has the same limit.
inline constexpr std::int64_t kMostValue = 1'000'000'000;

// Says what is wrong and what is allowed; "" = it is a name.
std::string not_a_name(std::string_view text);

Result<std::string> read_word(const Value& value);
Result<std::vector<std::string>> read_words(const Value& value);  // each word once
Result<std::int64_t> read_number(const Value& value, std::int64_t low, std::int64_t high);
Result<std::int64_t> read_amount(const Value& value, Resource resource);

Result<void> read_labels(const Value& value, std::map<std::string, std::string>& out);
// Reads {gpu: 8, cpu: 96, memory: 768Gi}; as decimal factors if `charge` is set.
Result<void> read_amounts(const Value& value, bool charge, Resources& out);
// Reads {gpu: {nominal: 64, borrow: 128, lend: 32}, cpu: 200, flavors: {a100: {gpu: 64}}}.
Result<void> read_quota(const Value& value, std::vector<QuotaLine>& out, ReadDocument& into);
Result<void> read_projects(const Value& value, std::vector<Project>& out);
Result<void> read_classes(const Value& value, std::vector<TenantClass>& out);
Result<void> read_domains(const Value& value, std::vector<TopologyDomain>& out);

template <class Enum>
Result<void> read_choice(const Value& value, Enum& out) {
  ASSIGN(text, value.text());
  std::string all;
  for (const auto& [choice, name] : enum_names(Enum{})) {
    if (*text == name) {
      out = choice;
      return {};
    }
    all.append(all.empty() ? "" : ", ").append(name);
  }
  return value.wrong("\"" + *text + "\" is none of " + all);
}

}  // namespace gantry::tenancy
