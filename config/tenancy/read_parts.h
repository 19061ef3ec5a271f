// Reads values that have a shape of their own: quota, projects, and their parts.
#pragma once

#include "config/tenancy/read.h"

namespace gantry::tenancy {

inline constexpr std::int64_t kMostShares = 1'000'000;
inline constexpr Thousandths kMostWeight = thousandths_of(Times{kMostShares});
// The greatest value of a priority class; Kubernetes has the same limit.
inline constexpr std::int64_t kMostValue = 1'000'000'000;

// Tells what is wrong and what is allowed; "" = it is a valid name.
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

// The index of the name that is given.
Result<std::size_t> read_choice(const Value& value, std::span<const std::string_view> names);
std::string joined(std::span<const std::string_view> names);  // "a, b, c"

template <class E>
auto names_of() {
  constexpr auto kRows = enum_names(E{});
  std::array<std::string_view, kRows.size()> out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = kRows[i].second;
  return out;
}

}  // namespace gantry::tenancy
