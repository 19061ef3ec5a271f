// A change of tenancy documents as the user meets it: the controller plans it, the command shows
// the plan, the user confirms, and the change is applied to the revision on which it was planned.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/session.h"

namespace gantry::cli {

struct PlanOptions {  // options of every command that changes documents
  std::string comment;
  bool dry_run = false;
  bool yes = false;
  bool json = false;
};

inline constexpr Option kPlanOptions[] = {
    takes("comment", 'm', "TEXT", "Why, for the history", put<&PlanOptions::comment>),
    flag("dry-run", 'n', "Show the plan and change nothing", put<&PlanOptions::dry_run>),
    flag("json", "The plan as JSON", put<&PlanOptions::json>),
    flag("yes", 'y', "Do not ask", put<&PlanOptions::yes>),
};

inline constexpr int kSomethingDiffers = 3;  // exit status of diff

struct Change {
  std::vector<tenancy::Document> documents;
  std::vector<proto::DocumentRef> removals;
  std::uint64_t revision = 0;      // the revision from which it was made
  std::vector<std::string> notes;  // shown before the plan
};

// Shows the plan, asks the user, and applies the change. Returns nullopt if nothing was applied (a
// dry run, or the user answered no).
Result<std::optional<proto::TenancyPlanned>> carry_out(const Invocation& in, Session& session,
                                                       Change change, const PlanOptions& options);
// Does carry_out() as the last step of a command, and returns the command's exit status.
Result<int> finish_change(const Invocation& in, Session& session, Change change,
                          const PlanOptions& options);

struct ShownPlan {
  std::string text;  // one block per document that changes, then the totals
  bool changes = false;
};
ShownPlan show_plan(const proto::TenancyPlanned& plan, bool colour);

// Shows what the change would do, and changes nothing. Returns the command's exit status.
Result<int> show_difference(Session& session, Change change, const PlanOptions& options);

// A command without operands that makes a change out of `Options`, which are PlanOptions and more:
// it applies the change, or with `only_show` shows what it would do.
template <class Options, Result<Change> (*make)(Session&, const Options&), bool only_show>
Result<int> run_change(const Invocation& in) {
  Options options;
  ASSIGN(operands, in.parse(&options, 0, 0));
  if (!*operands) return 0;
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(change, make(*session, options));
  if (only_show) return show_difference(*session, std::move(*change), options);
  return finish_change(in, *session, std::move(*change), options);
}

// The existing documents, and the names of the cluster's nodes.
Result<proto::TenancyDocuments> present_documents(Session& session);

// The kind of a document from a user's word: "tenants", "Tenant" or "tenant" give "Tenant".
Result<std::string> kind_named(std::string_view text);

// Asks a question and reads a line: true for "y" or "yes", false for anything else. It is an error
// if nobody can answer.
Result<bool> confirm(std::string_view question);

Result<std::uint64_t> parse_revision(std::string_view text);

}  // namespace gantry::cli
