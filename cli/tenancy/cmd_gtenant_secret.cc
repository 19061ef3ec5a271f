// gtenant secret: the secrets of a tenant. A content comes from a file or from standard input,
// never from the command line, which others read in lists of processes; and none ever comes back.
#include <fcntl.h>
#include <fmt/core.h>
#include <sodium.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/session.h"
#include "cli/table.h"
#include "cli/tenancy/cmd_gtenant.h"
#include "common/fd.h"
#include "common/text/text.h"

namespace gantry::cli::gtenant_secret {
namespace {

using proto::SecretRow;
using proto::SecretVersion;

struct Named {
  std::string tenant, name;
  std::uint32_t version = 0;
};

enum class MayHaveVersion : bool { no, yes };

Result<Named> parse_name(std::string_view text, MayHaveVersion version) {
  Named out;
  const std::size_t slash = text.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == text.size())
    return fail(ErrorCode::usage, fmt::format("\"{}\" is not TENANT/NAME", text));
  out.tenant = text.substr(0, slash);
  std::string_view name = text.substr(slash + 1);
  if (const std::size_t at = name.find('@');
      at != std::string_view::npos && version == MayHaveVersion::yes) {
    ASSIGN(number, parse_integer("the version", name.substr(at + 1), 1, UINT32_MAX));
    out.version = static_cast<std::uint32_t>(*number);
    name = name.substr(0, at);
  }
  out.name = name;
  return out;
}

struct SecretOptions {
  std::string file = "-";
  std::uint32_t keep = proto::kUsualSecretVersions;
  bool json = false;
  bool no_header = false;
};

constexpr Option kSetOptions[] = {
    takes("file", 'f', "FILE",
          "Take the content from this file, byte by byte (default: standard input)",
          put<&SecretOptions::file>),
    flag("json", "As JSON", put<&SecretOptions::json>),
    takes("keep", "N", "How many versions are kept, with the new one (1 to 16, default 5)",
          number<"--keep", 1, proto::kMaxSecretVersions, &SecretOptions::keep>),
};
constexpr Option kListOptions[] = {
    flag("json", "As JSON", put<&SecretOptions::json>),
    flag("noheader", 'n', "No line of headers", put<&SecretOptions::no_header>),
};
constexpr Option kOneOptions[] = {
    flag("json", "As JSON", put<&SecretOptions::json>),
};

// Reads at most one byte above the limit, so that too much is noticed, and keeps no copy of it.
Result<Bytes> read_content(const std::string& path) {
  if (path == "-" && ::isatty(STDIN_FILENO) == 1)
    return fail(ErrorCode::usage,
                "give the content with --file FILE, or on standard input from a file or a program");
  const Fd file(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto failed = [&] {
    return fail(ErrorCode::io_error,
                fmt::format("{}: cannot be read: {}", path == "-" ? "standard input" : path,
                            std::strerror(errno)));
  };
  if (!file) return failed();
  Bytes content(proto::kMaxSecretBytes + 1, '\0');
  std::size_t size = 0;
  while (size < content.size()) {
    const ssize_t n = ::read(file.get(), content.data() + size, content.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed();
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  content.resize(size);
  if (size <= proto::kMaxSecretBytes) return content;
  sodium_memzero(content.data(), content.size());
  return fail(ErrorCode::limit_exceeded,
              fmt::format("the content has more than {} bytes", proto::kMaxSecretBytes));
}

std::string versions_of(const SecretRow& row) {
  std::string out;
  for (auto it = row.versions.rbegin(); it != row.versions.rend(); ++it)
    out += fmt::format("{}{}", out.empty() ? "" : ",", it->number);
  return out;
}

const SecretVersion& newest(const SecretRow& row) {
  static const SecretVersion kNone;
  return row.versions.empty() ? kNone : row.versions.back();
}

// The version that a job got last.
const SecretVersion* used_last(const SecretRow& row) {
  const SecretVersion* last = nullptr;
  for (const SecretVersion& one : row.versions)
    if (one.used && (last == nullptr || *one.used > *last->used)) last = &one;
  return last;
}

Result<int> print_json(const proto::SecretList& list) {
  return print_pretty(list);
}

Result<int> run_set(const Invocation& in) {
  SecretOptions options;
  OPERANDS(operands, in, &options, 1, 1);
  ASSIGN(named, parse_name((**operands)[0], MayHaveVersion::no));
  ASSIGN(content, read_content(options.file));
  proto::SetSecret message;
  message.tenant = named->tenant;
  message.name = named->name;
  message.content = std::move(*content);
  message.keep = options.keep;
  const auto reply = ask<proto::SecretList>(in.program(), message);
  sodium_memzero(message.content.data(), message.content.size());
  if (!reply) return tl::unexpected(reply.error());
  if (options.json) return print_json(*reply);
  for (const SecretRow& row : reply->rows)
    fmt::print("secret {}/{}: version {}; kept: {}\n", row.tenant, row.name, newest(row).number,
               versions_of(row));
  return 0;
}

Result<int> run_remove(const Invocation& in) {
  SecretOptions options;
  OPERANDS(operands, in, &options, 1, 1);
  ASSIGN(named, parse_name((**operands)[0], MayHaveVersion::yes));
  ASSIGN(reply, ask<proto::SecretList>(
                    in.program(), proto::RemoveSecret{named->tenant, named->name, named->version}));
  if (options.json) return print_json(*reply);
  for (const SecretRow& row : reply->rows) {
    fmt::print("secret {}/{}: {}\n", row.tenant, row.name,
               row.versions.empty() ? "removed" : "kept: " + versions_of(row));
    if (row.waiting > 0)
      fmt::print(
          "jobs that name it and have not ended: {}; those that wait start when there is one "
          "again\n",
          row.waiting);
  }
  return 0;
}

using O = std::string&;
using R = const SecretRow&;
constexpr Column<SecretRow> kSecretColumns[] = {
    {'t', "Tenant", "TENANT", [](O o, R r) { o += r.tenant; }},
    {'n', "Name", "NAME", [](O o, R r) { o += r.name; }},
    {'v', "Versions", "VERSIONS", [](O o, R r) { o += versions_of(r); }},
    {'s', "Set", "SET", [](O o, R r) { o += format_time(newest(r).made); }},
    {'b', "By", "BY", [](O o, R r) { o += newest(r).by; }},
    {'u', "Used", "USED",
     [](O o, R r) { o += used_last(r) == nullptr ? "-" : format_time(*used_last(r)->used); }},
    {'j', "Job", "JOB", [](O o, R r) {
       o += used_last(r) == nullptr ? "-" : std::to_string(used_last(r)->used_by.value());
     }}};
constexpr std::string_view kSecretFormat = "%t %n %v %s %b %u %.7j";

Result<int> run_list(const Invocation& in) {
  SecretOptions options;
  OPERANDS(operands, in, &options, 0, kAnyOperands);
  ASSIGN(reply, ask<proto::SecretList>(in.program(), proto::ListSecrets{**operands, ""}));
  if (options.json) return print_json(*reply);
  const std::span<const Column<SecretRow>> columns(kSecretColumns);
  ASSIGN(layout, parse_format(kSecretFormat, infos(columns), true));
  TableWriter table(std::move(*layout), {.header = !options.no_header}, stdout);
  for (const SecretRow& row : reply->rows) add_row(table, columns, row);
  return 0;
}

Result<int> run_show(const Invocation& in) {
  SecretOptions options;
  OPERANDS(operands, in, &options, 1, 1);
  ASSIGN(named, parse_name((**operands)[0], MayHaveVersion::no));
  ASSIGN(reply,
         ask<proto::SecretList>(in.program(), proto::ListSecrets{{named->tenant}, named->name}));
  if (options.json) return print_json(*reply);
  for (const SecretRow& row : reply->rows) {
    fmt::print("secret {}/{}\n", row.tenant, row.name);
    for (auto it = row.versions.rbegin(); it != row.versions.rend(); ++it)
      fmt::print("  version {}: set {} by {}; {}\n", it->number, format_time(it->made), it->by,
                 it->used ? fmt::format("last used {} by job {}", format_time(*it->used),
                                        it->used_by.value())
                          : std::string("never used"));
    fmt::print("  jobs that name it and have not ended: {}\n", row.waiting);
  }
  return 0;
}

const Command kSecretSet{
    {"set", "Make a secret, or its next version", "TENANT/NAME"},
    {.description =
         "The content is the file as it is, of at most 64 KiB. The controller keeps it "
         "sealed; jobs with --secret find it in /run/secrets, and nobody can read it back.",
     .options = kSetOptions,
     .examples = {{"gtenant secret set fraud/hub-token --file hub.token",
                   "A new secret, or its next version"},
                  {"vault read -field=key secret/db | gtenant secret set fraud/db-key --keep 2",
                   "From another program; the version before stays for jobs that name it"}},
     .run = run_set}};
const Command kSecretList{
    {"list", "List the secrets of tenants, without their content", "[TENANT...]"},
    {.options = kListOptions,
     .examples = {{"gtenant secret list fraud", "Those of one tenant"}},
     .run = run_list}};
const Command kSecretShow{
    {"show", "Show the versions of a secret, without their content", "TENANT/NAME"},
    {.options = kOneOptions,
     .examples = {{"gtenant secret show fraud/hub-token",
                   "Versions, who set them, and when a job last got one"}},
     .run = run_show}};
const Command kSecretRemove{
    {"rm", "Remove a secret, or one version of it", "TENANT/NAME[@VERSION]"},
    {.options = kOneOptions,
     .examples = {{"gtenant secret rm fraud/hub-token@3", "One version"},
                  {"gtenant secret rm fraud/hub-token", "All of it; jobs that name it wait"}},
     .run = run_remove}};
constexpr const Command* kSecretSub[] = {&kSecretSet, &kSecretList, &kSecretShow, &kSecretRemove};

}  // namespace

const Command kTenantSecret{
    {"secret", "Secrets of tenants for their jobs: set, list, show, rm"},
    {.description = "docs/secrets.md says what is protected from whom.",
     .examples = {{"gtenant secret set fraud/hub-token --file hub.token", "Its admins make one"},
                  {"gbatch -p fraud --secret=hub-token train.sh",
                   "A job finds it in /run/secrets/hub-token"}},
     .sub = kSecretSub}};

}  // namespace gantry::cli::gtenant_secret
