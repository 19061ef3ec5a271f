// The access report: who may do what, from which document, since when and by whom.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "common/proto/access.h"
#include "config/config.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/roles.h"
#include "ctld/core/context.h"
#include "ctld/core/handler.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/subject.h"

namespace gantry::core {
namespace {

using tenancy::Grant;
using tenancy::Tenant;
using tenancy::Tier;

constexpr std::size_t kMostRows = 2'000;  // rows of one reply

std::string role_text(const Grant& grant) {
  return grant.custom.empty() ? std::string(enum_name(grant.role)) : grant.custom;
}

// The grants in a document of a tenant or a tier; null for other documents.
const std::vector<Grant>* grants_in(const tenancy::Document& document) {
  if (const auto* tenant = std::get_if<Tenant>(&document)) return &tenant->grants;
  if (const auto* tier = std::get_if<Tier>(&document)) return &tier->defaults.grants;
  return nullptr;
}

bool has(const std::optional<tenancy::Document>& document, const Grant& grant) {
  const std::vector<Grant>* grants = document ? grants_in(*document) : nullptr;
  return grants != nullptr && std::find(grants->begin(), grants->end(), grant) != grants->end();
}

class Report {
 public:
  Report(const Context& ctx, const Identity& who)
      : ctx_(ctx), state_(ctx.state), who_(who), everything_(sees_all(state_, who)) {}

  std::vector<proto::AccessRow> rows(const std::vector<std::string>& tenants) {
    if (tenants.empty())
      for (const std::string& admin : ctx_.config.controller.admins) add_admin(admin);
    for (const auto& [name, tenant] : state_.tenancy.compiled.tenants)
      if (tenants.empty() || std::find(tenants.begin(), tenants.end(), name) != tenants.end())
        add_tenant(name, tenant);
    std::stable_sort(out_.begin(), out_.end(), [](const auto& a, const auto& b) {
      return std::tie(a.tenant, a.role, a.group, a.user) <
             std::tie(b.tenant, b.role, b.group, b.user);
    });
    return std::move(out_);
  }

 private:
  void add_admin(const std::string& user) {
    if (!everything_ && user != who_.owner.user) return;
    proto::AccessRow row;
    row.user = user;
    row.role = enum_name(tenancy::Role::admin);
    row.from = "gantry.yaml";
    out_.push_back(std::move(row));
  }

  void add_tenant(const std::string& name, const CompiledTenant& tenant) {
    const bool all = everything_ || has_right(state_, who_, name, TenantRight::edit_roles);
    for (const Grant& grant : tenant.effective.grants) {
      const bool wide = tenancy::of_cluster(grant.role);
      if (!(wide ? everything_ : all) && !is_to(grant, who_)) continue;
      out_.push_back(row_of(name, tenant, grant));
    }
  }

  proto::AccessRow row_of(const std::string& name, const CompiledTenant& tenant,
                          const Grant& grant) {
    const CompiledTenancy& compiled = state_.tenancy.compiled;
    proto::AccessRow row;
    row.tenant = tenancy::of_cluster(grant.role) ? "" : name;
    row.user = grant.user;
    row.group = grant.group;
    row.role = role_text(grant);
    row.until = grant.until;
    for (const RightRow& right : kRights)
      if (gives(compiled, grant, right.right)) row.rights.emplace_back(enum_name(right.right));
    if (const auto it = compiled.roles.find(grant.custom); it != compiled.roles.end()) {
      row.gpus = it->second.gpus.value_or(true);
      row.gpu_models = it->second.gpu_models;
    }
    find_origin(name, tenant.effective.tier, grant, row);
    return row;
  }

  // The document has the grant as it was written; this sets the base role, which no document has.
  void find_origin(const std::string& name, const std::string& tier, Grant grant,
                   proto::AccessRow& row) const {
    if (!grant.custom.empty()) grant.role = tenancy::Role::viewer;
    DocumentKey key{Tenant::kKind, name};
    const auto& documents = state_.tenancy.documents;
    const auto own = documents.find(key);
    if (own == documents.end() || !has(own->second, grant)) key = {Tier::kKind, tier};
    row.from =
        fmt::format("{} {}", key.first == Tenant::kKind ? Tenant::kName : Tier::kName, key.second);
    const auto& history = state_.tenancy.history;
    for (auto it = history.rbegin(); it != history.rend(); ++it)
      for (const DocumentChange& change : it->changes) {
        if (DocumentKey{change.kind, change.name} != key) continue;
        if (!has(change.after, grant) || has(change.before, grant)) continue;
        row.revision = it->revision;
        row.since = it->at;
        row.by = it->author;
        return;
      }
  }

  const Context& ctx_;
  const State& state_;
  const Identity& who_;
  bool everything_;
  std::vector<proto::AccessRow> out_;
};

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::ListAccess&& m) {
  for (const std::string& name : m.tenants) {
    const bool seen =
        sees_all(ctx.state, from.who) || has_right(ctx.state, from.who, name, TenantRight::see);
    if (!seen || !ctx.state.tenancy.has_tenant(name))
      return refuse(ctx, from, {ErrorCode::not_found, fmt::format("there is no tenant {}", name)});
  }
  std::vector<proto::AccessRow> rows = Report(ctx, from.who).rows(m.tenants);
  proto::AccessReply reply;
  const std::size_t first = std::min<std::size_t>(m.after, rows.size());
  const std::size_t end = std::min(first + kMostRows, rows.size());
  reply.rows.assign(std::make_move_iterator(rows.begin() + static_cast<std::ptrdiff_t>(first)),
                    std::make_move_iterator(rows.begin() + static_cast<std::ptrdiff_t>(end)));
  if (end < rows.size()) reply.next = end;
  ctx.reply(from, std::move(reply));
}

const Subject kAccessMessages{.name = "access", .handlers = kHandlers<proto::ListAccess>};

}  // namespace gantry::core
