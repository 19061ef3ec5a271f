// Messages about limits of use: the limits and use of each QOS and association, and a reset of the
// use.
#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "common/proto/session.h"
#include "common/proto/use.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/roles.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/handler.h"
#include "ctld/core/limits/limits.h"
#include "ctld/core/limits/subject.h"
#include "ctld/core/request.h"
#include "ctld/core/resources/uses.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

std::vector<proto::TresUse> tres_of(const State& state, const UseSum& sum, const LimitSubject* of,
                                    Instant now) {
  std::set<std::string> names{"cpu", "mem", "node", "billing"};
  for (const auto& [name, held] : sum.held) names.insert(name);
  for (const std::string& record :
       of == nullptr ? std::vector<std::string>{} : records_of(state, *of))
    if (const auto it = state.used.find(record); it != state.used.end())
      for (const auto& [name, usage] : it->second.tres) names.insert(name);
  std::vector<proto::TresUse> out;
  for (const std::string& name : names) {
    proto::TresUse& one = out.emplace_back();
    one.name = name;
    const auto held = sum.held.find(name);
    if (held != sum.held.end()) {
      one.held = held->second.amount;
      one.running_minutes = running_seconds(held->second, now) / 60;
    }
    if (name == "node") one.held = static_cast<std::int64_t>(sum.nodes.size());
    if (of != nullptr) one.used_minutes = used_by(state, *of, name, now) / 60;
  }
  return out;
}

void fill(const Context& ctx, const LimitSubject& subject, proto::UseRow& row) {
  const UseSum sum = sum_of(ctx.state, subject);
  row.submitted = sum.submitted;
  row.running = sum.running;
  row.wall_minutes = used_by(ctx.state, subject, "", ctx.now) / 60;
  row.tres = tres_of(ctx.state, sum, &subject, ctx.now);
}

// The users and accounts that have jobs in the QOS.
void fill_parts(const Context& ctx, std::uint32_t qos, proto::UseRow& row) {
  std::map<Uid, UseSum> users;
  std::map<sched::ShareId, UseSum> accounts;
  for (const auto& [key, part] : ctx.state.uses) {
    if (key.qos != qos && partition_qos(ctx.state, ctx.state.partition(key.partition)) != qos)
      continue;
    add_use(part, users[key.uid]);
    if (key.share)
      if (const auto above = ctx.state.tenancy.shares[key.share->value()].parent)
        add_use(part, accounts[*above]);
  }
  const auto part_of = [&](std::string name, Uid uid, const UseSum& sum) {
    return proto::PartOfUse{std::move(name), uid, sum.submitted, sum.running,
                            tres_of(ctx.state, sum, nullptr, ctx.now)};
  };
  for (const auto& [uid, sum] : users)
    row.users.push_back(part_of(ctx.state.users.at(uid).name, uid, sum));
  for (const auto& [share, sum] : accounts)
    row.accounts.push_back(part_of(ctx.state.tenancy.shares[share.value()].name, Uid{}, sum));
}

class Rows {
 public:
  explicit Rows(const Context& ctx) : ctx_(ctx) {
    for (const auto& [uid, user] : ctx.state.users) uids_[user.name] = uid;
  }

  std::vector<proto::UseRow> all() {
    const auto& classes = ctx_.state.tenancy.compiled.classes;
    const auto& names = ctx_.state.tenancy.class_names;
    for (std::uint32_t i = 0; i < classes.size(); ++i) {
      if (classes[i].name != names[i]) continue;  // the class was removed
      proto::UseRow& row = next();
      row.qos = names[i];
      row.limits = classes[i].limits;
      row.priority = classes[i].value;
      LimitSubject subject;
      subject.qos = true;
      subject.index = i;
      fill(ctx_, subject, row);
      fill_parts(ctx_, i, row);
    }
    for (const auto& [name, tenant] : ctx_.state.tenancy.compiled.tenants) of_tenant(tenant);
    return std::move(rows_);
  }

 private:
  proto::UseRow& next() {
    proto::UseRow& row = rows_.emplace_back();
    row.id = static_cast<std::uint32_t>(rows_.size());
    return row;
  }

  void association(const CompiledTenant& tenant, const std::string& account,
                   const std::string& user, std::uint32_t shares) {
    const std::string& top = tenant.effective.name;
    proto::UseRow& row = next();
    row.account = account;
    row.user = user;
    const auto above = tenancy::projects_above(tenant.effective.projects, account);
    row.parent = !user.empty() ? "" : account == top ? "root" : above.empty() ? top : above.front();
    row.shares = shares;
    if (const auto it = uids_.find(user); it != uids_.end()) row.uid = it->second;
    const auto& texts = tenant.effective.associations;
    if (const auto it = texts.find(user.empty() ? account : account + "/" + user);
        it != texts.end())
      row.limits = tenancy::read_limit_row(it->second);
    LimitSubject subject;
    find_shares(ctx_.state, tenant.effective, account, user, subject);
    fill(ctx_, subject, row);
  }

