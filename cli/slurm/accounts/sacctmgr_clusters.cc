// sacctmgr add, modify and delete cluster. This cluster is always there. Others can be registered,
// as documents, so that they are listed; each keeps its own accounting, limits included.
#include <fmt/core.h>

#include <algorithm>

#include "cli/session.h"
#include "cli/slurm/accounts/sacctmgr_verbs.h"
#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "common/proto/tenancy.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

struct ClusterWords {
  std::vector<std::string> names;
  std::string description;
  bool has_settings = false;
};

Result<ClusterWords> read_cluster_words(std::string_view verb,
                                        const std::vector<std::string>& words) {
  ClusterWords out;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string key = lower_case(words[i].substr(0, equals));
    if (equals == std::string::npos && (key == "where" || key == "set")) continue;
    const std::string value = equals == std::string::npos ? words[i] : words[i].substr(equals + 1);
    if (equals == std::string::npos || key.starts_with("name") || key.starts_with("cluster")) {
      for (std::string& name : split_list(value)) out.names.push_back(std::move(name));
    } else if (key.starts_with("desc")) {
      out.description = value;
      out.has_settings = true;
    } else {
      return fail(
          ErrorCode::unsupported,
          fmt::format(" {}: limits and shares of all accounts together do not exist here; a "
                      "tenant, the account below root, has them",
                      words[i].substr(0, equals)));
    }
  }
  if (out.names.empty())
    return fail(ErrorCode::usage, verb == "add" ? " Need name of cluster to add."
                                                : " No conditions given to remove, not executing.");
  return out;
}

class Clusters {
 public:
  explicit Clusters(const proto::TenancyDocuments& documents) {
    changes_.base_revision = documents.revision;
    changes_.comment = "sacctmgr";
    for (const tenancy::Document& document : documents.documents)
      if (const auto* one = std::get_if<tenancy::OtherCluster>(&document))
        known_.push_back(one->name);
  }

  [[nodiscard]] bool knows(const std::string& name) const {
    return name == own_ || std::find(known_.begin(), known_.end(), name) != known_.end();
  }

  // Each returns the text that says what will be done; "" if there is nothing to do.
  std::string add(const ClusterWords& words) {
    std::string text;
    for (const std::string& name : words.names) {
      if (knows(name)) {
        fmt::print(" This cluster {} already exists.  Not adding.\n", name);
        continue;
      }
      changes_.documents.emplace_back(tenancy::OtherCluster{name, words.description});
      text += fmt::format("  Name           = {}\n", name);
    }
    if (text.empty()) return "";
    if (words.has_settings)
      text += fmt::format(" Setting\n  Description    = {}\n", words.description);
    return " Adding Cluster(s)\n" + text;
  }

  std::string modify(const ClusterWords& words) {
    std::string text;
    for (const std::string& name : words.names) {
      if (name == own_ || !knows(name)) continue;
      changes_.documents.emplace_back(tenancy::OtherCluster{name, words.description});
      text += fmt::format("  {}\n", name);
    }
    return text.empty() ? "" : " Setting\n Modified cluster...\n" + text;
  }

  Result<std::string> remove(const ClusterWords& words) {
    std::string text;
    for (const std::string& name : words.names) {
      if (name == own_)
        return fail(
            ErrorCode::unsupported,
            fmt::format(" cluster {}: it is this cluster, whose accounting is always there", name));
      if (!knows(name)) continue;
      changes_.removals.push_back({std::string(tenancy::OtherCluster::kName), name});
      text += fmt::format("  {}\n", name);
    }
    return text.empty() ? "" : " Deleting clusters...\n" + text;
  }

  [[nodiscard]] const proto::ApplyTenancy& changes() const { return changes_; }

 private:
  std::string own_ = cluster_name();
  std::vector<std::string> known_;
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
  if (verb == "modify" && !read->has_settings)
    return say_refusal({ErrorCode::usage, " You didn't give me anything to set"});
  auto session = Session::open(call.program());
  if (!session) return tl::unexpected(session.error());
  const auto documents = session->call<proto::TenancyDocuments>(proto::GetTenancy{});
  if (!documents) return tl::unexpected(documents.error());
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
  const auto done = session->call<proto::TenancyPlanned>(clusters.changes());
  if (!done) return tl::unexpected(done.error());
  return 0;
}

}  // namespace gantry::cli::slurm
