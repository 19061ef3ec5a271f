// sshare: shows shares, usage and fair share of accounts and users, as Slurm's does. Tenants, their
// projects and users are the levels of the tree of accounts.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "common/proto/tenancy_view.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::string_view kShareList =
    "Account%-20,User,RawShares,NormShares,RawUsage,EffectvUsage%13,FairShare";
constexpr std::string_view kShareLongList =
    "Account%-20,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage%13,FairShare,LevelFS,"
    "GrpTRESMins%30,TRESRunMins%30";

struct SshareQuery {
  std::vector<std::string> accounts;
  std::vector<std::string> users;
  std::optional<std::string> clusters;
  std::string fields;
  bool all = false;
  bool users_only = false;
  bool long_form = false;
  bool no_header = false;
  bool parsable = false;
  bool parsable2 = false;
  bool help_format = false;
  bool verbose = false;
};
struct ShareLine {
  const proto::ShareRow* row = nullptr;  // not set: the root
  std::string account;
  std::optional<double> fair_share;
  std::string_view cluster;
};

std::string level_text(const ShareLine& v) {
  if (v.row == nullptr) return "";
  return v.row->level ? fmt::format("{:.6f}", *v.row->level) : "inf";
}

using S = const ShareLine&;
using Out = std::string&;
constexpr Column<ShareLine> kShareFields[] = {
    sized("Account", -20, [](Out o, S v) { o += v.account; }),
    sized("Cluster", 10, [](Out o, S v) { o += v.cluster; }),
    sized("EffectvUsage", 13,
          [](Out o, S v) { o += fmt::format("{:.6f}", v.row == nullptr ? 1.0 : v.row->part); }),
    sized("FairShare", 10,
          [](Out o, S v) { o += v.fair_share ? fmt::format("{:.6f}", *v.fair_share) : ""; }),
    sized("GrpTRESMins", 30, [](Out, S) {}),
    sized("GrpTRESRaw", 30, [](Out, S) {}),
    sized("ID", 6, [](Out, S) {}),
    sized("LevelFS", 10, [](Out o, S v) { o += level_text(v); }),
    sized("NormShares", 11,
          [](Out o, S v) { o += v.row == nullptr ? "" : fmt::format("{:.6f}", v.row->share); }),
    sized("NormUsage", 11,
          [](Out o, S v) { o += v.row == nullptr ? "" : fmt::format("{:.6f}", v.row->part); }),
    sized("Partition", 12, [](Out, S) {}),
    sized("RawShares", 10,
          [](Out o, S v) { o += v.row == nullptr ? "" : std::to_string(v.row->shares); }),
    sized("RawUsage", 11,
          [](Out o, S v) {
            o += v.row == nullptr ? "0" : std::to_string(static_cast<std::int64_t>(v.row->usage));
          }),
    sized("TRESRunMins", 30, [](Out, S) {}),
    sized("User", 10, [](Out o, S v) { o += v.row == nullptr ? "" : v.row->user; }),
};

constexpr Option kSshareOptions[] = {
    takes("accounts", 'A', "NAME,...", "These accounts: tenants and projects",
          put<&SshareQuery::accounts>),
    flag("all", 'a', "All users that one may see", put<&SshareQuery::all>),
    takes("clusters", 'M', "NAMES", "Only this cluster's name is accepted",
          put<&SshareQuery::clusters>),
    takes("cluster", "NAME", "The same", put<&SshareQuery::clusters>),
    takes("format", 'o', "FIELD[%WIDTH],...", "These fields; --helpformat lists them",
          put<&SshareQuery::fields>),
    flag("helpformat", 'e', "List the fields", put<&SshareQuery::help_format>),
    flag("long", 'l', "More columns", put<&SshareQuery::long_form>),
    flag("noheader", 'n', "No header", put<&SshareQuery::no_header>),
    flag("parsable", 'p', "Values parted by |, also behind the last", put<&SshareQuery::parsable>),
    flag("parsable2", 'P', "Values parted by |", put<&SshareQuery::parsable2>),
    takes("user", 'u', "USER,...", "Only these users (default: you)", put<&SshareQuery::users>),
    takes("uid", "USER,...", "The same", put<&SshareQuery::users>),
    flag("Users", 'U', "Users only, without their accounts", put<&SshareQuery::users_only>),
    flag("verbose", 'v', "display more information: which users and accounts were asked for",
         put<&SshareQuery::verbose>),
    refuses("json", "use gshare --json"),
    refuses("partition", 'm', "shares do not depend on a partition"),
    refuses("yaml", "use gshare --json"),
};