  void of_tenant(const CompiledTenant& tenant) {
    const tenancy::Tenant& t = tenant.effective;
    association(tenant, t.name, "", t.weight.value_or(1000) / 1000);
    std::set<std::string> members;
    for (const tenancy::Grant& grant : t.grants)
      if (grant.role >= tenancy::Role::user && !grant.user.empty()) members.insert(grant.user);
    if (t.projects.empty())
      for (const std::string& user : members) association(tenant, t.name, user, 1);
    for (const tenancy::Project& project : t.projects) {
      if (project.name != t.name) association(tenant, project.name, "", project.shares);
      if (project.users.empty())
        for (const std::string& user : members) association(tenant, project.name, user, 1);
      for (const tenancy::UserShare& user : project.users)
        association(tenant, project.name, user.user, user.shares);
    }
  }

  const Context& ctx_;
  std::map<std::string, Uid> uids_;
  std::vector<proto::UseRow> rows_;
};

// Keeps the rows that a user may see; the sum over all jobs is only for operators.
void keep_own(const State& state, const Identity& who, std::vector<proto::UseRow>& rows) {
  const std::vector<std::string> tenants = tenants_of(state, who);
  const auto mine = [&](const proto::UseRow& row) {
    return row.user == who.owner.user ||
           std::find(tenants.begin(), tenants.end(), row.account) != tenants.end();
  };
  std::erase_if(rows, [&](const proto::UseRow& row) {
    return row.qos.empty() && (!mine(row) || (!row.user.empty() && row.user != who.owner.user));
  });
  for (proto::UseRow& row : rows) {
    if (row.qos.empty()) continue;
    row.accounts.clear();
    std::erase_if(row.users,
                  [&](const proto::PartOfUse& part) { return part.uid != who.owner.uid; });
    row.submitted = row.running = 0;
    row.wall_minutes = 0;
    row.tres.clear();
  }
}

bool within(const State& state, sched::ShareId share, sched::ShareId top) {
  for (std::optional<sched::ShareId> at = share; at; at = state.tenancy.shares[at->value()].parent)
    if (*at == top) return true;
  return false;
}

// The records of the shares of an account of that name, and of all below them.
Result<std::vector<std::string>> records_of(const State& state, const proto::ResetUse& m) {
  const auto& compiled = state.tenancy.compiled;
  const std::string* tenant = nullptr;
  for (const auto& [name, one] : compiled.tenants) {
    const auto& projects = one.effective.projects;
    if (name == m.account || std::any_of(projects.begin(), projects.end(),
                                         [&](const auto& p) { return p.name == m.account; }))
      if (tenant == nullptr || name == m.account) tenant = &name;
  }
  if (tenant == nullptr)
    return fail(ErrorCode::not_found, fmt::format("there is no account \"{}\"", m.account));
  std::vector<std::string> out;
  const auto top = share_of(state, *tenant, m.account, m.user);
  if (!top) return out;  // no job of the account has ever run
  for (const ShareNode& node : state.tenancy.shares)
    if (within(state, node.id, *top)) out.push_back(key_of_use(node.id));
  return out;
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::ListUse&&) {
  proto::UseReply reply{Rows(ctx).all()};
  if (!sees_all(ctx.state, from.who)) keep_own(ctx.state, from.who, reply.rows);
  ctx.reply(from, std::move(reply));
}

static void handle(Context& ctx, const ClientRequest& from, proto::ResetUse&& m) {
  if (m.qos.empty() == m.account.empty())
    return refuse(ctx, from,
                  {ErrorCode::invalid_argument, "name either a QOS or an account to reset"});
  std::vector<std::string> records;
  if (!m.qos.empty()) {
    const auto& names = ctx.state.tenancy.class_names;
    if (std::find(names.begin(), names.end(), m.qos) == names.end())
      return refuse(ctx, from,
                    {ErrorCode::not_found, fmt::format("there is no QOS \"{}\"", m.qos)});
    records.push_back(key_of_use(m.qos));
  } else {
    auto found = records_of(ctx.state, m);
    if (!found) return refuse(ctx, from, found.error());
    records = std::move(*found);
  }
  std::erase_if(records,
                [&](const std::string& record) { return !ctx.state.used.contains(record); });
  if (!records.empty()) {
    ctx.note(fmt::format("what {} has used up is forgotten, by {}",
                         m.qos.empty() ? "account " + m.account : "QOS " + m.qos,
                         from.who.owner.user));
    ctx.record(event::UseReset{std::move(records)});
  }
  ctx.reply(from, proto::Ok{});
}

const Subject kUseMessages{.name = "use", .handlers = kHandlers<proto::ListUse, proto::ResetUse>};

}  // namespace gantry::core
