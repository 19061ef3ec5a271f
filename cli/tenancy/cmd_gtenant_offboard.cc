// gtenant offboard: closes a tenant's queue, waits for (or cancels) its jobs, keeps an archive, and
// removes the tenant.
//
// Every step can be repeated: a command that was stopped is run again and continues.
#include <fmt/core.h>

#include <algorithm>
#include <ctime>

#include "cli/files.h"
#include "cli/tenancy/cmd_gtenant.h"
#include "cli/tenancy/tenancy_plan.h"
#include "common/job/verdict_text.h"
#include "common/text/text.h"
#include "config/tenancy/check.h"
#include "config/tenancy/write.h"

namespace gantry::cli {
namespace {

struct OffboardOptions : PlanOptions {
  std::string folder = ".";
  bool cancel = false;
  bool no_wait = false;
};

constexpr Option kOwnOptions[] = {
    {.name = "archive",
     .arg = Arg::required,
     .value = "DIR",
     .help = "Where its documents and its jobs' records are kept (default: this directory)",
     .set = put<&OffboardOptions::folder>},
    {.name = "cancel",
     .help = "Cancel its jobs instead of waiting for them",
     .set = put<&OffboardOptions::cancel>},
    {.name = "no-wait",
     .help = "Close its queue, and come back when its jobs have ended",
     .set = put<&OffboardOptions::no_wait>},
};
constexpr Option kCommonOptions[] = {
    {.name = "comment",
     .letter = 'm',
     .arg = Arg::required,
     .value = "TEXT",
     .help = "Why, for the history",
     .set = put<&PlanOptions::comment>},
    {.name = "yes", .letter = 'y', .help = "Do not ask", .set = put<&PlanOptions::yes>},
};
constexpr auto kOptions = join(kOwnOptions, kCommonOptions);

const tenancy::Tenant* find_tenant(const proto::TenancyDocuments& documents,
                                   const std::string& name) {
  for (const tenancy::Document& document : documents.documents)
    if (const auto* tenant = std::get_if<tenancy::Tenant>(&document);
        tenant != nullptr && tenant->name == name)
      return tenant;
  return nullptr;
}

Result<proto::TenantUse> use_of(Session& session, const std::string& name) {
  const auto reply = session.call<proto::TenantUsageReply>(proto::TenantUsage{{name}});
  if (!reply) return tl::unexpected(reply.error());
  for (const proto::TenantUse& row : reply->rows)
    if (row.name == name && !row.is_cohort) return row;
  return fail(ErrorCode::not_found, fmt::format("there is no tenant {}", name));
}

std::string jobs_text(const proto::TenantUse& use) {
  return fmt::format("{} queued and {} running", counted(use.queued, "job"), use.running);
}

// From now on no job is accepted; jobs that are already there stay.
Result<void> close_queue(Session& session, const std::string& name, const std::string& comment) {
  const auto present = session.call<proto::TenancyDocuments>(proto::GetTenancy{});
  if (!present) return tl::unexpected(present.error());
  const tenancy::Tenant* tenant = find_tenant(*present, name);
  if (tenant == nullptr) return fail(ErrorCode::not_found, "the tenant is gone");
  if (tenant->counts.queued_jobs == 0u) return {};
  proto::ApplyTenancy request;
  tenancy::Tenant closed = *tenant;
  closed.counts.queued_jobs = 0;
  request.documents.emplace_back(std::move(closed));
  request.comment = comment;
  request.base_revision = present->revision;
  const auto done = session.call<proto::TenancyPlanned>(request);
  if (!done) return tl::unexpected(done.error());
  return {};
}

Result<void> cancel_jobs(Session& session, const std::string& name) {
  proto::CancelJobs cancel;
  cancel.filter.tenants.push_back(name);
  const auto done = session.call<proto::JobsDone>(cancel);
  if (!done) return tl::unexpected(done.error());
  if (!done->refused.empty()) return tl::unexpected(to_error(done->refused.front().error));
  return {};
}

Result<void> wait_until_empty(Session& session, const std::string& name) {
  std::string said;
  while (true) {
    const auto use = use_of(session, name);
    if (!use) return tl::unexpected(use.error());
    if (use->queued == 0 && use->running == 0) return {};
    if (std::string text = jobs_text(*use); text != said) {
      fmt::print("waiting for {}\n", text);
      std::fflush(stdout);
      said = std::move(text);
    }
    const timespec pause{1, 0};
    ::nanosleep(&pause, nullptr);
  }
}

// Writes DIR/NAME-20260131T080500.yaml with the tenant's document, and a .jsonl of the same name
// with the records of its jobs.
Result<std::string> archive(Session& session, const OffboardOptions& options,
                            const std::string& name) {
  const auto present = session.call<proto::TenancyDocuments>(proto::GetTenancy{});
  if (!present) return tl::unexpected(present.error());
  const tenancy::Tenant* tenant = find_tenant(*present, name);
  if (tenant == nullptr) return fail(ErrorCode::not_found, "the tenant is gone");
  std::string stamp = format_time(system_now());
  std::erase_if(stamp, [](char c) { return c == '-' || c == ':'; });
  const std::string base = fmt::format("{}/{}-{}", options.folder, name, stamp);
  if (auto done = make_directories(options.folder, kPrivateFolder); !done)
    return tl::unexpected(done.error());
  std::vector<tenancy::Document> documents{*tenant};
  for (const tenancy::Document& document : present->documents)
    if (const auto* budget = std::get_if<tenancy::Budget>(&document);
        budget != nullptr && budget->tenant == name)
      documents.push_back(document);
  if (auto done = write_file(base + ".yaml", tenancy::to_text(documents), kPrivateFile); !done)
    return tl::unexpected(done.error());
  std::string records;
  proto::QueryHistory query;
  query.filter.tenants.push_back(name);
  query.duplicates = true;
  while (true) {
    const auto page = session.call<proto::HistoryReply>(query);
    if (!page) return tl::unexpected(page.error());
    for (const proto::HistoryRow& row : page->rows) records += codec::to_json(row) + "\n";
    if (!page->more) break;
    query.position = page->position;
  }
  if (auto done = write_file(base + ".jsonl", records, kPrivateFile); !done)
    return tl::unexpected(done.error());
  return base;
}

// The price book without everything in it and in its plans that names the tenant; nullopt if
// nothing does.
std::optional<tenancy::PriceBook> without(const tenancy::PriceBook& book, const std::string& name) {
  tenancy::PriceBook left = book;
  left.tenant_zones.erase(name);
  for (tenancy::PricePlan& plan : left.plans) {
    std::erase(plan.tenants, name);
    std::erase_if(plan.projects, [&](const std::string& p) { return p.starts_with(name + "/"); });
  }
  // The plan was for this tenant alone.
  std::erase_if(left.plans, [](const tenancy::PricePlan& plan) {
    return plan.classes.empty() && plan.projects.empty() && plan.tenants.empty() &&
           plan.tiers.empty() && plan.sandboxes.empty();
  });
  if (left == book) return std::nullopt;
  return left;
}

// The change that removes the tenant. Its budgets are removed too. Pools that were its own become
// shared, because nothing else can be meant.
Change removal_of(const proto::TenancyDocuments& present, const std::string& name) {
  Change change;
  change.revision = present.revision;
  change.removals.push_back({std::string(tenancy::Tenant::kName), name});
  for (const tenancy::Document& document : present.documents) {
    if (const auto* budget = std::get_if<tenancy::Budget>(&document);
        budget != nullptr && budget->tenant == name)
      change.removals.push_back({std::string(tenancy::Budget::kName), budget->name});
    if (const auto* book = std::get_if<tenancy::PriceBook>(&document))
      if (auto left = without(*book, name)) {
        change.notes.push_back(
            fmt::format("PriceBook {} speaks of it no more", tenancy::name_of(document)));
        change.documents.emplace_back(std::move(*left));
      }
    const auto* pool = std::get_if<tenancy::NodePool>(&document);
    if (pool == nullptr || pool->tenant != name) continue;
    tenancy::NodePool shared = *pool;
    shared.tenant.clear();
    change.documents.emplace_back(std::move(shared));
    change.notes.push_back(
        fmt::format("NodePool {} was its own, and is everybody's now", pool->name));
  }
  return change;
}

// Checks that the documents are valid without the tenant. This comes before all other steps, so
// that a tenant that cannot be removed is not closed either.
Result<void> check_removal(const proto::TenancyDocuments& present, const std::string& name) {
  const Change change = removal_of(present, name);
  return tenancy::check_documents(
      tenancy::with_changes(present.documents, change.documents, change.removals));
}

Result<int> run_offboard(const Invocation& in) {
  OffboardOptions options;
  const auto operands = in.parse(&options, 1, 1);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  const std::string& name = (**operands)[0];
  auto session = Session::open(in.program());
  if (!session) return tl::unexpected(session.error());
  const auto use = use_of(*session, name);
  if (!use) return tl::unexpected(use.error());
  const auto documents = session->call<proto::TenancyDocuments>(proto::GetTenancy{});
  if (!documents) return tl::unexpected(documents.error());
  if (auto sound = check_removal(*documents, name); !sound) return tl::unexpected(sound.error());
  if (options.comment.empty()) options.comment = fmt::format("offboard {}", name);
  fmt::print(
      "{} has {}.\nIts queue is closed, its jobs are {}, its document and the records of "
      "its jobs are kept in {}, and it is removed.\n",
      name, jobs_text(*use), options.cancel ? "cancelled" : "waited for", options.folder);
  if (!options.yes) {
    const auto yes = confirm("Go on?");
    if (!yes) return tl::unexpected(yes.error());
    if (!*yes) return 1;
  }
  if (auto done = close_queue(*session, name, options.comment); !done)
    return tl::unexpected(done.error());
  if (options.cancel)
    if (auto done = cancel_jobs(*session, name); !done) return tl::unexpected(done.error());
  const auto left = use_of(*session, name);
  if (!left) return tl::unexpected(left.error());
  if (options.no_wait && left->queued + left->running > 0) {
    fmt::print("its queue is closed; run this again when its jobs have ended ({})\n",
               jobs_text(*left));
    return 0;
  }
  if (auto done = wait_until_empty(*session, name); !done) return tl::unexpected(done.error());
  const auto base = archive(*session, options, name);
  if (!base) return tl::unexpected(base.error());
  fmt::print("{0}.yaml has its document, {0}.jsonl the records of its jobs\n", *base);
  const auto present = session->call<proto::TenancyDocuments>(proto::GetTenancy{});
  if (!present) return tl::unexpected(present.error());
  options.yes = true;  // the user has already confirmed
  return finish_change(in, *session, removal_of(*present, name), options);
}

constexpr Example kExamples[] = {
    {"gtenant offboard interns --archive /srv/archive", "Wait for its jobs, then remove it"},
    {"gtenant offboard interns --cancel --yes", "At once"},
};

}  // namespace

const Command kTenantOffboard{
    .name = "offboard",
    .summary = "Close a tenant, keep its records, remove it",
    .operands = "TENANT",
    .description =
        "No job is accepted any more from the first step on (limits.queued_jobs: 0). When it was "
        "stopped half-way, run it again. `gtenant apply -f` of the archived document brings the "
        "tenant back.",
    .options = kOptions,
    .examples = kExamples,
    .run = run_offboard};

}  // namespace gantry::cli
