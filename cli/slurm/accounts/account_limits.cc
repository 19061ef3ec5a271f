#include "cli/slurm/accounts/account_limits.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "cli/option.h"
#include "cli/slurm/format.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::int64_t kMostOf = 1'000'000'000;

struct TresItem {
  Resource resource = Resource::cpu;
  std::string flavor;  // "a100" in gres/gpu:a100
  std::optional<std::int64_t> amount;
};

// Reads one item: "gres/gpu:a100=8", "mem=500G", "cpu=-1".
Result<TresItem> parse_tres_item(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const std::string name = text.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  TresItem out;
  std::int64_t unit = 1;
  if (name == "cpu") {
    unit = kCoreUnit;
  } else if (name == "mem") {
    out.resource = Resource::memory;
  } else if (name == "gres/gpu" || name.starts_with("gres/gpu:")) {
    out.resource = Resource::gpu;
    unit = kGpuUnit;
    if (name.size() > 9) out.flavor = name.substr(9);
  } else {
    return fail(ErrorCode::unsupported,
                fmt::format("{}: quota is of cpu, mem, gres/gpu and gres/gpu:MODEL", text));
  }
  if (value == "-1") return out;
  if (out.resource == Resource::memory) {
    ASSIGN(bytes, parse_memory(value));
    out.amount = *bytes;
    return out;
  }
  ASSIGN(n, parse_integer(name, value, 0, kMostOf));
  out.amount = *n * unit;
  return out;
}

Result<std::vector<TresItem>> parse_limit_tres(const std::string& text) {
  std::vector<TresItem> out;
  for (const std::string& one : split_list(text)) {
    ASSIGN(item, parse_tres_item(one));
    out.push_back(std::move(*item));
  }
  return out;
}

// Replaces the tenant's quota. The limit of a Slurm group becomes the tenant's own quota, and the
// tenant can borrow nothing beyond it.
Result<bool> set_limit_quota(tenancy::Tenant& tenant, const std::string& value) {
  ASSIGN(items, parse_limit_tres(value));
  for (const TresItem& item : *items) {
    std::erase_if(tenant.quota, [&](const tenancy::QuotaLine& line) {
      return line.resource == item.resource && line.flavor == item.flavor;
    });
    if (!item.amount) continue;
    tenancy::QuotaLine line;
    line.flavor = item.flavor;
    line.resource = item.resource;
    line.nominal = *item.amount;
    line.borrow = 0;
    tenant.quota.push_back(std::move(line));
  }
  return true;
}

Result<bool> set_limit_most(std::optional<Resources>& limit, const std::string& value) {
  ASSIGN(items, parse_limit_tres(value));
  Resources most = limit.value_or(Resources{});
  for (const TresItem& item : *items) {
    if (!item.flavor.empty())
      return fail(ErrorCode::unsupported, "a job's maximum is of gres/gpu, whatever the model");
    most.row(item.resource) = item.amount.value_or(0);
  }
  limit = most == Resources{} ? std::nullopt : std::optional<Resources>(most);
  return true;
}

Result<bool> set_limit_count(std::optional<std::uint32_t>& to, const std::string& value) {
  if (value == "-1") {
    to.reset();
    return true;
  }
  ASSIGN(n, parse_integer("the limit", value, 0, kMostOf));
  to = static_cast<std::uint32_t>(*n);
  return true;
}

Result<bool> set_limit_wall(tenancy::Tenant& tenant, const std::string& value) {
  tenant.jobs.max_time.reset();
  if (value == "-1") return true;
  ASSIGN(limit, parse_duration(value));
  tenant.jobs.max_time = *limit;
  return true;
}

std::string name_of(const AccountOfLimit& of) {
  return of.user.empty() ? of.account : fmt::format("{}/{}", of.account, of.user);
}

bool is_quota(const std::string& tres) {
  return tres == "cpu" || tres == "mem" || tres == "gres/gpu" || tres.starts_with("gres/gpu:");
}

// Divides the TRES of a value into those that the tenant has as quota, and the others.
struct PartedTres {
  std::string quota, others;
};
PartedTres part_tres(const std::string& value) {
  PartedTres out;
  for (const std::string& item : split_list(value)) {
    std::string& to =
        is_quota(lower_case(item.substr(0, item.rfind('=')))) ? out.quota : out.others;
    to += (to.empty() ? "" : ",") + item;
  }
  return out;
}

