// Limits of use, of a QOS (priority class) or of an association (an account, or a user in one), in
// the words of Slurm: what its jobs may hold together, what one job may ask for, and what may be
// used up over time.
//
// A document keeps them as texts by Slurm's names ("GrpTRES": "cpu=8,node=2"), which
// read_use_limits() turns into numbers. TRES are counted in cores, MB of memory, nodes, units of
// billing, GPUs and pieces; names are those of Slurm: cpu, mem, node, billing, gres/NAME,
// gres/NAME:TYPE, license/NAME.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "common/time/time.h"

namespace gantry::tenancy {

using TresAmounts = std::map<std::string, std::int64_t>;
using LimitTexts = std::map<std::string, std::string>;

inline constexpr std::int64_t kUsageFactorUnit = 1'000'000;  // a factor of 1

struct UseLimits {
  TresAmounts group, group_minutes, group_running_minutes;
  std::optional<std::uint32_t> group_jobs, group_submits;
  std::optional<Duration> group_wall;
  TresAmounts job, node, job_minutes, least;  // `node`: on each node; `least`: of a job
  std::optional<Duration> wall;
  TresAmounts user, account;  // held by the jobs of one user, or of one account
  std::optional<std::uint32_t> user_jobs, user_submits, account_jobs, account_submits;
  // For an association: the QOS that its jobs may name, and the default one. Empty: those of the
  // account above.
  std::vector<std::string> qos;
  std::string default_qos;
  std::optional<std::uint32_t> priority;  // only for people; no weight uses it
  // The rest is of a QOS only.
  bool deny_on_limit = false;   // a job that could never start within the limits is refused
  bool over_partition = false;  // its limits override those of the partition's QOS
  bool no_decay = false;        // recorded use does not decay
  std::int64_t usage_factor = kUsageFactorUnit;
};

// The names of the texts.
enum class LimitForm : std::uint8_t { tres, count, wall, flags, factor, names };
struct LimitName {
  std::string_view name;
  LimitForm form = LimitForm::count;
  bool qos = true, association = true;  // whether a QOS, and an association, may have it
};
const LimitName* limit_named(std::string_view name);

Result<UseLimits> read_use_limits(const LimitTexts& texts);

// Reads "cpu=8,mem=1G,gres/gpu:a100=2"; an amount of -1 stays -1.
Result<TresAmounts> read_tres(std::string_view text);
// The amounts in Slurm's order of TRES, "cpu=8,mem=1G,node=2".
std::string format_tres(const TresAmounts& amounts);

// Sets one text as sacctmgr does: an amount of -1, or the value -1, removes the limit; TRES that
// are not named stay. For flags, the value is the whole list.
Result<void> set_limit_text(LimitTexts& texts, const LimitName& name, std::string_view value);

// "KEY=VALUE|KEY=VALUE"
LimitTexts read_limit_row(std::string_view row);
std::string format_limit_row(const LimitTexts& texts);

// The units of billing by weights like "CPU=1.0,Mem=0.25G,GRES/gpu=2.0"; "" = one for each core.
Result<std::map<std::string, double>> read_billing_weights(std::string_view text);
std::int64_t billing_of(const TresAmounts& held, const std::string& weights);

}  // namespace gantry::tenancy
