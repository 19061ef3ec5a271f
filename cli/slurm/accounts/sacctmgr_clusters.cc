// sacctmgr add, modify and delete cluster. This cluster is always there. Others can be registered,
// as documents, with their accounts, users and limits: each cluster keeps its own accounting, so
// nothing here goes by them.
#include <fmt/core.h>

#include <algorithm>

#include "cli/session.h"
#include "cli/slurm/accounts/other_accounts.h"
#include "cli/slurm/accounts/sacctmgr_verbs.h"
#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "common/proto/tenancy.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

struct ClusterWords {
  std::vector<std::string> names;
  std::optional<std::string> description;
  std::vector<RawSetting> settings;  // of the account root
  [[nodiscard]] bool has_settings() const { return description || !settings.empty(); }
};

Result<ClusterWords> read_cluster_words(std::string_view verb,
                                        const std::vector<std::string>& words) {
  ClusterWords out;
  bool setting = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string key = lower_case(words[i].substr(0, equals));
    const bool bare = equals == std::string::npos;
    if (bare && (key == "where" || key == "set")) {
      setting = key == "set";
      continue;
    }
    const std::string value = bare ? words[i] : words[i].substr(equals + 1);
    if (bare || key.starts_with("name") || key.starts_with("cluster")) {
      for (std::string& name : split_list(value)) out.names.push_back(std::move(name));
    } else if (verb != "add" && !setting) {
      return fail(ErrorCode::usage, fmt::format(" Unknown condition: {}", words[i]));
    } else if (key.starts_with("desc")) {
      out.description = value;
    } else {
      out.settings.push_back({key, value});
    }
  }
  if (out.names.empty())
    return fail(ErrorCode::usage, verb == "add" ? " Need name of cluster to add."
                                                : " No conditions given to remove, not executing.");
  return out;
}

class Clusters {
 public:
  explicit Clusters(const proto::TenancyDocuments& documents) : others_(documents) {
    changes_.base_revision = documents.revision;
    changes_.comment = "sacctmgr";
  }

  // Each returns the text that says what will be done; "" if there is nothing to do.
  Result<std::string> add(const ClusterWords& words) {
    std::string text;
    for (const std::string& name : words.names) {
      if (name == own_ || others_.has_cluster(name)) {
        fmt::print(" This cluster {} already exists.  Not adding.\n", name);
        continue;
      }
      others_.add_cluster(name, words.description.value_or(""));
      TRY(others_.set_cluster(name, words.settings));
      text += fmt::format("  Name           = {}\n", name);
    }
    if (text.empty()) return "";
    return " Adding Cluster(s)\n" + text + settings_text(words);
  }

  Result<std::string> modify(const ClusterWords& words) {
    std::string text;
    for (const std::string& name : words.names) {
      if (name == own_)
        return fail(ErrorCode::unsupported,
                    fmt::format(" cluster {}: it is this cluster, in which limits and shares of "
                                "all accounts together do not exist; a tenant, the account below "
                                "root, has them",
                                name));
      if (!others_.has_cluster(name)) continue;
      if (words.description) others_.describe_cluster(name, *words.description);
      TRY(others_.set_cluster(name, words.settings));
      text += fmt::format("  {}\n", name);
    }
    return text.empty() ? "" : settings_text(words) + " Modified cluster...\n" + text;
  }

  Result<std::string> remove(const ClusterWords& words) {
    std::string text;
    for (const std::string& name : words.names) {
      if (name == own_)
        return fail(
            ErrorCode::unsupported,
            fmt::format(" cluster {}: it is this cluster, whose accounting is always there", name));
      if (!others_.has_cluster(name)) continue;
      others_.remove_cluster(name);
      text += fmt::format("  {}\n", name);
    }
    return text.empty() ? "" : " Deleting clusters...\n" + text;
  }

  [[nodiscard]] proto::ApplyTenancy changes() const {
    proto::ApplyTenancy out = changes_;
    others_.add_changes(out);
    return out;
  }

 private:
  static std::string settings_text(const ClusterWords& words) {
    if (!words.has_settings()) return "";
    std::string out = " Setting\n Default Limits =\n";
    if (words.description) out += fmt::format("  Description    = {}\n", *words.description);
    for (const RawSetting& setting : words.settings)
      out += fmt::format("  {:<14} = {}\n", setting.key, setting.value);
    return out;
  }

  std::string own_ = cluster_name();
  OtherAccounts others_;
  proto::ApplyTenancy changes_;
};

}  // namespace

bool names_clusters(const std::vector<std::string>& words) {
  const std::string word = words.empty() ? "" : lower_case(words.front());
  return word.size() >= 2 && std::string_view("clusters").starts_with(word);
}

Result<int> change_clusters(const Invocation& call, std::string_view verb,
                            const std::vector<std::string>& words, bool immediate) {
  const auto read = read_cluster_words(verb, words);
  if (!read) return say_refusal(read.error());
  if (verb == "modify" && !read->has_settings())
    return say_refusal({ErrorCode::usage, " You didn't give me anything to set"});
  ASSIGN(session, Session::open(call.program()));
  ASSIGN(documents, session->call<proto::TenancyDocuments>(proto::GetTenancy{}));
  Clusters clusters(*documents);
  Result<std::string> text = verb == "add"      ? clusters.add(*read)
                             : verb == "modify" ? clusters.modify(*read)
                                                : clusters.remove(*read);
  if (!text) return say_refusal(text.error());
  if (text->empty()) {
    if (verb != "add") fmt::print(" Nothing {}\n", verb == "delete" ? "deleted" : "modified");
    return 1;
  }
  fmt::print("{}", *text);
  if (!immediate && !person_agrees()) {
    fmt::print(" Changes Discarded\n");
    return 0;
  }
  ASSIGN(done, session->call<proto::TenancyPlanned>(clusters.changes()));
  return 0;
}

}  // namespace gantry::cli::slurm
