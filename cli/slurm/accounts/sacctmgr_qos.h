// QOS as sacctmgr sees them: the priority classes of the documents and those that are built in.
//
// Of the keys of Slurm's QOS a class has Description, Priority, GraceTime, Preempt, PreemptMode and
// PreemptExemptTime; every other is refused by a sentence that says where the matter is settled.
// Whom a class takes from is not a list here: it takes from all lower ones that may be taken from,
// or from none. So Preempt must name exactly those, and is shown as them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/proto/tenancy.h"
#include "common/result.h"

namespace gantry::cli::slurm {

// A list of names in Slurm's words: "a,b" puts it in the place of what there is, "+a,-b" (or all
// of it behind += or -=) changes that. "" and "-1" leave nothing.
struct NameList {
  bool replaces = false;
  std::vector<std::string> added, removed;
  friend bool operator==(const NameList&, const NameList&) = default;
  // Sorted, each once.
  [[nodiscard]] std::vector<std::string> applied_to(const std::vector<std::string>& now) const;
};
// `sign`: '+' or '-' of += and -=, else '='.
Result<NameList> parse_name_list(const std::string& text, char sign);

struct QosSettings {
  std::optional<std::string> description;
  std::optional<std::int32_t> priority;
  std::optional<Duration> grace, exempt;
  std::optional<bool> preemptible;
  std::optional<tenancy::VictimMode> victim_mode;
  std::optional<NameList> preempt;
  friend bool operator==(const QosSettings&, const QosSettings&) = default;
};

// One word of `add` or behind `set`: "Priority=100", "Preempt+=low".
Result<void> read_qos_setting(const std::string& word, QosSettings& settings);

// What `add` prints below " Settings", a line each, in Slurm's columns.
std::string shown_settings(const QosSettings& settings);

class QosBook {
 public:
  explicit QosBook(const proto::TenancyDocuments& documents);

  [[nodiscard]] const std::map<std::string, tenancy::PriorityClass>& all() const { return now_; }
  // An error in Slurm's words if one of them is none.
  [[nodiscard]] Result<void> check_known(const std::vector<std::string>& names) const;
  // Those that jobs of the class may end; of one that preempts nobody, none.
  [[nodiscard]] std::vector<std::string> victims_of(const tenancy::PriorityClass& cls) const;
  // What jobs of the tenant may name, with what its tier gives it; sorted.
  [[nodiscard]] std::vector<std::string> allowed_to(const tenancy::Tenant& tenant) const;
  // Of its jobs that name none; its own, its tier's or the cluster's.
  [[nodiscard]] std::string default_of(const tenancy::Tenant& tenant) const;

  // The names that are new; the names that were there.
  Result<std::vector<std::string>> add(const std::vector<std::string>& names,
                                       const QosSettings& settings);
  Result<std::vector<std::string>> modify(const std::vector<std::string>& names,
                                          const QosSettings& settings);
  // Refused of what is built in, a default, or named by a tenant.
  Result<std::vector<std::string>> remove(const std::vector<std::string>& names,
                                          const std::string& cluster);

  // What differs from what was given.
  [[nodiscard]] proto::ApplyTenancy changes() const;

 private:
  Result<void> set_preempt(const std::vector<std::string>& names, const NameList& list);
  [[nodiscard]] Result<void> check_removal(const std::string& name,
                                           const std::string& cluster) const;

  std::uint64_t revision_ = 0;
  std::map<std::string, tenancy::PriorityClass> documents_, before_, now_;  // by name
  std::vector<tenancy::Tenant> tenants_;
  std::map<std::string, tenancy::Tenant> tiers_;  // what they give
};

}  // namespace gantry::cli::slurm
