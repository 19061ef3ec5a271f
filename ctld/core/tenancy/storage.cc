#include "ctld/core/tenancy/storage.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/proto/node_order.h"
#include "common/proto/secrets.h"
#include "common/text/printable.h"
#include "common/text/split.h"
#include "config/config.h"
#include "config/values.h"
#include "ctld/core/context.h"
#include "ctld/core/state/state.h"
#include "ctld/core/state/stored_spec.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

constexpr std::size_t kMostStageCopies = 64;  // files that a job may stage
constexpr std::size_t kMostKeyBytes = 1024;   // bytes of a key, as in S3

const std::vector<DatasetUse>* datasets_wanted_by(const State& state, const Job& job) {
  if (state.datasets_wanted.empty()) return nullptr;
  const auto it = state.datasets_wanted.find(job.is_element() ? job.array : job.id);
  return it == state.datasets_wanted.end() ? nullptr : &it->second;
}

bool tenant_among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The dataset, if this tenant may use it in this way; else null.
const tenancy::Dataset* granted(const State& state, const std::string& tenant,
                                const DatasetUse& use) {
  if (tenant.empty()) return nullptr;
  const auto it = state.tenancy.documents.find({tenancy::Dataset::kKind, use.name});
  if (it == state.tenancy.documents.end()) return nullptr;
  const auto& dataset = std::get<tenancy::Dataset>(it->second);
  if (dataset.tenant == tenant || tenant_among(dataset.write, tenant)) return &dataset;
  return !use.write && tenant_among(dataset.read, tenant) ? &dataset : nullptr;
}

const ObjectStore* store_of(const State& state, const std::string& tenant) {
  const auto it = state.tenancy.documents.find({tenancy::Tenant::kKind, tenant});
  if (it == state.tenancy.documents.end()) return nullptr;
  const ObjectStore& store = std::get<tenancy::Tenant>(it->second).storage.objects;
  return store.endpoint.empty() ? nullptr : &store;
}

// The key below the tenant's prefix. Its parts are plain names, so that no server and no program
// can understand it as leading out of the prefix.
Result<std::string> own_key(const ObjectStore& store, const std::string& tenant, std::string key) {
  const std::string top = fmt::format("s3://{}/{}", store.bucket, store.prefix);
  if (key.starts_with("s3://")) {
    if (!key.starts_with(top))
      return fail(ErrorCode::permission_denied,
                  fmt::format("{:.200} is outside of tenant {}'s part of the object store, {}",
                              printable(key), tenant, top));
    key.erase(0, top.size());
  }
  bool plain = !key.empty() && key.size() <= kMostKeyBytes && is_printable(key);
  const std::string names = plain && key.back() == '/' ? key.substr(0, key.size() - 1) : key;
  for (const std::string& part : split(names, '/'))
    plain = plain && !part.empty() && part != "." && part != "..";
  if (plain) return key;
  return fail(ErrorCode::invalid_argument,
              fmt::format("\"{:.200}\" is no key below {}: give its parts with '/' between them, "
                          "none of them empty, '.' or '..'",
                          printable(key), top));
}

}  // namespace

Result<void> check_staging(const State& state, const Partition& queue, JobSpec& spec) {
  if (spec.stage_in.empty() && spec.stage_out.empty()) return {};
  const std::string tenant = tenant_name_of(state, queue);
  const ObjectStore* store = store_of(state, tenant);
  if (store == nullptr)
    return fail(ErrorCode::unsupported,
                tenant.empty()
                    ? "staging needs a tenant with an object store, and this job belongs to none"
                    : fmt::format("tenant {} has no object store: its document has no "
                                  "storage.endpoint",
                                  tenant));
  if (state.secrets.find(tenant, store->credentials) == nullptr)
    return fail(ErrorCode::not_found,
                fmt::format("tenant {} has no secret {}, which is to have the keys to its object "
                            "store",
                            tenant, store->credentials));
  if (spec.kind != JobKind::batch)
    return fail(ErrorCode::unsupported, "only jobs with a script stage files");
  if (spec.stage_in.size() + spec.stage_out.size() > kMostStageCopies)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("the job stages {} times; at most {} are allowed",
                            spec.stage_in.size() + spec.stage_out.size(), kMostStageCopies));
  for (auto* list : {&spec.stage_in, &spec.stage_out})
    for (StageCopy& copy : *list) {
      ASSIGN(key, own_key(*store, tenant, copy.key));
      copy.key = std::move(*key);
      if (!copy.path.starts_with('/') || copy.path.size() > kMostKeyBytes ||
          !is_printable(copy.path))
        return fail(ErrorCode::invalid_argument,
                    fmt::format("\"{:.200}\" is no absolute path", printable(copy.path)));
    }
  return {};
}

Duration stage_in_time(const Context& ctx, const Job& job) {
  if (store_of(ctx.state, tenant_name_of(ctx.state, job)) == nullptr) return {};
  const auto stored = codec::decode<SpecExtras>(spec_bytes(ctx.state, job));
  if (!stored) return {};
  return ctx.config.noded.stage_timeout * static_cast<std::int64_t>(stored->spec.stage_in.size());
}

void add_object_store(const State& state, const Job& job, proto::Launch& launch, BlobRefs& blobs) {
  if (launch.spec.stage_in.empty() && launch.spec.stage_out.empty()) return;
  if (!launch.runs_batch) return;  // only the node with the script stages files
  const std::string tenant = tenant_name_of(state, job);
  const ObjectStore* store = store_of(state, tenant);
  if (store == nullptr) return;  // then the node refuses the job
  launch.objects = *store;
  SealedSecret& keys = blobs.sealed.emplace_back(
      SealedSecret{tenant, store->credentials, 0, std::string(proto::kStoreKeys), {}});
  if (const SecretState* secret = state.secrets.find(tenant, store->credentials)) {
    keys.version = secret->versions.back().number;
    keys.sealed = secret->versions.back().sealed;
  }
}

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
  const std::vector<DatasetUse>* wanted = datasets_wanted_by(state, job);
  if (wanted == nullptr) return std::nullopt;
  const std::string tenant = tenant_name_of(state, job);
  for (const DatasetUse& use : *wanted)
    if (granted(state, tenant, use) == nullptr)
      return Verdict{Reason::dataset_denied, 0, 0, use.name};
  return std::nullopt;
}

std::vector<StorageMount> storage_for(const State& state, const Job& job) {
  std::vector<StorageMount> out;
  const std::string tenant = tenant_name_of(state, job);
  const auto it = state.tenancy.documents.find({tenancy::Tenant::kKind, tenant});
  if (it == state.tenancy.documents.end()) return out;
  const tenancy::TenantStorage& own = std::get<tenancy::Tenant>(it->second).storage;
  if (!own.path.empty())
    out.push_back(
        {own.path, true, "", own.project.value_or(0), own.size.value_or(0), own.files.value_or(0)});
  if (const std::vector<DatasetUse>* wanted = datasets_wanted_by(state, job))
    for (const DatasetUse& use : *wanted)
      if (const tenancy::Dataset* dataset = granted(state, tenant, use))
        out.push_back({dataset->path, use.write, dataset->name, 0, 0, 0});
  return out;
}

}  // namespace gantry::core
