// gtenant apply, diff, check, delete, rollback: the commands that change documents.
#include <fmt/core.h>

#include <algorithm>

#include "cli/table.h"
#include "cli/tenancy/cmd_gtenant.h"
#include "cli/tenancy/tenancy_plan.h"
#include "config/tenancy/capacity.h"
#include "config/tenancy/files/load.h"
#include "config/tenancy/write.h"
#include "config/yaml_tree.h"

namespace gantry::cli::gtenant_apply {
namespace {

struct FileOptions : PlanOptions {
  std::vector<std::string> files;
  std::string user_domain;
  bool prune = false;
  bool offline = false;
};

Result<void> add_file(FileOptions& options, std::string_view path) {
  if (path.empty()) return fail(ErrorCode::usage, "a file's name is empty");
  options.files.emplace_back(path);
  return {};
}

constexpr Option kFileOptions[] = {
    takes("filename", 'f', "FILE|DIR",
          "Documents: ours, or manifests of Kubernetes and Kueue; - is standard input; may be "
          "given several times",
          call<add_file>),
    takes("user-domain", "DOMAIN", "Users of manifests are named USER@DOMAIN and log in as USER",
          put<&FileOptions::user_domain>),
};
constexpr Option kPruneOption[] = {
    flag("prune", "Remove every document that is in none of the files", put<&FileOptions::prune>),
};
constexpr Option kOfflineOption[] = {
    flag("offline", "Ask no controller: the files alone must be complete",
         put<&FileOptions::offline>),
};

std::string read_standard_input(const std::vector<std::string>& files) {
  std::string text;
  if (std::find(files.begin(), files.end(), "-") == files.end()) return text;
  std::array<char, 65536> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), stdin)) {
    text.append(buffer.data(), n);
    if (text.size() > config::kMaxDocumentsBytes) break;  // the parser then refuses it
  }
  return text;
}

Result<tenancy::Loaded> load(const FileOptions& options, const proto::TenancyDocuments* present) {
  if (options.files.empty())
    return fail(ErrorCode::usage, "no file is given; use -f FILE or -f DIR");
  tenancy::LoadOptions load;
  load.user_domain = options.user_domain;
  load.only_these = options.prune;
  if (present != nullptr) {
    load.known = present->documents;
    load.nodes = &present->nodes;
  }
  return tenancy::load_documents(options.files, load, read_standard_input(options.files));
}

Result<Change> change_of(Session& session, const FileOptions& options) {
  ASSIGN(present, present_documents(session));
  ASSIGN(loaded, load(options, &*present));
  Change change;
  change.documents = std::move(loaded->documents);
  change.notes = std::move(loaded->notes);
  change.revision = present->revision;
  change.removals = std::move(loaded->removals);
  if (!options.prune) return change;
  change.removals.clear();
  for (const auto& difference : tenancy::difference(present->documents, change.documents))
    if (difference.action == proto::ChangeAction::removed)
      change.removals.push_back({difference.kind, difference.name});
  return change;
}

Result<int> run_check(const Invocation& in) {
  FileOptions options;
  OPERANDS(operands, in, &options, 0, 0);
  std::optional<proto::TenancyDocuments> present;
  if (!options.offline) {
    ASSIGN(session, Session::open(in.program()));
    ASSIGN(documents, present_documents(*session));
    present = std::move(*documents);
  }
  ASSIGN(loaded, load(options, present ? &*present : nullptr));
  const auto all =
      tenancy::with_changes(present ? present->documents : std::vector<tenancy::Document>(),
                            loaded->documents, loaded->removals);
  for (const std::string& note : loaded->notes) fmt::print("note: {}\n", note);
  for (const std::string& warning :
       tenancy::warnings_of(all, present ? present->nodes : std::vector<proto::NodesAlike>()))
    fmt::print("warning: {}\n", warning);
  fmt::print("{} document{} can be applied\n", loaded->documents.size(),
             loaded->documents.size() == 1 ? "" : "s");
  return 0;
}

// ---- delete

