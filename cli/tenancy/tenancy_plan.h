// A change of tenancy documents as a person meets it: planned by the controller, shown, confirmed,
// and applied on the revision it was planned on.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/session.h"

namespace gantry::cli {

struct PlanOptions {  // of every command that changes documents
  std::string comment;
  bool dry_run = false;
  bool yes = false;
  bool json = false;
};

inline constexpr Option kPlanOptions[] = {
    {.name = "comment",
     .letter = 'm',
     .arg = Arg::required,
     .value = "TEXT",
     .help = "Why, for the history",
     .set = put<&PlanOptions::comment>},
    {.name = "dry-run",
     .letter = 'n',
     .help = "Show the plan and change nothing",
     .set = put<&PlanOptions::dry_run>},
    {.name = "json", .help = "The plan as JSON", .set = put<&PlanOptions::json>},
    {.name = "yes", .letter = 'y', .help = "Do not ask", .set = put<&PlanOptions::yes>},
};

struct Change {
  std::vector<tenancy::Document> documents;
  std::vector<proto::DocumentRef> removals;
  std::uint64_t revision = 0;      // that it was worked out on
  std::vector<std::string> notes;  // shown before the plan
};

// Shows the plan, asks, applies. nullopt: nothing was applied (a dry run, or the person said no).
Result<std::optional<proto::TenancyPlanned>> carry_out(const Invocation& in, Session& session,
                                                       Change change, const PlanOptions& options);
// The same, as a command's whole end.
Result<int> finish_change(const Invocation& in, Session& session, Change change,
                          const PlanOptions& options);

struct ShownPlan {
  std::string text;  // one block per document that changes, then the sum
  bool changes = false;
};
ShownPlan show_plan(const proto::TenancyPlanned& plan, bool colour);

// The documents that exist, with the cluster's nodes.
Result<proto::TenancyDocuments> present_documents(Session& session);

// "tenants", "Tenant" or "tenant" -> "Tenant".
Result<std::string> kind_named(std::string_view text);

// A line of "y" or "yes"; false when it is anything else. An error where nobody can answer.
Result<bool> confirm(std::string_view question);

}  // namespace gantry::cli