// The FairShare of Slurm's Fair Tree: leaves in the order in which they are served; the first has
// 1.
class Ranks {
 public:
  explicit Ranks(const std::vector<proto::ShareRow>& rows) {
    std::vector<std::pair<std::vector<std::uint32_t>, std::size_t>> leaves;
    std::map<std::string, std::uint32_t> places;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const proto::ShareRow& row = rows[i];
      places[row.tenant + "\n" + row.project + "\n" + row.user] = row.place;
      const bool leaf = i + 1 == rows.size() || depth(rows[i + 1]) <= depth(row);
      if (!leaf) continue;
      leaves.push_back(
          {{places[row.tenant + "\n\n"], places[row.tenant + "\n" + row.project + "\n"], row.place},
           i});
    }
    std::sort(leaves.begin(), leaves.end());
    for (std::size_t k = 0; k < leaves.size(); ++k)
      of_[leaves[k].second] =
          static_cast<double>(leaves.size() - k) / static_cast<double>(leaves.size());
  }
  [[nodiscard]] std::optional<double> of(std::size_t row) const {
    const auto found = of_.find(row);
    return found == of_.end() ? std::nullopt : std::optional(found->second);
  }
  static std::size_t depth(const proto::ShareRow& row) {
    return row.project.empty() ? 1 : row.user.empty() ? 2 : 3;
  }

 private:
  std::map<std::size_t, double> of_;
};

bool is_shown(const SshareQuery& q, const proto::ShareRow& row) {
  const auto has = [](const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  if (!q.accounts.empty() && !has(q.accounts, row.tenant) && !has(q.accounts, row.project))
    return false;
  if (row.user.empty()) return !q.users_only;
  return q.all || has(q.users, row.user) || (q.users.empty() && row.user == login_name());
}

// Slurm's list of the options, with -v.
void say_asked(const SshareQuery& q) {
  const auto say = [](std::string_view what, const std::vector<std::string>& names) {
    fmt::print(stderr, "{} requested:\n", what);
    for (const std::string& name : names) fmt::print(stderr, "\t: {}\n", name);
    if (names.empty()) fmt::print(stderr, "\t: all\n");
  };
  say("Users", q.all || !q.users.empty() ? q.users : std::vector<std::string>{login_name()});
  say("Accounts", q.accounts);
}

Result<int> run_sshare(const Invocation& call) {
  SshareQuery q;
  int status = 0;
  const auto operands = parse_into(call, &q, status);
  if (!operands) return status;
  if (!operands->empty()) return complain(call, "Unknown argument: " + operands->front());
  if (q.help_format) {
    for (const Column<ShareLine>& field : kShareFields) fmt::print("{:<20}\n", field.name);
    return 0;
  }
  std::string named;
  if (!check_clusters(call, q.clusters, named, status)) return status;
  std::vector<std::string> unknown;
  Layout layout = list_layout(
      q.fields.empty() ? q.long_form ? kShareLongList : kShareList : std::string_view(q.fields),
      infos<ShareLine>(kShareFields), unknown);
  if (!unknown.empty())
    return complain(call, fmt::format("Invalid field requested: \"{}\"", unknown.front()));
  if (q.verbose) say_asked(q);
  ASSIGN(reply, ask<proto::ShareTreeReply>("sshare", proto::ShareTree{}));
  const TableStyle style = list_style(q, layout);
  const Ranks ranks(reply->rows);
  const std::string cluster = cluster_name();
  TableWriter table(std::move(layout), style, stdout);
  if (!q.users_only)
    add_row<ShareLine>(table, kShareFields, {nullptr, "root", std::nullopt, cluster});
  for (std::size_t i = 0; i < reply->rows.size(); ++i) {
    const proto::ShareRow& row = reply->rows[i];
    if (!is_shown(q, row)) continue;
    const std::string name = row.project.empty() ? row.tenant : row.project;
    const std::string blanks(q.users_only ? 0 : Ranks::depth(row), ' ');
    add_row<ShareLine>(table, kShareFields, {&row, blanks + name, ranks.of(i), cluster});
  }
  return 0;
}

}  // namespace

extern const Command kSshare;
const Command kSshare{
    {"sshare", "Show shares, usage and fair share of accounts and users"},
    {.description =
         "Slurm's sshare, over gshare. Tenants are accounts below root, their projects accounts "
         "below them. FairShare is Fair Tree's: 1 is served first.",
     .options = kSshareOptions,
     .examples = {{"sshare", "My place in the tree of accounts"},
                  {"sshare -a -l", "Everybody's, with more columns"},
                  {"sshare -n -P -o account,fairshare", "For scripts"}},
     .exits = {{"0", "fine"}, {"1", "no answer, or the command line is wrong"}},
     .run = run_sshare}};

}  // namespace gantry::cli::slurm
