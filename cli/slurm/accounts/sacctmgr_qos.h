// QOS as sacctmgr sees them: the priority classes of the documents, and the built-in ones.
//
// A priority class has these keys of Slurm's QOS: Description, Priority, GraceTime, Preempt,
// PreemptMode, PreemptExemptTime, Flags, UsageFactor and the limits of use (account_limits.h). All
// other keys are refused with a sentence about where this is configured. A class preempts all lower
// classes that are preemptible, or those that a Preempt list names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/proto/tenancy.h"
#include "common/result.h"

namespace gantry::cli::slurm {

// A list of names in Slurm's words. "a,b" replaces the present list; "+a,-b", or a list after += or
// -=, changes it. "" and "-1" mean an empty list.
struct NameList {
  bool replaces = false;
  std::vector<std::string> added, removed;
  friend bool operator==(const NameList&, const NameList&) = default;
  // The list that results from `now`; sorted and without repetitions.
  [[nodiscard]] std::vector<std::string> applied_to(const std::vector<std::string>& now) const;
};
// `sign` is '+' or '-' for += and -=, otherwise '='.
Result<NameList> parse_name_list(const std::string& text, char sign);

struct QosSettings {
  std::optional<std::string> description;
  std::optional<std::int32_t> priority;
  std::optional<Duration> grace, exempt;
  std::optional<bool> preemptible;
  std::optional<tenancy::VictimMode> victim_mode;
  std::optional<NameList> preempt;
  // By the names of use_limits.h, in the order in which they were given.
  std::vector<std::pair<std::string, std::string>> limits;
  std::optional<NameList> flags;
  bool reset_usage = false;
  friend bool operator==(const QosSettings&, const QosSettings&) = default;
};

// Reads one word of `add`, or one word after `set`: "Priority=100", "Preempt+=low".
Result<void> read_qos_setting(const std::string& word, QosSettings& settings);

// The lines that `add` prints below " Settings", in Slurm's columns.
std::string shown_settings(const QosSettings& settings);

class QosBook {
 public:
  explicit QosBook(const proto::TenancyDocuments& documents);

  [[nodiscard]] const std::map<std::string, tenancy::PriorityClass>& all() const { return now_; }
  // Returns an error in Slurm's words if one of the names is no QOS.
  [[nodiscard]] Result<void> check_known(const std::vector<std::string>& names) const;
  // The classes whose jobs the jobs of this class may preempt; empty if there are none.
  [[nodiscard]] std::vector<std::string> victims_of(const tenancy::PriorityClass& cls) const;
  // The classes that jobs of the tenant may name, including those from its tier; sorted.
  [[nodiscard]] std::vector<std::string> allowed_to(const tenancy::Tenant& tenant) const;
  // The class of the tenant's jobs that name none: the tenant's own default, its tier's, or the
  // cluster's.
  [[nodiscard]] std::string default_of(const tenancy::Tenant& tenant) const;

  // add() returns the names that are new, modify() the names that existed.
  Result<std::vector<std::string>> add(const std::vector<std::string>& names,
                                       const QosSettings& settings);
  Result<std::vector<std::string>> modify(const std::vector<std::string>& names,
                                          const QosSettings& settings);
  // Refuses to remove a class that is built in, is a default, or is named by a tenant.
  Result<std::vector<std::string>> remove(const std::vector<std::string>& names,
                                          const std::string& cluster);

  // The difference between the classes now and the documents that the constructor got.
  [[nodiscard]] proto::ApplyTenancy changes() const;

 private:
  Result<void> set_preempt(const std::vector<std::string>& names, const NameList& list);
  [[nodiscard]] Result<void> check_removal(const std::string& name,
                                           const std::string& cluster) const;

  std::uint64_t revision_ = 0;
  std::map<std::string, tenancy::PriorityClass> documents_, before_, now_;  // by name
  std::vector<tenancy::Tenant> tenants_;
  std::map<std::string, tenancy::Tenant> tiers_;  // the tenants with their tiers' settings
};

}  // namespace gantry::cli::slurm
