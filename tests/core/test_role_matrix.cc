// Crosses every message of clients with every role, and what there is to see and to change of a
// tenant's job with every role. The result is tests/golden/roles.txt, where a change of anybody's
// rights shows in review.
#include <fmt/core.h>

#include <set>

#include "common/proto/access.h"
#include "common/proto/attempt.h"
#include "common/proto/cluster.h"
#include "common/proto/job_change.h"
#include "common/proto/job_query.h"
#include "common/proto/job_ref.h"
#include "common/proto/job_submit.h"
#include "common/proto/messages.h"
#include "common/proto/session.h"
#include "common/proto/tenancy.h"
#include "common/proto/tenancy_view.h"
#include "controller.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/front_door.h"
#include "ctld/core/request.h"
#include "tests/golden/golden.h"

namespace gantry::core::test::role_matrix {
namespace {

using tenancy::Role;

Identity named(std::string name, std::uint32_t uid) {
  return identity(std::move(name), uid);
}

struct Who {
  std::string name;  // of the column
  Identity identity;
};

// Nobody has a role in red but those whose column says so; blue's admin is of another tenant.
std::vector<Who> everybody() {
  std::vector<Who> out;
  std::uint32_t uid = 2000;
  for (const char* name : {"nobody", "owner", "viewer", "user", "reader", "helper", "tadmin",
                           "other", "auditor", "operator", "admin"})
    out.push_back({name, named(name, ++uid)});
  Who inside{"job", out[1].identity};
  inside.identity.inside = proto::AttemptKey{};
  out.push_back(inside);
  Who token{"token", out[6].identity};
  token.identity.token_ends = Instant{hours(500'001).us};
  out.push_back(token);
  return out;
}

Config config() {
  Config c = alike_nodes(2, 8, std::int64_t{16} << 30);
  c.controller.user_triggers = true;
  return c;
}

tenancy::Tenant red() {
  tenancy::Tenant t;
  t.name = "red";
  for (const auto& [role, user] :
       {std::pair(Role::user, "owner"), std::pair(Role::viewer, "viewer"),
        std::pair(Role::user, "user"), std::pair(Role::tenant_admin, "tadmin")})
    t.grants.push_back({role, user, {}});
  t.grants.push_back({Role::viewer, "reader", {}, std::nullopt, "reading"});
  t.grants.push_back({Role::viewer, "helper", {}, std::nullopt, "helping"});
  return t;
}

void make_documents(Controller& controller) {
  tenancy::CustomRole reading{"reading", "", "tenant-admin", {}, std::nullopt, {}};
  reading.without = {"change-jobs",   "edit-roles",   "edit-projects",
                     "edit-policies", "edit-secrets", "ask-increase"};
  tenancy::CustomRole helping{"helping", "", "tenant-admin", {"read-output", "edit-roles"}, {}, {}};
  tenancy::Tenant blue, ops;
  blue.name = "blue";
  blue.grants.push_back({Role::tenant_admin, "other", {}});
  ops.name = "ops";
  ops.grants.push_back({Role::auditor, "auditor", {}});
  ops.grants.push_back({Role::operator_role, "operator", {}});
  ops.grants.push_back({Role::admin, "admin", {}});
  proto::ApplyTenancy apply;
  apply.documents = {red(), blue, ops, reading, helping};
  const ReplyMessage reply = controller.ask(named("root", 0), apply);
  const auto* error = reply.get_if<proto::ErrorReply>();
  REQUIRE_MESSAGE(error == nullptr, error->message);
}

std::string head(const std::vector<Who>& all) {
  std::string line = fmt::format("{:<20}", "");
  for (const Who& who : all) line += fmt::format(" {:<8}", who.name);
  while (line.ends_with(' ')) line.pop_back();
  return line + "\n";
}

void put(std::string& out, std::string_view what, const std::vector<std::string>& cells) {
  std::string line = fmt::format("{:<20}", what);
  for (const std::string& cell : cells) line += fmt::format(" {:<8}", cell);
  while (line.ends_with(' ')) line.pop_back();
  out += line + "\n";
}

// Whether access/front_door.h accepts a message of this type.
template <class Message>
std::string at_door(const State& state, Identity who) {
  Result<void> in;
  if constexpr (ClientMessage::takes<Message>)
    in = let_in(state, who, ClientMessage(Message{}));
  else
    in = let_in(state, who, ShellMessage(Message{}));
  return in || in.error().code != ErrorCode::permission_denied ? "yes" : "-";
}

std::string doors(const State& state, const std::vector<Who>& all) {
  std::string out;
  const auto one = [&]<class Message>(std::in_place_type_t<Message>, const char* name) {
    if constexpr (ClientMessage::takes<Message> || ShellMessage::takes<Message>) {
      std::vector<std::string> cells;
      for (const Who& who : all) cells.push_back(at_door<Message>(state, who.identity));
      put(out, name, cells);
    }
  };
#define X(Type, ...) one(std::in_place_type<proto::Type>, #Type);
#include "common/proto/messages.def"
#undef X
  return out;
}

// The answer of a new controller, so that no answer depends on an earlier one.
template <class Ask>
std::string answer(const Identity& who, Ask ask) {
  Controller controller(config());
  make_documents(controller);
  proto::SubmitJob submit = batch_job("secret");
  submit.spec.partition = "red";
  REQUIRE(submitted(controller.ask(named("owner", 2002), std::move(submit))) == JobId(1));
  const ReplyMessage reply = controller.ask(who, ask());
  if (const auto* error = reply.get_if<proto::ErrorReply>()) {
    const auto code = static_cast<ErrorCode>(error->code);
    // Output of a job that waits is requested too early by those who may have it.
    if (code == ErrorCode::wrong_state) return "yes";
    return code == ErrorCode::permission_denied ? "refused" : "unknown";
  }
  if (const auto* done = reply.get_if<proto::JobsDone>())
    return done->changed > 0 ? "yes" : done->refused.empty() ? "unknown" : "refused";
  if (const auto* jobs = reply.get_if<proto::ListJobsReply>())
    return jobs->rows.empty() ? "-" : "yes";
  if (const auto* job = reply.get_if<proto::ShowJobReply>()) {
    if (job->jobs.empty()) return "-";
    return job->jobs[0].script.empty() ? "no text" : "yes";
  }
  if (const auto* documents = reply.get_if<proto::TenancyDocuments>()) {
    for (const auto& document : documents->documents)
      if (tenancy::name_of(document) == "red") return "yes";
    return "-";
  }
  if (const auto* rows = reply.get_if<proto::AccessReply>())
    return rows->rows.empty() ? "-" : std::to_string(rows->rows.size());
  if (const auto* usage = reply.get_if<proto::TenantUsageReply>()) {
    for (const auto& row : usage->rows)
      if (row.name == "red") return "yes";
    return "-";
  }
  return "yes";
}

template <class Ask>
void probe(std::string& out, const std::vector<Who>& all, std::string_view what, Ask ask) {
  std::vector<std::string> cells;
  for (const Who& who : all) cells.push_back(answer(who.identity, ask));
  put(out, what, cells);
}

proto::ApplyTenancy apply(tenancy::Document document) {
  proto::ApplyTenancy m;
  m.documents = {std::move(document)};
  return m;
}

std::string probes(const std::vector<Who>& all) {
  const std::vector<proto::JobRef> job{{JobId(1), {}}};
  std::string out;
  const auto row = [&](std::string_view what, auto ask) { probe(out, all, what, ask); };
  row("list the job", [] { return proto::ListJobs{}; });
  row("its script", [&] { return proto::ShowJob{job[0], true}; });
  row("its output", [&] { return proto::ReadLog{job[0], false, 0, 1000}; });
  row("cancel it", [&] {
    proto::CancelJobs m;
    m.filter.jobs = job;
    return m;
  });
  row("hold it", [&] {
    proto::HoldJobs m;
    m.jobs = job;
    return m;
  });
  row("rename it", [&] {
    proto::UpdateJob m;
    m.job = job[0];
    m.name = "other";
    return m;
  });
  row("submit", [] {
    proto::SubmitJob m = batch_job("mine");
    m.spec.partition = "red";
    return m;
  });
  row("the document", [] { return proto::GetTenancy{}; });
  row("its usage", [] { return proto::TenantUsage{}; });
  row("rows of access", [] { return proto::ListAccess{}; });
  row("make a project", [] {
    tenancy::Tenant t = red();
    t.projects.push_back({"train", 1, {}});
    return apply(t);
  });
  row("give a role", [] {
    tenancy::Tenant t = red();
    t.grants.push_back({Role::user, "somebody", {}});
    return apply(t);
  });
  row("make an operator", [] {
    tenancy::Tenant t = red();
    t.grants.push_back({Role::operator_role, "somebody", {}});
    return apply(t);
  });
  row("raise the quota", [] {
    tenancy::Tenant t = red();
    t.quota.push_back({"", Resource::cpu, 64'000, std::nullopt, std::nullopt});
    return apply(t);
  });
  row("make a policy", [] {
    tenancy::Policy p;
    p.name = "mine";
    p.tenant = "red";
    return apply(p);
  });
  row("a cluster's policy", [] {
    tenancy::Policy p;
    p.name = "all";
    return apply(p);
  });
  row("drain a node", [] {
    proto::UpdateNodes m;
    m.nodes = {"n1"};
    m.reason = "why";
    return m;
  });
  return out;
}

TEST_CASE("every message and every role: tests/golden/roles.txt") {
  Controller controller(config());
  make_documents(controller);
  const std::vector<Who> all = everybody();
  std::string text =
      "# Whom the front door lets in with which message; handlers decide the rest. The people:\n"
      "# nobody has no role, other is the admin of another tenant, reader and helper have roles "
      "of\n"
      "# the site's own (a tenant's admin who reads and changes nothing; who changes and reads\n"
      "# nothing), job is a program in a job of the owner, token is the tenant's admin by a "
      "token.\n";
  text += head(all) + doors(controller.state(), all);
  text +=
      "\n# A waiting job of owner in tenant red: what is answered to whom. \"unknown\" is the\n"
      "# answer that a thing gets which is not there.\n";
  text += head(all) + probes(all);
  gantry::test::check_golden("tests/golden/roles.txt", text);
}

}  // namespace
}  // namespace gantry::core::test::role_matrix
