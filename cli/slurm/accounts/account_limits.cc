#include "cli/slurm/accounts/account_limits.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/option.h"
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
    const auto bytes = parse_memory(value);
    if (!bytes) return tl::unexpected(bytes.error());
    out.amount = *bytes;
    return out;
  }
  const auto n = parse_integer(name, value, 0, kMostOf);
  if (!n) return tl::unexpected(n.error());
  out.amount = *n * unit;
  return out;
}

Result<std::vector<TresItem>> parse_limit_tres(const std::string& text) {
  std::vector<TresItem> out;
  for (const std::string& one : split_list(text)) {
    auto item = parse_tres_item(one);
    if (!item) return tl::unexpected(item.error());
    out.push_back(std::move(*item));
  }
  return out;
}

// Replaces the tenant's quota. The limit of a Slurm group becomes the tenant's own quota, and the
// tenant can borrow nothing beyond it.
Result<bool> set_limit_quota(tenancy::Tenant& tenant, const std::string& value) {
  const auto items = parse_limit_tres(value);
  if (!items) return tl::unexpected(items.error());
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
  const auto items = parse_limit_tres(value);
  if (!items) return tl::unexpected(items.error());
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
  const auto n = parse_integer("the limit", value, 0, kMostOf);
  if (!n) return tl::unexpected(n.error());
  to = static_cast<std::uint32_t>(*n);
  return true;
}

Result<bool> set_limit_wall(tenancy::Tenant& tenant, const std::string& value) {
  tenant.jobs.max_time.reset();
  if (value == "-1") return true;
  const auto limit = parse_duration(value);
  if (!limit) return tl::unexpected(limit.error());
  tenant.jobs.max_time = *limit;
  return true;
}

// A plain number of memory is of MB, as in Slurm; -1 takes the limit away.
std::string megabytes(const std::string& value) {
  const bool plain = value.find_first_not_of("0123456789") == std::string::npos;
  return plain ? value + "M" : value;
}

}  // namespace

Result<bool> set_limit(tenancy::Tenant& tenant, const std::string& key, const std::string& value) {
  // As in Slurm a key may be cut; `least` letters are enough.
  const auto is = [&](std::string_view name, std::size_t least) {
    return key.size() >= least && name.starts_with(key);
  };
  if (is("grpcpus", 6)) return set_limit_quota(tenant, "cpu=" + value);
  if (is("grpmemory", 4)) return set_limit_quota(tenant, "mem=" + megabytes(value));
  if (is("grptres", 7)) return set_limit_quota(tenant, value);
  if (is("maxcpusperjob", 7)) return set_limit_most(tenant.jobs.max_per_job, "cpu=" + value);
  if (is("maxtresperjob", 7)) return set_limit_most(tenant.jobs.max_per_job, value);
  if (is("maxtrespernode", 11)) return set_limit_most(tenant.jobs.max_per_node, value);
  if (is("grpjobs", 4)) return set_limit_count(tenant.counts.running_jobs, value);
  if (is("grpsubmitjobs", 4)) return set_limit_count(tenant.counts.queued_jobs, value);
  if (is("maxsubmitjobs", 4)) return set_limit_count(tenant.counts.queued_jobs_per_user, value);
  if (is("maxnodesperjob", 4)) return set_limit_count(tenant.jobs.max_nodes, value);
  if (is("maxwalldurationperjob", 4)) return set_limit_wall(tenant, value);
  return false;
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
  return out;
}

}  // namespace gantry::cli::slurm
