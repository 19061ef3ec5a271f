// Checks of directories of tenants and of datasets. A directory that lies in another tenant's would
// be that tenant's as well.
#include <algorithm>

#include <fmt/core.h>

#include "common/text/printable.h"
#include "common/text/split.h"
#include "config/tenancy/check_references.h"

namespace gantry::tenancy {
namespace {

constexpr std::size_t kMostPathBytes = 1024;

bool plain_path(const std::string& path) {
  if (path.size() < 2 || path.size() > kMostPathBytes || path[0] != '/' || path.back() == '/' ||
      path.find("//") != std::string::npos || !is_printable(path))
    return false;
  for (const std::string& part : split(path.substr(1), '/'))
    if (part == "." || part == "..") return false;
  return true;
}

Found check_path(const References& documents, const std::string& path, const std::string& key) {
  if (plain_path(path)) return std::nullopt;
  return documents.problem(
      key, fmt::format("\"{:.80}\" is no path of a directory; give an absolute one in its shortest "
                       "form, as `/srv/data/fraud`",
                       printable(path)));
}

bool within(const std::string& path, const std::string& top) {
  return path == top ||
         (path.size() > top.size() && path.starts_with(top) && path[top.size()] == '/');
}

}  // namespace

Found check_tenant_storage(const References& documents, const Tenant& tenant) {
  const std::string& path = tenant.storage.path;
  if (path.empty()) return std::nullopt;
  if (Found found = check_path(documents, path, "storage.path")) return found;
  for (const Document& document : documents.documents()) {
    const auto* other = std::get_if<Tenant>(&document);
    if (other == nullptr || other->name == tenant.name || other->storage.path.empty()) continue;
    if (within(path, other->storage.path) || within(other->storage.path, path))
      return documents.problem("storage.path",
                               fmt::format("{} and {} of tenant {} lie in one another", path,
                                           other->storage.path, other->name));
  }
  return std::nullopt;
}

Found check_dataset(const References& documents, const Dataset& dataset) {
  if (dataset.tenant.empty()) return documents.problem("tenant", "is missing: whose is it?");
  if (Found found = documents.refer(Tenant::kName, dataset.tenant, "tenant")) return found;
  if (dataset.path.empty()) return documents.problem("path", "is missing");
  if (Found found = check_path(documents, dataset.path, "path")) return found;
  for (const auto& [key, names] : {std::pair("read", &dataset.read), {"write", &dataset.write}})
    for (const std::string& name : *names)
      if (Found found = documents.refer(Tenant::kName, name, key)) return found;
  for (const Document& document : documents.documents()) {
    const auto* tenant = std::get_if<Tenant>(&document);
    if (tenant == nullptr || tenant->storage.path.empty()) continue;
    if (within(tenant->storage.path, dataset.path))
      return documents.problem("path", fmt::format("has the directory {} of tenant {} in it",
                                                   tenant->storage.path, tenant->name));
    if (tenant->name != dataset.tenant && within(dataset.path, tenant->storage.path))
      return documents.problem("path", fmt::format("lies in the directory {} of tenant {}, which "
                                                   "is not its owner",
                                                   tenant->storage.path, tenant->name));
  }
  return std::nullopt;
}

}  // namespace gantry::tenancy
