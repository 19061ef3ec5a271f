// gtenant offboard: closes a tenant's queue, waits for (or cancels) its jobs, keeps an archive, and
// removes the tenant.
//
// Every step can be repeated: a command that was stopped is run again and continues.
#include <fmt/core.h>

#include <algorithm>
#include <ctime>

#include "cli/files.h"
#include "cli/tenancy/cmd_gtenant.h"
#include "cli/tenancy/offboard_removal.h"
#include "cli/tenancy/tenancy_plan.h"
#include "common/job/verdict_text.h"
#include "common/text/text.h"
#include "config/tenancy/check.h"
#include "config/tenancy/write.h"

namespace gantry::cli::gtenant_offboard {
namespace {

struct OffboardOptions : PlanOptions {
  std::string folder = ".";
  bool cancel = false;
  bool no_wait = false;
};

constexpr Option kOwnOptions[] = {
    takes("archive", "DIR",
          "Where its documents and its jobs' records are kept (default: this directory)",
          put<&OffboardOptions::folder>),
    flag("cancel", "Cancel its jobs instead of waiting for them", put<&OffboardOptions::cancel>),
    flag("no-wait", "Close its queue, and come back when its jobs have ended",
         put<&OffboardOptions::no_wait>),
};
constexpr Option kCommonOptions[] = {
    takes("comment", 'm', "TEXT", "Why, for the history", put<&PlanOptions::comment>),
    flag("yes", 'y', "Do not ask", put<&PlanOptions::yes>),
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
  ASSIGN(reply, session.call<proto::TenantUsageReply>(proto::TenantUsage{{name}}));
  for (const proto::TenantUse& row : reply->rows)
    if (row.name == name && !row.is_cohort) return row;
  return fail(ErrorCode::not_found, fmt::format("there is no tenant {}", name));
}

std::string jobs_text(const proto::TenantUse& use) {
  return fmt::format("{} queued and {} running", counted(use.queued, "job"), use.running);
}

// From now on no job is accepted; jobs that are already there stay.
Result<void> close_queue(Session& session, const std::string& name, const std::string& comment) {
  ASSIGN(present, session.call<proto::TenancyDocuments>(proto::GetTenancy{}));
  const tenancy::Tenant* tenant = find_tenant(*present, name);
  if (tenant == nullptr) return fail(ErrorCode::not_found, "the tenant is gone");
  if (tenant->counts.queued_jobs == 0u) return {};
  proto::ApplyTenancy request;
  tenancy::Tenant closed = *tenant;
  closed.counts.queued_jobs = 0;
  request.documents.emplace_back(std::move(closed));
  request.comment = comment;
  request.base_revision = present->revision;
  ASSIGN(done, session.call<proto::TenancyPlanned>(request));
  return {};
}

Result<void> cancel_jobs(Session& session, const std::string& name) {
  proto::CancelJobs cancel;
  cancel.filter.tenants.push_back(name);
  ASSIGN(done, session.call<proto::JobsDone>(cancel));
  if (!done->refused.empty()) return tl::unexpected(to_error(done->refused.front().error));
  return {};
}

Result<void> wait_until_empty(Session& session, const std::string& name) {
  std::string said;
  while (true) {
    ASSIGN(use, use_of(session, name));
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
  ASSIGN(present, session.call<proto::TenancyDocuments>(proto::GetTenancy{}));
  const tenancy::Tenant* tenant = find_tenant(*present, name);
  if (tenant == nullptr) return fail(ErrorCode::not_found, "the tenant is gone");
  std::string stamp = format_time(system_now());
  std::erase_if(stamp, [](char c) { return c == '-' || c == ':'; });
  const std::string base = fmt::format("{}/{}-{}", options.folder, name, stamp);
  TRY(make_directories(options.folder, kPrivateFolder));
  const std::vector<tenancy::Document> documents = owned_by(present->documents, name);
  TRY(write_file(base + ".yaml", tenancy::to_text(documents), kPrivateFile));
  std::string records;
  proto::QueryHistory query;
  query.filter.tenants.push_back(name);
  query.duplicates = true;
  while (true) {
    ASSIGN(page, session.call<proto::HistoryReply>(query));
    for (const proto::HistoryRow& row : page->rows) records += codec::to_json(row) + "\n";
    if (!page->more) break;
    query.position = page->position;
  }
  TRY(write_file(base + ".jsonl", records, kPrivateFile));
  return base;
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
  OPERANDS(operands, in, &options, 1, 1);
  const std::string& name = (**operands)[0];
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(use, use_of(*session, name));
  ASSIGN(documents, session->call<proto::TenancyDocuments>(proto::GetTenancy{}));
  TRY(check_removal(*documents, name));
  if (options.comment.empty()) options.comment = fmt::format("offboard {}", name);
  fmt::print(
      "{} has {}.\nIts queue is closed, its jobs are {}, its document and the records of "
      "its jobs are kept in {}, and it is removed.\n",
      name, jobs_text(*use), options.cancel ? "cancelled" : "waited for", options.folder);
  if (!options.yes) {
    ASSIGN(yes, confirm("Go on?"));
    if (!*yes) return 1;
  }
  TRY(close_queue(*session, name, options.comment));
  if (options.cancel) TRY(cancel_jobs(*session, name));
  ASSIGN(left, use_of(*session, name));
  if (options.no_wait && left->queued + left->running > 0) {
    fmt::print("its queue is closed; run this again when its jobs have ended ({})\n",
               jobs_text(*left));
    return 0;
  }
  TRY(wait_until_empty(*session, name));
  ASSIGN(base, archive(*session, options, name));
  fmt::print("{0}.yaml has its document, {0}.jsonl the records of its jobs\n", *base);
  ASSIGN(present, session->call<proto::TenancyDocuments>(proto::GetTenancy{}));
  options.yes = true;  // the user has already confirmed
  return finish_change(in, *session, removal_of(*present, name), options);
}

}  // namespace

const Command kTenantOffboard{
    {"offboard", "Close a tenant, keep its records, remove it", "TENANT"},
    {.description =
         "No job is accepted any more from the first step on (limits.queued_jobs: 0). When it was "
         "stopped half-way, run it again. `gtenant apply -f` of the archived document brings the "
         "tenant back.",
     .options = kOptions,
     .examples = {{"gtenant offboard interns --archive /srv/archive",
                   "Wait for its jobs, then remove it"},
                  {"gtenant offboard interns --cancel --yes", "At once"}},
     .run = run_offboard}};

}  // namespace gantry::cli::gtenant_offboard
