// Checks of directories of tenants and of datasets. A directory inside another tenant's directory
// would belong to that tenant as well.
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
  return documents.problem(key,
                           fmt::format("\"{:.80}\" is no path of a directory; give an absolute one "
                                       "in its shortest form, as `/srv/data/fraud`",
                                       printable(path)));
}

bool within(const std::string& path, const std::string& top) {
  return path == top ||
         (path.size() > top.size() && path.starts_with(top) && path[top.size()] == '/');
}

bool has_only(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           more.find(c) != std::string_view::npos;
  });
}

Found check_objects(const References& documents, const Tenant& tenant) {
  const ObjectStore& own = tenant.storage.objects;
  if (own == ObjectStore()) return std::nullopt;
  const std::string_view rest =
      own.endpoint.starts_with("https://")  ? std::string_view(own.endpoint).substr(8)
      : own.endpoint.starts_with("http://") ? std::string_view(own.endpoint).substr(7)
                                            : std::string_view();
  if (rest.empty() || rest.size() > kMostPathBytes || !has_only(rest, ".-:[]"))
    return documents.problem("storage.endpoint",
                             "is not http://HOST[:PORT] or https://HOST[:PORT]");
  if (own.bucket.size() < 3 || own.bucket.size() > 63 || !has_only(own.bucket, ".-"))
    return documents.problem("storage.bucket",
                             "is no name of a bucket: 3 to 63 letters, digits, '.' and '-'");
  if (!has_only(own.region, "-") || own.region.size() > 64)
    return documents.problem("storage.region", "has letters, digits and '-' alone");
  const std::string& prefix = own.prefix;
  if (!prefix.empty() &&
      (prefix.back() != '/' || !plain_path("/" + prefix.substr(0, prefix.size() - 1))))
    return documents.problem(
        "storage.prefix",
        "is no beginning of keys: give it as `teams/fraud/`, without '//', '.' and '..' as parts");
  if (own.credentials.empty())
    return documents.problem("storage.credentials", "is missing: which secret has its keys?");
  for (const Document& document : documents.documents()) {
    const auto* other = std::get_if<Tenant>(&document);
    if (other == nullptr || other->name == tenant.name) continue;
    const ObjectStore& theirs = other->storage.objects;
    if (theirs.endpoint == own.endpoint && theirs.bucket == own.bucket &&
        (theirs.prefix.starts_with(prefix) || prefix.starts_with(theirs.prefix)))
      return documents.problem(
          "storage.prefix", fmt::format("the keys of tenant {} begin with the same", other->name));
  }
  return std::nullopt;
}

constexpr std::int64_t kMostStorage = std::int64_t{1} << 60;

Found check_room(const References& documents, const Tenant& tenant) {
  const TenantStorage& own = tenant.storage;
  if (!own.project && !own.size && !own.files) return std::nullopt;
  if (own.path.empty()) return documents.problem("storage.path", "is missing: of which directory?");
  if (!own.project || *own.project == 0)
    return documents.problem("storage.project",
                             "is missing: the number under which file systems count what lies in "
                             "storage.path, 1 or more");
  if (!own.size && !own.files)
    return documents.problem("storage.project", "has neither storage.size nor storage.files");
  for (const auto& [key, value] :
       {std::pair("storage.size", own.size), {"storage.files", own.files}})
    if (value && (*value < 1 || *value > kMostStorage))
      return documents.problem(key, "has to be 1 or more, and at most 1 Ei");
  for (const Document& document : documents.documents()) {
    const auto* other = std::get_if<Tenant>(&document);
    if (other != nullptr && other->name != tenant.name && other->storage.project == own.project)
      return documents.problem("storage.project",
                               fmt::format("{} is that of tenant {}", *own.project, other->name));
  }
  return std::nullopt;
}

}  // namespace

Found check_tenant_storage(const References& documents, const Tenant& tenant) {
  if (Found found = check_objects(documents, tenant)) return found;
  if (Found found = check_room(documents, tenant)) return found;
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
      return documents.problem(
          "path", fmt::format("lies in the directory {} of tenant {}, which is not its owner",
                              tenant->storage.path, tenant->name));
  }
  return std::nullopt;
}

}  // namespace gantry::tenancy
