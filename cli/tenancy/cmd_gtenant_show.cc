// gtenant get, export, history: show the documents that exist, and how they came to be.
#include <fmt/core.h>

#include <algorithm>

#include "cli/files.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/tenancy/cmd_gtenant.h"
#include "common/text/text.h"
#include "config/tenancy/write.h"

namespace gantry::cli::gtenant_show {
namespace {

struct GetOptions {
  std::optional<std::uint64_t> revision;
  std::string folder;
  bool json = false;
};

constexpr Option kGetOptions[] = {
    flag("json", "As JSON", put<&GetOptions::json>),
    takes("revision", 'r', "N", "As they were at an earlier revision",
          parsed<parse_revision, &GetOptions::revision>),
};
constexpr Option kExportOptions[] = {
    takes("directory", 'd', "DIR", "A file for each, kind/name.yaml, instead of standard output",
          put<&GetOptions::folder>),
    takes("revision", 'r', "N", "As they were at an earlier revision",
          parsed<parse_revision, &GetOptions::revision>),
};

Result<int> run_get(const Invocation& in) {
  GetOptions options;
  OPERANDS(operands, in, &options, 1, kAnyOperands);
  const std::vector<std::string>& words = **operands;
  ASSIGN(kind, kind_named(words[0]));
  proto::GetTenancy get;
  get.revision = options.revision;
  get.kinds = {*kind};
  get.names.assign(words.begin() + 1, words.end());
  ASSIGN(reply, ask<proto::TenancyDocuments>(in.program(), get));
  if (options.json)
    fmt::print("{}\n", codec::to_json(*reply, codec::JsonStyle::pretty));
  else
    fmt::print("{}", tenancy::to_text(reply->documents));
  int status = 0;
  for (const std::string& name : get.names) {
    const bool found = std::any_of(reply->documents.begin(), reply->documents.end(),
                                   [&](const auto& d) { return name_of(d) == name; });
    if (found) continue;
    fmt::print(stderr, "{}: error: there is no {} {}\n", in.program(), *kind, name);
    status = 1;
  }
  return status;
}

Result<int> run_export(const Invocation& in) {
  GetOptions options;
  OPERANDS(operands, in, &options, 0, 0);
  proto::GetTenancy get;
  get.revision = options.revision;
  ASSIGN(reply, ask<proto::TenancyDocuments>(in.program(), get));
  if (options.folder.empty()) {
    fmt::print("# revision {}\n{}", reply->revision, tenancy::to_text(reply->documents));
    return 0;
  }
  for (const tenancy::Document& document : reply->documents) {
    std::string kind(kind_of(document));
    for (char& c : kind) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const std::string folder = options.folder + "/" + kind;
    TRY(make_directories(folder, kPrivateFolder));
    std::string file(name_of(document));
    std::replace(file.begin(), file.end(), '/', '+');  // names of Manifests contain slashes
    const std::string path = fmt::format("{}/{}.yaml", folder, file);
    TRY(write_file(path, tenancy::to_text(document), kPrivateFile));
  }
  fmt::print("{} has the documents of revision {}: {}\n", options.folder, reply->revision,
             reply->documents.size());
  return 0;
}

// ---- history

struct HistoryOptions {
  std::uint32_t limit = 0;
  bool long_form = false;
  bool no_header = false;
  bool json = false;
};

constexpr Option kHistoryOptions[] = {
    flag("json", "As JSON", put<&HistoryOptions::json>),
    takes("limit", "N", "Only the newest N",
          number<"the number of revisions", 1, 1'000'000, &HistoryOptions::limit>),
    flag("long", 'l', "With what changed in each", put<&HistoryOptions::long_form>),
    flag("noheader", 'h', "No header", put<&HistoryOptions::no_header>),
};

using O = std::string&;
using R = const proto::TenancyRevision&;

std::string changes_of(R revision) {
  std::string text;
  std::map<proto::ChangeAction, std::vector<std::string>> names;
  for (const auto& change : revision.changes)
    if (change.action != proto::ChangeAction::unchanged)
      names[change.action].push_back(change.kind + " " + change.name);
  for (const auto& [action, list] : names) {
    const char sign = action == proto::ChangeAction::created   ? '+'
                      : action == proto::ChangeAction::removed ? '-'
                                                               : '~';
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", sign,
                        list.size() == 1 ? list[0] : std::to_string(list.size()));
  }
  return text;
}

constexpr Column<proto::TenancyRevision> kHistoryColumns[] = {
    {'r', "Revision", "REVISION", [](O o, R r) { o += std::to_string(r.revision); }},
    {'t', "Time", "TIME", [](O o, R r) { o += format_time(r.at); }},
    {'u', "Author", "AUTHOR", [](O o, R r) { o += r.author; }},
    {'c', "Changes", "CHANGES", [](O o, R r) { o += changes_of(r); }},
    {'m', "Comment", "COMMENT", [](O o, R r) { o += r.comment; }}};

Result<int> run_history(const Invocation& in) {
  HistoryOptions options;
  OPERANDS(operands, in, &options, 0, 2);
  proto::TenancyHistory history;
  history.limit = options.limit;
  if (!(*operands)->empty()) {
    ASSIGN(kind, kind_named((**operands)[0]));
    history.kind = *kind;
    if ((*operands)->size() > 1) history.name = (**operands)[1];
  }
  ASSIGN(reply, ask<proto::TenancyHistoryReply>(in.program(), history));
  if (reply->revisions.empty() && !history.name.empty())
    return fail(ErrorCode::not_found,
                fmt::format("there never was a {} {}", history.kind, history.name));
  if (options.json) return print_pretty(*reply);
  if (options.long_form) {
    for (R revision : reply->revisions) {
      fmt::print("revision {}  {}  {}  {}\n", revision.revision, format_time(revision.at),
                 revision.author, revision.comment);
      proto::TenancyPlanned plan;
      plan.changes = revision.changes;
      const std::string text = show_plan(plan, wants_colour(stdout)).text;
      fmt::print("{}\n", text.substr(0, text.rfind('\n', text.size() - 2) + 1));
    }
    return 0;
  }
  const std::span<const Column<proto::TenancyRevision>> columns = kHistoryColumns;
  ASSIGN(layout, parse_format("%.8r %t %u %c %m", infos(columns), true));
  TableWriter table(*layout, {.header = !options.no_header}, stdout);
  for (R revision : reply->revisions) add_row(table, columns, revision);
  return 0;
}

}  // namespace

const Command kTenantGet{{"get", "Print documents", "KIND [NAME...]"},
                         {.description = "Kinds are tenant, cohort, tier, priorityclass, flavor, "
                                         "nodepool and topology.",
                          .options = kGetOptions,
                          .examples = {{"gtenant get tenant fraud", "One document, as YAML"},
                                       {"gtenant get priorityclasses", "All of a kind"}},
                          .run = run_get}};
const Command kTenantExport{
    {"export", "Print all documents, as apply reads them"},
    {.options = kExportOptions,
     .examples = {{"gtenant export > tenants.yaml", "Everything in one file, as apply reads it"}},
     .run = run_export}};
const Command kTenantHistory{{"history", "Who changed what, when, and why", "[KIND [NAME]]"},
                             {.options = kHistoryOptions,
                              .examples = {{"gtenant history --limit 10", "The last ten changes"},
                                           {"gtenant history tenant fraud", "Those of one tenant"}},
                              .run = run_history}};

}  // namespace gantry::cli::gtenant_show