// Sets the limits for which a tenant has its own members, and returns the rest of the value, which
// becomes a limit of use.
Result<std::string> set_in_tenant(tenancy::Tenant& tenant, const LimitKey& key,
                                  const std::string& value) {
  if (key.limit == "GrpJobs") tenant.counts.running_jobs.reset();
  if (key.limit == "GrpSubmitJobs") tenant.counts.queued_jobs.reset();
  if (key.limit == "MaxSubmitJobs") tenant.counts.queued_jobs_per_user.reset();
  if (key.limit == "MaxWallDurationPerJob") {
    TRY(set_limit_wall(tenant, value));
    return std::string();
  }
  PartedTres parts = part_tres(value);
  if (key.limit == "GrpTRES" && !parts.quota.empty())
    TRY(set_limit_quota(tenant, lower_case(parts.quota)));
  std::optional<Resources>* most = key.limit == "MaxTRESPerJob"    ? &tenant.jobs.max_per_job
                                   : key.limit == "MaxTRESPerNode" ? &tenant.jobs.max_per_node
                                                                   : nullptr;
  if (most != nullptr && !parts.quota.empty()) TRY(set_limit_most(*most, lower_case(parts.quota)));
  if (most == nullptr && key.limit != "GrpTRES") return value;
  if (key.limit == "MaxTRESPerJob" && parts.others.starts_with("node=")) {
    TRY(set_limit_count(tenant.jobs.max_nodes, parts.others.substr(5)));
    return std::string();
  }
  return parts.others;
}

}  // namespace

tenancy::LimitTexts limits_of_use(const tenancy::Tenant& tenant, const AccountOfLimit& of) {
  const auto it = tenant.associations.find(name_of(of));
  if (it == tenant.associations.end()) return {};
  return tenancy::read_limit_row(it->second);
}

void put_limits_of_use(tenancy::Tenant& tenant, const AccountOfLimit& of,
                       const tenancy::LimitTexts& texts) {
  if (texts.empty())
    tenant.associations.erase(name_of(of));
  else
    tenant.associations[name_of(of)] = tenancy::format_limit_row(texts);
}

void drop_limits_of_use(tenancy::Tenant& tenant, const AccountOfLimit& of) {
  std::erase_if(tenant.associations, [&](const auto& entry) {
    const std::size_t slash = entry.first.find('/');
    const std::string account = entry.first.substr(0, slash);
    const std::string user = slash == std::string::npos ? "" : entry.first.substr(slash + 1);
    return (of.account.empty() || of.account == account) && (of.user.empty() || of.user == user);
  });
}

Result<bool> set_limit(tenancy::Tenant& tenant, const AccountOfLimit& of, const std::string& key,
                       const std::string& value) {
  const LimitKey* limit = association_limit_key(key);
  if (limit == nullptr) return false;
  std::string rest = limit_value(*limit, value);
  if (of.user.empty() && of.account == tenant.name) {
    ASSIGN(left, set_in_tenant(tenant, *limit, rest));
    if (left->empty() && !rest.empty()) return true;
    rest = std::move(*left);
  }
  tenancy::LimitTexts texts = limits_of_use(tenant, of);
  const auto* name = tenancy::limit_named(limit->limit);
  if (auto set = tenancy::set_limit_text(texts, *name, rest); !set)
    return fail(ErrorCode::usage,
                fmt::format(" Bad value for {} ({}): {}", limit->name, value, set.error().message));
  put_limits_of_use(tenant, of, texts);
  return true;
}

std::string group_tres(const tenancy::Tenant& tenant) {
  std::string out;
  for (const tenancy::QuotaLine& line : tenant.quota) {
    const std::string gpu = "gres/gpu" + (line.flavor.empty() ? "" : ":" + line.flavor);
    if (line.resource != Resource::gpu && !line.flavor.empty()) continue;
    if (!out.empty()) out += ',';
    switch (line.resource) {
      case Resource::cpu: out += fmt::format("cpu={}", line.nominal / kCoreUnit); break;
      case Resource::memory: out += fmt::format("mem={}", format_memory(line.nominal)); break;
      case Resource::gpu: out += fmt::format("{}={}", gpu, line.nominal / kGpuUnit); break;
      case Resource::scratch: out += fmt::format("fs/disk={}", format_memory(line.nominal)); break;
      case Resource::io: out += "io=" + format_rate(line.nominal); break;
      case Resource::net: out += "net=" + format_rate(line.nominal); break;
    }
  }
  return out;
}

std::string most_tres(const std::optional<Resources>& most) {
  std::string out;
  const auto add = [&](std::string item) { out += (out.empty() ? "" : ",") + std::move(item); };
  if (!most) return out;
  if (const auto n = (*most)[Resource::cpu]; n != 0) add(fmt::format("cpu={}", n / kCoreUnit));
  if (const auto n = (*most)[Resource::memory]; n != 0) add("mem=" + format_memory(n));
  if (const auto n = (*most)[Resource::gpu]; n != 0) add(fmt::format("gres/gpu={}", n / kGpuUnit));
  if (const auto n = (*most)[Resource::io]; n != 0) add("io=" + format_rate(n));
  if (const auto n = (*most)[Resource::net]; n != 0) add("net=" + format_rate(n));
  return out;
}

