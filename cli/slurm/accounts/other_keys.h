// The keys of Slurm's associations, as sacctmgr keeps them for accounts and users of other
// clusters. Only those clusters enforce the limits; here they are read, stored, inherited and
// listed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cli/slurm/accounts/sacctmgr_qos.h"
#include "common/result.h"

namespace gantry::cli::slurm {

// A setting as it was typed; the key is in lower case, and "qos+" and "qos-" have their sign.
struct RawSetting {
  std::string key, value;
};

// One association, account or user of another cluster: its values by key. "account", "parent" and
// "user" identify it; the others have the names of the table in other_keys.cc.
using OtherRow = std::map<std::string, std::string>;

// What a setting is about. Slurm tells changes of an account or user itself from changes of its
// associations.
enum class SettingSubject : std::uint8_t { itself, association };
// nullopt: Slurm has no such key.
std::optional<SettingSubject> subject_of(const RawSetting& setting);

// Sets a value of the row; -1 removes a limit. An error in Slurm's words if the key or the value is
// wrong.
Result<void> put_setting(OtherRow& row, const RawSetting& setting, const QosBook& qos);

// The values in force for the row's association: limits that it does not set come from `above`.
OtherRow inherited(const OtherRow& row, const OtherRow& above, const QosBook& qos);

// The amount of one resource in a list such as "cpu=2,mem=200M"; memory in MB; "" if it has none.
std::string tres_amount(std::string_view tres, std::string_view resource);

}  // namespace gantry::cli::slurm
