#include "cli/columns/known_names.h"

#include <fmt/core.h>
#include <pwd.h>

#include <algorithm>

namespace gantry::cli {
namespace {

std::vector<std::string> not_in(const std::vector<std::string>& names,
                                const std::set<std::string>& seen) {
  std::vector<std::string> out;
  for (const std::string& name : names)
    if (!seen.contains(name)) out.push_back(name);
  return out;
}

}  // namespace

void NamesSeen::add(const proto::JobRow& row) {
  users.insert(row.user);
  partitions.insert(row.partition);
  tenants.insert(row.tenant);
}

Result<void> check_users(const std::vector<std::string>& users, const std::set<std::string>& seen) {
  for (const std::string& name : not_in(users, seen))
    if (::getpwnam(name.c_str()) == nullptr)
      return fail(ErrorCode::not_found, fmt::format("there is no user \"{}\"", name));
  return {};
}

Result<void> check_tenants(Session& session, const std::vector<std::string>& tenants,
                           const std::set<std::string>& seen) {
  const std::vector<std::string> left = not_in(tenants, seen);
  if (left.empty()) return {};
  ASSIGN(partitions, session.call<proto::ListPartitionsReply>(proto::ListPartitions{}));
  for (const std::string& name : left)
    if (std::none_of(partitions->partitions.begin(), partitions->partitions.end(),
                     [&](const proto::PartitionRow& p) { return p.name == name; }))
      return fail(ErrorCode::not_found, fmt::format("there is no tenant \"{}\"", name));
  return {};
}

Result<void> check_names(Session& session, const proto::JobFilter& filter, const NamesSeen& seen) {
  TRY(check_users(filter.users, seen.users));
  TRY(check_tenants(session, filter.tenants, seen.tenants));
  const std::vector<std::string> left = not_in(filter.partitions, seen.partitions);
  if (left.empty()) return {};
  ASSIGN(partitions, session.call<proto::ListPartitionsReply>(proto::ListPartitions{}));
  for (const std::string& name : left) {
    std::string all;
    bool found = false;
    for (const proto::PartitionRow& p : partitions->partitions) {
      found = found || p.name == name;
      if (all.size() < 200) all += (all.empty() ? "" : ", ") + p.name;
    }
    if (!found)
      return fail(ErrorCode::not_found, fmt::format("there is no partition \"{}\"{}", name,
                                                    all.empty() ? "" : "; there is " + all));
  }
  return {};
}

}  // namespace gantry::cli
