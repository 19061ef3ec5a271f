#include "ctld/core/tenancy/storage.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "config/values.h"
#include "ctld/core/tenancy/queues.h"

namespace gantry::core {
namespace {

const std::vector<DatasetUse>* wanted_by(const State& state, const Job& job) {
  if (state.datasets_wanted.empty()) return nullptr;
  const auto it = state.datasets_wanted.find(job.is_element() ? job.array : job.id);
  return it == state.datasets_wanted.end() ? nullptr : &it->second;
}

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The dataset, if this tenant may use it so; else null.
const tenancy::Dataset* granted(const State& state, const std::string& tenant,
                                const DatasetUse& use) {
  if (tenant.empty()) return nullptr;
  const auto it = state.tenancy.documents.find({tenancy::Dataset::kKind, use.name});
  if (it == state.tenancy.documents.end()) return nullptr;
  const auto& dataset = std::get<tenancy::Dataset>(it->second);
  if (dataset.tenant == tenant || among(dataset.write, tenant)) return &dataset;
  return !use.write && among(dataset.read, tenant) ? &dataset : nullptr;
}

std::string tenant_of_job(const State& state, const Job& job) {
  return tenant_name_of(state, state.partition(class_of(state, job).partition));
}

}  // namespace

Result<void> check_datasets(const State& state, const Partition& queue,
                            const std::vector<DatasetUse>& uses) {
  if (uses.empty()) return {};
  const std::string tenant = tenant_name_of(state, queue);
  if (tenant.empty())
    return fail(ErrorCode::invalid_argument,
                "datasets are granted to tenants, and this job belongs to none");
  if (uses.size() > kMostDatasetsOfJob)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("the job asks for {} datasets; at most {} are allowed", uses.size(),
                            kMostDatasetsOfJob));
  std::set<std::string> names;
  for (const DatasetUse& use : uses) {
    if (!config::is_word(use.name))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("\"{:.80}\" is no name of a dataset", use.name));
    if (!names.insert(use.name).second)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("the job names the dataset {} twice", use.name));
    if (granted(state, tenant, use) != nullptr) continue;
    const bool readable = granted(state, tenant, {use.name, false}) != nullptr;
    if (readable)
      return fail(
          ErrorCode::permission_denied,
          fmt::format("tenant {} may only read the dataset {}: leave out `:rw`", tenant, use.name));
    return fail(ErrorCode::not_found,
                fmt::format("there is no dataset {} that tenant {} may use", use.name, tenant));
  }
  return {};
}

std::optional<Verdict> verdict_of_datasets(const State& state, const Job& job) {
  const std::vector<DatasetUse>* wanted = wanted_by(state, job);
  if (wanted == nullptr) return std::nullopt;
  const std::string tenant = tenant_of_job(state, job);
  for (const DatasetUse& use : *wanted)
    if (granted(state, tenant, use) == nullptr)
      return Verdict{Reason::dataset_denied, 0, 0, use.name};
  return std::nullopt;
}

std::vector<StorageMount> storage_for(const State& state, const Job& job) {
  std::vector<StorageMount> out;
  const std::string tenant = tenant_of_job(state, job);
  const auto it = state.tenancy.documents.find({tenancy::Tenant::kKind, tenant});
  if (it == state.tenancy.documents.end()) return out;
  const std::string& own = std::get<tenancy::Tenant>(it->second).storage.path;
  if (!own.empty()) out.push_back({own, true, ""});
  if (const std::vector<DatasetUse>* wanted = wanted_by(state, job))
    for (const DatasetUse& use : *wanted)
      if (const tenancy::Dataset* dataset = granted(state, tenant, use))
        out.push_back({dataset->path, use.write, dataset->name});
  return out;
}

}  // namespace gantry::core