Result<int> run_delete(const Invocation& in) {
  FileOptions options;
  OPERANDS(operands, in, &options, 0, kAnyOperands);
  const std::vector<std::string>& words = **operands;
  Change change;
  if (options.files.empty()) {
    if (words.size() < 2)
      return fail(ErrorCode::usage, "what to delete is missing: KIND NAME..., or -f FILE");
    ASSIGN(kind, kind_named(words[0]));
    for (std::size_t i = 1; i < words.size(); ++i) change.removals.push_back({*kind, words[i]});
  } else if (!words.empty()) {
    return fail(ErrorCode::usage, fmt::format("extra argument '{}'", words[0]));
  }
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(present, present_documents(*session));
  change.revision = present->revision;
  if (!options.files.empty()) {
    ASSIGN(loaded, load(options, &*present));
    for (const tenancy::Document& document : loaded->documents) {
      if (std::holds_alternative<tenancy::Manifest>(document))
        return fail(
            ErrorCode::usage,
            fmt::format("{} is an object of Kubernetes, and what it stands for is a part of "
                        "a tenant: apply what is to be there with --prune",
                        name_of(document)));
      change.removals.push_back({std::string(kind_of(document)), name_of(document)});
    }
  }
  const auto exists = [&](const proto::DocumentRef& ref) {
    return std::any_of(present->documents.begin(), present->documents.end(), [&](const auto& d) {
      return kind_of(d) == ref.kind && name_of(d) == ref.name;
    });
  };
  for (const proto::DocumentRef& ref : change.removals)
    if (options.files.empty() && !exists(ref))
      return fail(ErrorCode::not_found, fmt::format("there is no {} {}", ref.kind, ref.name));
  std::erase_if(change.removals, [&](const auto& ref) { return !exists(ref); });
  return finish_change(in, *session, std::move(change), options);
}

// ---- rollback

Result<int> run_rollback(const Invocation& in) {
  PlanOptions options;
  OPERANDS(operands, in, &options, 1, 1);
  ASSIGN(revision, parse_revision((**operands)[0]));
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(present, session->call<proto::TenancyDocuments>(proto::GetTenancy{}));
  proto::GetTenancy get;
  get.revision = *revision;
  ASSIGN(then, session->call<proto::TenancyDocuments>(get));
  Change change;
  change.documents = then->documents;
  change.revision = present->revision;
  for (const auto& difference : tenancy::difference(present->documents, then->documents))
    if (difference.action == proto::ChangeAction::removed)
      change.removals.push_back({difference.kind, difference.name});
  if (options.comment.empty()) options.comment = fmt::format("rollback to revision {}", *revision);
  return finish_change(in, *session, std::move(change), options);
}

constexpr auto kApplyOptions = join(kFileOptions, kPruneOption, kPlanOptions);
constexpr auto kDiffOptions = join(kFileOptions, kPruneOption, kJsonOption);
constexpr auto kCheckOptions = join(kFileOptions, kOfflineOption);
constexpr auto kDeleteOptions = join(kFileOptions, kPlanOptions);

}  // namespace

const Command kTenantApply{
    {"apply", "Create and change what files say"},
    {.description =
         "Reads documents (docs/tenancy.md), and manifests of Kubernetes and Kueue as they are. "
         "A mistake in any of them is refused with its place, and nothing is applied. What a "
         "manifest says and Gantry cannot honour is named. The plan shows each document that would "
         "be created (+), changed (~, old -> new) or removed (-), and who would hold more than its "
         "quota; all of it is applied together, on the revision that the plan was made on, or "
         "nothing.",
     .options = kApplyOptions,
     .examples =
         {
             {"gtenant apply -f fraud.yaml", "Show what would change, ask, apply"},
             {"gtenant apply -f tenants/ --prune --yes -m \"$(git log -1 --format=%s)\"",
              "The folder is the whole truth: for a pipeline"},
             {"kubectl get ns,resourcequotas,rolebindings -A -o yaml | gtenant apply -f - -n",
              "What a cluster of Kubernetes would come to"},
         },
     .run = run_change<FileOptions, change_of, false>}};
const Command kTenantDiff{{"diff", "Show what apply would change"},
                          {.options = kDiffOptions,
                           .examples = {{"gtenant diff -f tenants/", "What apply would change"}},
                           .exits = {{"0", "nothing would change"},
                                     {"1", "a file is wrong, or no answer"},
                                     {"2", "the command line is wrong"},
                                     {"3", "something would change"}},
                           .run = run_change<FileOptions, change_of, true>}};
const Command kTenantCheck{
    {"check", "Check files, and say what to know before applying them"},
    {.options = kCheckOptions,
     .examples = {{"gtenant check -f tenants/", "Are the files sound with what the cluster has?"},
                  {"gtenant check --offline -f tenants/",
                   "Without a controller, in a repository's tests"}},
     .run = run_check}};
const Command kTenantDelete{{"delete", "Remove documents", "[KIND NAME...]"},
                            {.description = "A tenant with jobs is refused: see gtenant offboard.",
                             .options = kDeleteOptions,
                             .examples = {{"gtenant delete cohort old", "One document"},
                                          {"gtenant delete -f old/", "All that these files name"}},
                             .run = run_delete}};
const Command kTenantRollback{
    {"rollback", "Make the documents what they were at a revision", "REVISION"},
    {.description = "It becomes a new revision; the history keeps what was between.",
     .options = kPlanOptions,
     .examples = {{"gtenant rollback 41", "As it was at revision 41 (gtenant history)"}},
     .run = run_rollback}};

}  // namespace gantry::cli::gtenant_apply
