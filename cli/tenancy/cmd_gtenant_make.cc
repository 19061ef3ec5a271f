// gtenant create: sets up a tenant in one step.
#include <fmt/core.h>

#include <algorithm>

#include "cli/tenancy/cmd_gtenant.h"
#include "cli/tenancy/tenancy_plan.h"
#include "config/tenancy/amounts.h"
#include "config/tenancy/files/load.h"
#include "config/tenancy/write.h"

namespace gantry::cli::gtenant_make {
namespace {

// Limits of a new tenant if neither an option nor a tier gives one. They are enough for a team, and
// stop a script that submits without end.
constexpr std::uint32_t kQueuedJobs = 2000;
constexpr std::uint32_t kRunningJobs = 500;

struct MakeOptions : PlanOptions {
  tenancy::Tenant tenant;
  std::string gpus, cpus, memory, scratch, io, net, borrow, lend;
  std::vector<std::string> users, groups, admins, admin_groups, viewers;
};

constexpr std::string_view kNoValue = "is empty";

template <std::string MakeOptions::*Member>
Result<void> set_text(MakeOptions& options, std::string_view text) {
  if (text.empty()) return fail(ErrorCode::invalid_argument, std::string(kNoValue));
  options.*Member = text;
  return {};
}
template <std::string tenancy::Tenant::*Member>
Result<void> set_name(MakeOptions& options, std::string_view text) {
  options.tenant.*Member = text;
  return {};
}
Result<void> set_label(MakeOptions& options, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is not NAME=TEXT", text));
  options.tenant.labels[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  return {};
}
Result<void> set_cost_center(MakeOptions& options, std::string_view text) {
  if (text.empty()) return fail(ErrorCode::invalid_argument, std::string(kNoValue));
  options.tenant.labels["cost-center"] = text;
  return {};
}
Result<void> set_weight(MakeOptions& options, std::string_view text) {
  ASSIGN(weight, tenancy::parse_thousandths(text));
  if (*weight > thousandths_of(Times{1'000'000}))
    return fail(ErrorCode::invalid_argument, "is above 1000000");
  options.tenant.weight = weight->narrow<std::uint32_t>().value();
  return {};
}

constexpr Option kMakeOptions[] = {
    takes("admin", "USER,...", "Its administrators: they manage all of it but its quota",
          put<&MakeOptions::admins>),
    takes("admin-group", "GROUP,...", "Groups of its administrators",
          put<&MakeOptions::admin_groups>),
    takes("borrow", "GPUS",
          "GPUs beyond its own, while others leave them idle (default: as many as the cohort has)",
          call<set_text<&MakeOptions::borrow>>),
    takes("cohort", "COHORT", "Where it borrows and lends (default: the one cohort that there is)",
          call<set_name<&tenancy::Tenant::cohort>>),
    takes("cost-center", "TEXT", "Label cost-center, for reports", call<set_cost_center>),
    takes("cpus", "CORES",
          "Guaranteed cores, or a part of the cluster (10%); twice as many at most, by borrowing",
          call<set_text<&MakeOptions::cpus>>),
    takes("description", "TEXT", "For people", call<set_name<&tenancy::Tenant::description>>),
    takes("gpus", "GPUS", "Guaranteed GPUs, or a part of the cluster (10%)",
          call<set_text<&MakeOptions::gpus>>),
    takes("group", "GROUP,...", "Groups that may use it", put<&MakeOptions::groups>),
    takes("io", "RATE",
          "Guaranteed bytes per second of disks (2G), of which each of its jobs names a part "
          "(--io); twice as much at most, by borrowing",
          call<set_text<&MakeOptions::io>>),
    takes("label", "NAME=TEXT", "A label; may be given several times", call<set_label>),
    takes("lend", "GPUS", "GPUs of its own that others may use while they are idle (default: all)",
          call<set_text<&MakeOptions::lend>>),
    takes("memory", "AMOUNT",
          "Guaranteed memory (4Ti), or a part of the cluster; twice as much at most, by borrowing",
          call<set_text<&MakeOptions::memory>>),
    takes("net", "RATE",
          "Guaranteed bits per second of the nodes' links (10G), of which each of its jobs with a "
          "network names a part (--net); twice as much at most, by borrowing",
          call<set_text<&MakeOptions::net>>),
    takes("scratch", "AMOUNT", "Disk space on the nodes for its jobs",
          call<set_text<&MakeOptions::scratch>>),
    takes("tier", "TIER", "Gives it what no option says", call<set_name<&tenancy::Tenant::tier>>),
    takes("user", "USER,...", "Users that may use it", put<&MakeOptions::users>),
    takes("viewer", "USER,...", "Users that may look at its jobs", put<&MakeOptions::viewers>),
    takes("weight", "NUMBER", "Its part of what is borrowed, against the others (default 1)",
          call<set_weight>),
};
constexpr auto kCreateOptions = join(kMakeOptions, kPlanOptions);

Result<tenancy::Amount> amount_of(std::string_view option, Resource resource,
                                  const std::string& text) {
  tenancy::Amount out;
  out.place.file = "command line";
  out.path = fmt::format("--{}", option);
  const auto part = tenancy::parse_part(text);
  const auto wrong = [&](const Error& error) {
    return fail(ErrorCode::usage, fmt::format("--{}: {}", option, error.message));
  };
  if (!part) return wrong(part.error());
  out.part = *part;
  if (out.part) return out;
  const auto amount = tenancy::parse_amount(resource, text);
  if (!amount) return wrong(amount.error());
  out.value = *amount;
  return out;
}

// Adds a line of quota from options. An absolute amount is entered at once; an amount that is a
// part of the cluster is kept in `parts` and computed later.
Result<void> add_line(tenancy::ReadDocument& made, Resource resource, std::string_view option,
                      const MakeOptions& o, const std::string& nominal, bool doubled) {
  auto& quota = std::get<tenancy::Tenant>(made.document).quota;
  tenancy::PartialLine parts;
  parts.line = quota.size();
  ASSIGN(amount, amount_of(option, resource, nominal));
  parts.nominal = *amount;
  if (doubled) parts.borrow = *amount;
  if (resource == Resource::gpu)
    for (const auto& [text, name, slot] :
         {std::tuple(&o.borrow, "borrow", &parts.borrow), {&o.lend, "lend", &parts.lend}}) {
      if (text->empty()) continue;
      ASSIGN(limit, amount_of(name, resource, *text));
      *slot = *limit;
    }
  tenancy::QuotaLine& line = quota.emplace_back();
  line.resource = resource;
  line.nominal = parts.nominal->value;
  if (parts.borrow) line.borrow = parts.borrow->value;
  if (parts.lend) line.lend = parts.lend->value;
  const auto is_part = [](const std::optional<tenancy::Amount>& a) { return a && a->part; };
  if (is_part(parts.nominal) || is_part(parts.borrow) || is_part(parts.lend))
    made.parts.push_back(std::move(parts));
  return {};
}

void add_grants(tenancy::Tenant& tenant, const MakeOptions& o) {
  const auto add = [&](tenancy::Role role, const std::vector<std::string>& names, bool groups) {
    for (const std::string& name : names) {
      tenancy::Grant& grant = tenant.grants.emplace_back();
      grant.role = role;
      (groups ? grant.group : grant.user) = name;
    }
  };
  add(tenancy::Role::viewer, o.viewers, false);
  add(tenancy::Role::user, o.users, false);
  add(tenancy::Role::user, o.groups, true);
  add(tenancy::Role::tenant_admin, o.admins, false);
  add(tenancy::Role::tenant_admin, o.admin_groups, true);
}

// The cohort to use when the user names none: the only one that is not inside another.
std::string only_cohort(const std::vector<tenancy::Document>& documents) {
  std::string found;
  for (const tenancy::Document& document : documents) {
    const auto* cohort = std::get_if<tenancy::Cohort>(&document);
    if (cohort == nullptr || !cohort->parent.empty()) continue;
    if (!found.empty()) return "";
    found = cohort->name;
  }
  return found;
}

// Without any cohort, all tenants share one (controller.one_cohort).
bool has_cohorts(const std::vector<tenancy::Document>& documents) {
  return std::any_of(documents.begin(), documents.end(), [](const tenancy::Document& d) {
    return std::holds_alternative<tenancy::Cohort>(d);
  });
}

Result<tenancy::ReadDocument> make(const MakeOptions& o, const std::string& name,
                                   const proto::TenancyDocuments& present) {
  tenancy::ReadDocument made;
  made.place.file = "command line";
  tenancy::Tenant tenant = o.tenant;
  tenant.name = name;
  if (tenant.cohort.empty()) tenant.cohort = only_cohort(present.documents);
  if (tenant.cohort.empty() && !(o.borrow.empty() && o.lend.empty()) &&
      has_cohorts(present.documents))
    return fail(ErrorCode::usage,
                "--borrow and --lend need --cohort, because there are several to choose from");
  if (o.gpus.empty() && !(o.borrow.empty() && o.lend.empty()))
    return fail(ErrorCode::usage, "--borrow and --lend need --gpus: what is its own");
  add_grants(tenant, o);
  if (tenant.tier.empty()) {
    tenant.counts.queued_jobs = kQueuedJobs;
    tenant.counts.running_jobs = kRunningJobs;
  }
  const bool may_borrow = !tenant.cohort.empty();
  made.document = std::move(tenant);
  for (const auto& [resource, option, text, doubled] :
       {std::tuple(Resource::gpu, "gpus", &o.gpus, false),
        {Resource::cpu, "cpus", &o.cpus, may_borrow},
        {Resource::memory, "memory", &o.memory, may_borrow},
        {Resource::scratch, "scratch", &o.scratch, false},
        {Resource::io, "io", &o.io, may_borrow},
        {Resource::net, "net", &o.net, may_borrow}})
    if (!text->empty()) TRY(add_line(made, resource, option, o, *text, doubled));
  return made;
}

Result<int> run_create(const Invocation& in) {
  MakeOptions options;
  OPERANDS(operands, in, &options, 1, 1);
  const std::string& name = (**operands)[0];
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(present, present_documents(*session));
  for (const tenancy::Document& document : present->documents)
    if (std::holds_alternative<tenancy::Tenant>(document) && name_of(document) == name)
      return fail(ErrorCode::already_exists,
                  fmt::format("tenant {} exists already; change it with gtenant apply", name));
  ASSIGN(made, make(options, name, *present));
  tenancy::LoadOptions load;
  load.known = present->documents;
  load.nodes = &present->nodes;
  std::vector<tenancy::ReadDocument> documents;
  documents.push_back(std::move(*made));
  ASSIGN(loaded, tenancy::load_made(std::move(documents), load));
  Change change;
  change.revision = present->revision;
  change.documents = loaded->documents;
  change.notes = std::move(loaded->notes);
  if (options.comment.empty()) options.comment = fmt::format("create {}", name);
  ASSIGN(done, carry_out(in, *session, std::move(change), options));
  if (!*done || options.json) return 0;
  fmt::print("\n{}\nJobs go to it with `gbatch -p {}`; `gtenant quota {}` shows what it uses.\n",
             tenancy::to_text(loaded->documents), name, name);
  return 0;
}

}  // namespace

const Command kTenantCreate{
    {"create", "Make a tenant with its queue, quota and roles, in one step", "NAME"},
    {.description =
         "All of it is one document and one transaction; the plan is shown before, and what was "
         "made afterwards. Without a tier, 2000 of its jobs may be queued and 500 run.",
     .options = kCreateOptions,
     .examples =
         {{"gtenant create fraud --gpus 64 --cpus 512 --memory 4Ti --borrow 128 --lend 32 "
           "--cost-center "
           "cc-1042 --admin alice",
           "64 GPUs of its own, up to 192 while others leave them idle"},
          {"gtenant create interns --tier dev --group interns", "As its tier says"},
          {"gtenant create vision --gpus 10% --cpus 10% --memory 10% --group vision --dry-run",
           "A tenth of the cluster; only show it"}},
     .run = run_create}};

}  // namespace gantry::cli::gtenant_make
