// gctl audit show, verify, export. On the controller's machine, and on a copy, it reads the files
// of the audit log, and the controller need not run. Everywhere else it asks the controller for the
// records, and checks their chain itself.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <syslog.h>
#include <unistd.h>

#include <deque>
#include <functional>
#include <optional>

#include "cli/commands/control/gctl.h"
#include "cli/session.h"
#include "common/audit/audit_reader.h"
#include "common/job/verdict_text.h"
#include "common/text/printable.h"
#include "common/text/text.h"
#include "config/config.h"

namespace gantry::cli::gctl_audit {
namespace {

struct AuditOptions {
  std::string directory, user, message, head;
  std::uint64_t last = 50, after = 0;
  bool refused = false, json = false, to_syslog = false;
};

constexpr Option kDirectory{
    .name = "dir",
    .arg = Arg::required,
    .value = "DIR",
    .help =
        "The log, or a copy of it (default: `audit` in the controller's state_dir, as "
        "gantry.yaml of this machine says, if it can be read; else the controller is asked)",
    .set = put<&AuditOptions::directory>};
constexpr Option kShowOptions[] = {
    kDirectory,
    flag("json", "The lines as they are in the log", put<&AuditOptions::json>),
    takes("last", 'n', "N", "At most so many records, the newest (default 50)",
          number<"the number of records", 1, 1'000'000, &AuditOptions::last>),
    flag("refused", "Only requests that were refused", put<&AuditOptions::refused>),
    takes("request", 'r', "NAME", "Only this request: SubmitJob, ApplyTenancy",
          put<&AuditOptions::message>),
    takes("user", 'u', "USER", "Only of this user", put<&AuditOptions::user>),
};
constexpr Option kVerifyOptions[] = {
    kDirectory,
    takes("head", "HASH",
          "A hash that an earlier `verify` printed: it must still be in the log, so that records "
          "missing at its end are found too",
          put<&AuditOptions::head>),
};
constexpr Option kExportOptions[] = {
    takes("after", "N", "Only records with a higher number (default 0: all)",
          number<"the number of a record", 0, INT64_MAX, &AuditOptions::after>),
    kDirectory,
    flag("syslog", "To syslog (facility authpriv) instead of standard output",
         put<&AuditOptions::to_syslog>),
};

// Where the records come from: files, or the controller.
struct Source {
  std::string directory;  // "" = the controller
  [[nodiscard]] std::string name() const {
    return directory.empty() ? "the controller" : directory;
  }
};
using Each = std::function<void(const audit::Record&, std::string_view line)>;

Source source_of(const AuditOptions& options) {
  if (!options.directory.empty()) return {options.directory};
  const auto config = load_config(default_config_path());
  if (!config) return {};
  std::string directory = config->controller.state_dir + "/audit";
  return ::access(directory.c_str(), R_OK | X_OK) == 0 ? Source{std::move(directory)} : Source{};
}

// Reads the options and returns the log's place; nullopt if only help was asked for.
Result<std::optional<Source>> source_for(const Invocation& in, AuditOptions& options) {
  ASSIGN(operands, in.parse(&options, 0, 0));
  if (!*operands) return std::nullopt;
  return std::optional(source_of(options));
}

// Reads one page from the controller, and checks each of its lines.
Result<bool> follow_page(Session& session, const proto::ReadAudit& request,
                         audit::ChainCheck& check, const Each& each) {
  ASSIGN(page, session.call<proto::AuditPage>(request));
  for (const std::string& line : page->lines) {
    const auto record = check.follow(line);
    if (!record)
      return fail(ErrorCode::malformed, fmt::format("the controller's audit log: the line after "
                                                    "record {} {}",
                                                    check.chain().last, record.error().message));
    if (each) each(*record, line);
  }
  return page->more && !page->lines.empty();
}

// All records after `after`, in their order. The error names the first one that is wrong.
Result<audit::Chain> walk(const Invocation& in, const Source& source, std::uint64_t after,
                          const Each& each) {
  if (!source.directory.empty())
    return audit::walk(source.directory, [&](const audit::Record& r, std::string_view line) {
      if (r.seq > after && each) each(r, line);
    });
  ASSIGN(session, Session::open(in.program()));
  audit::ChainCheck check;
  proto::ReadAudit request;
  request.after = after;
  while (true) {
    ASSIGN(more, follow_page(*session, request, check, each));
    if (!*more) return check.chain();
    request.after = check.chain().last;
  }
}

// Like the walk over all records, but only over the newest ones.
Result<audit::Chain> walk_newest(const Invocation& in, const Source& source, std::uint64_t last,
                                 const Each& each) {
  if (!source.directory.empty() || last > proto::kMostAuditLines) return walk(in, source, 0, each);
  ASSIGN(session, Session::open(in.program()));
  audit::ChainCheck check;
  proto::ReadAudit request;
  request.newest = true;
  request.most = static_cast<std::uint32_t>(last);
  TRY(follow_page(*session, request, check, each));
  return check.chain();
}

bool wanted(const AuditOptions& o, const audit::Record& r) {
  return (o.user.empty() || r.user == o.user) && (o.message.empty() || r.message == o.message) &&
         (!o.refused || (r.outcome != "done" && r.outcome != "unanswered"));
}

void print(const audit::Record& r) {
  const std::string who = r.user.empty() ? "-" : r.user;
  fmt::print("{}  {} {}  {} ({}{}{})  {}{}{}\n", r.seq, format_time(r.time), who, r.message,
             r.right, r.how.empty() ? "" : ", ", r.how, printable(r.about),
             r.about.empty() ? "" : ": ",
             r.why.empty() ? r.outcome : fmt::format("{}: {}", r.outcome, printable(r.why)));
}

Result<int> run_show(const Invocation& in) {
  AuditOptions options;
  ASSIGN(source, source_for(in, options));
  if (!*source) return 0;
  std::deque<std::pair<audit::Record, std::string>> newest;
  const Each keep = [&](const audit::Record& r, std::string_view line) {
    if (!wanted(options, r)) return;
    newest.emplace_back(r, options.json ? std::string(line) : std::string());
    if (newest.size() > options.last) newest.pop_front();
  };
  const bool all = options.user.empty() && options.message.empty() && !options.refused;
  const auto walked =
      all ? walk_newest(in, **source, options.last, keep) : walk(in, **source, 0, keep);
  for (const auto& [record, line] : newest)
    if (options.json)
      fmt::print("{}\n", line);
    else
      print(record);
  if (!walked) return tl::unexpected(walked.error());
  return 0;
}

Result<int> run_verify(const Invocation& in) {
  AuditOptions options;
  ASSIGN(source, source_for(in, options));
  if (!*source) return 0;
  bool found = options.head.empty();
  ASSIGN(chain, walk(in, **source, 0, [&](const audit::Record&, std::string_view line) {
           found = found || line.ends_with(fmt::format("\"hash\":\"{}\"}}", options.head));
         }));
  const std::string directory = (*source)->name();
  if (!found)
    return fail(ErrorCode::malformed,
                fmt::format("{}: no record has the hash {}: the log was cut off or made anew",
                            directory, options.head));
  if (chain->records == 0) {
    fmt::print("{}: no records\n", directory);
    return 0;
  }
  fmt::print("{}: {}, {} to {}: the chain is whole\nhead {}\n", directory,
             counted(static_cast<std::int64_t>(chain->records), "record"), chain->first,
             chain->last, chain->head);
  return 0;
}

Result<int> run_export(const Invocation& in) {
  AuditOptions options;
  ASSIGN(source, source_for(in, options));
  if (!*source) return 0;
  if (options.to_syslog) ::openlog("gantry-audit", LOG_NDELAY, LOG_AUTHPRIV);
  const auto chain =
      walk(in, **source, options.after, [&](const audit::Record&, std::string_view line) {
        if (options.to_syslog)
          ::syslog(LOG_NOTICE, "%.*s", static_cast<int>(line.size()), line.data());
        else
          fmt::print("{}\n", line);
      });
  if (!chain) return tl::unexpected(chain.error());
  fmt::print(stderr, "{}: exported up to record {}\n", in.program(),
             std::max(chain->last, options.after));
  return 0;
}

const Command kShow{
    {"show", "Requests with who sent them and what became of them"},
    {.options = kShowOptions,
     .examples = {{"gctl audit show",
                   "The newest 50 requests that changed something, or were refused"},
                  {"gctl audit show -u alice --refused -n 500", "What alice was refused"},
                  {"gctl audit show -r ApplyTenancy --json",
                   "Who changed documents of tenants, as JSON lines"}},
     .run = run_show}};
const Command kVerify{
    {"verify", "Check the chain of records"},
    {.description =
         "Each record has the hash of the one before it. A record that was changed, added, moved "
         "or "
         "taken from the middle is named with its file and line. Records that are missing at the "
         "end are found with --head. Who can write the files can make a whole new chain: note the "
         "printed head elsewhere, or export.",
     .options = kVerifyOptions,
     .examples = {{"gctl audit verify", "Whether a record was changed, and which"},
                  {"gctl audit verify --dir /mnt/copy --head 5f1c...",
                   "A copy, up to a head noted earlier"}},
     .run = run_verify}};
const Command kExport{
    {"export", "Copy records to a file or to syslog"},
    {.description = "Says on standard error which record was the last.",
     .options = kExportOptions,
     .examples = {{"gctl audit export > audit.jsonl", "All records as lines of JSON"},
                  {"gctl audit export --after 1200 --syslog",
                   "What came after record 1200, to syslog"}},
     .run = run_export}};
constexpr const Command* kSub[] = {&kShow, &kVerify, &kExport};

}  // namespace

const Command kGctlAudit{
    {"audit", "Who did what: show, check and export the audit log"},
    {.description =
         "The controller writes down each request that changes something, each that needs a role, "
         "each look at another user's script or output, each refusal of these, and each refused "
         "credential. On the controller's machine these commands read its files, as root; "
         "elsewhere "
         "auditors and administrators get the records from the controller.",
     .examples = {{"gctl audit show -u alice --refused", "What alice was refused"},
                  {"gctl audit verify", "Whether a record was changed, and which"}},
     .sub = kSub}};

}  // namespace gantry::cli::gctl_audit