namespace {

// Each table stands in the order in which Slurm looks for its keys. Those of kOfBoth come first.
constexpr LimitKey kOfBoth[] = {
    {"GrpCPUMins", 7, "GrpTRESMins", "cpu"},
    {"GrpCPURunMins", 7, "GrpTRESRunMins", "cpu"},
    {"GrpCPUs", 7, "GrpTRES", "cpu"},
    {"GrpJobs", 4, "GrpJobs", ""},
    {"GrpMemory", 4, "GrpTRES", "mem"},
    {"GrpNodes", 4, "GrpTRES", "node"},
    {"GrpSubmitJobs", 4, "GrpSubmitJobs", ""},
    {"GrpTRES", 7, "GrpTRES", ""},
    {"GrpTRESMins", 8, "GrpTRESMins", ""},
    {"GrpTRESRunMins", 8, "GrpTRESRunMins", ""},
    {"GrpWall", 4, "GrpWall", ""},
    {"MaxCPUMinsPerJob", 7, "MaxTRESMinsPerJob", "cpu"},
    {"MaxCPUsPerJob", 7, "MaxTRESPerJob", "cpu"},
};
constexpr LimitKey kOfQos[] = {
    {"MaxCPUsPerUser", 11, "MaxTRESPerUser", "cpu"},
    {"MaxCPUsPU", 9, "MaxTRESPerUser", "cpu"},
    {"MaxJobsPerAccount", 11, "MaxJobsPerAccount", ""},
    {"MaxJobsPA", 9, "MaxJobsPerAccount", ""},
    {"MaxJobsPerUser", 4, "MaxJobsPerUser", ""},
    {"MaxJobsPU", 4, "MaxJobsPerUser", ""},
    {"MaxNodesPerJob", 4, "MaxTRESPerJob", "node"},
    {"MaxNodesPerUser", 8, "MaxTRESPerUser", "node"},
    {"MaxNodesPU", 8, "MaxTRESPerUser", "node"},
    {"MaxSubmitJobsPerAccount", 17, "MaxSubmitJobsPerAccount", ""},
    {"MaxSubmitJobsPA", 15, "MaxSubmitJobsPerAccount", ""},
    {"MaxSubmitJobsPerUser", 4, "MaxSubmitJobsPerUser", ""},
    {"MaxSubmitJobsPU", 4, "MaxSubmitJobsPerUser", ""},
    {"MaxTRESPerAccount", 11, "MaxTRESPerAccount", ""},
    {"MaxTRESPA", 9, "MaxTRESPerAccount", ""},
    {"MaxTRESPerJob", 7, "MaxTRESPerJob", ""},
    {"MaxTRESPerNode", 11, "MaxTRESPerNode", ""},
    {"MaxTRESPerUser", 11, "MaxTRESPerUser", ""},
    {"MaxTRESPU", 9, "MaxTRESPerUser", ""},
    {"MaxTRESMinsPerJob", 8, "MaxTRESMinsPerJob", ""},
    {"MaxWallDurationPerJob", 4, "MaxWallDurationPerJob", ""},
    {"MinCPUsPerJob", 7, "MinTRESPerJob", "cpu"},
    {"MinTRESPerJob", 7, "MinTRESPerJob", ""},
};
constexpr LimitKey kOfAssociation[] = {
    {"MaxJobs", 4, "MaxJobs", ""},
    {"MaxNodesPerJob", 4, "MaxTRESPerJob", "node"},
    {"MaxSubmitJobs", 4, "MaxSubmitJobs", ""},
    {"MaxTRESPerJob", 7, "MaxTRESPerJob", ""},
    {"MaxTRESPerNode", 11, "MaxTRESPerNode", ""},
    {"MaxTRESMinsPerJob", 8, "MaxTRESMinsPerJob", ""},
    {"MaxWallDurationPerJob", 4, "MaxWallDurationPerJob", ""},
    {"Priority", 3, "Priority", ""},
};

const LimitKey* find_limit_key(std::span<const LimitKey> others, std::string_view word) {
  for (const std::span<const LimitKey> table : {std::span<const LimitKey>(kOfBoth), others})
    for (const LimitKey& key : table)
      if (word.size() >= key.least && lower_case(key.name).starts_with(word)) return &key;
  return nullptr;
}

}  // namespace

const LimitKey* qos_limit_key(std::string_view word) {
  return find_limit_key(kOfQos, word);
}

const LimitKey* association_limit_key(std::string_view word) {
  return find_limit_key(kOfAssociation, word);
}

std::string limit_value(const LimitKey& key, std::string_view value) {
  return key.tres.empty() ? std::string(value) : fmt::format("{}={}", key.tres, value);
}

Result<void> put_limit(tenancy::LimitTexts& texts, const LimitKey& key, std::string_view value) {
  const auto* name = tenancy::limit_named(key.limit);
  if (auto done = tenancy::set_limit_text(texts, *name, limit_value(key, value)); !done)
    return fail(ErrorCode::usage,
                fmt::format(" Bad value for {} ({}): {}", key.name, value, done.error().message));
  return {};
}

}  // namespace gantry::cli::slurm
