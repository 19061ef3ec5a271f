// sacctmgr add, modify, delete and show resource: licences that several clusters share, as
// documents of kind License. A cluster's part is a percentage of the count.
#include <fmt/core.h>

#include <algorithm>

#include "cli/session.h"
#include "cli/slurm/accounts/entity_changes.h"
#include "cli/slurm/accounts/sacctmgr_list.h"
#include "cli/slurm/accounts/sacctmgr_verbs.h"
#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "common/proto/tenancy.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

using tenancy::LicenseResource;

constexpr const char* kDefaultServer =
    "slurmdb";  // server of a resource that names none, as in Slurm

struct ResourceWords {
  std::vector<std::string> names, clusters;
  std::string server;
  std::optional<std::string> description, server_type, percent;
  std::optional<std::uint32_t> count;
  [[nodiscard]] bool has_settings() const { return description || server_type || percent || count; }
};

Result<void> read_resource_setting(const std::string& key, const std::string& value,
                                   ResourceWords& out) {
  const auto is = [&](std::string_view name, std::size_t least) {
    return key.size() >= least && name.starts_with(key);
  };
  if (is("count", 3)) {
    ASSIGN(n, parse_integer("count", value, 0, 1'000'000));
    out.count = static_cast<std::uint32_t>(*n);
  } else if (is("description", 1)) {
    out.description = value;
  } else if (is("servertype", 7)) {
    out.server_type = value;
  } else if (is("percentallowed", 1)) {
    TRY(parse_integer("percentallowed", value, 0, 100));
    out.percent = value;
  } else if (is("type", 1)) {
    if (!std::string_view("license").starts_with(lower_case(value)))
      return fail(ErrorCode::usage,
                  fmt::format(" Unknown resource type '{}': it is License", value));
  } else if (is("flags", 1)) {
    return fail(ErrorCode::unsupported, " Flags: a resource has none here");
  } else {
    return fail(ErrorCode::usage, fmt::format(" Unknown option: {}={}", key, value));
  }
  return {};
}

Result<ResourceWords> read_resource_words(std::string_view verb,
                                          const std::vector<std::string>& words) {
  ResourceWords out;
  bool setting = verb == "add";
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string key = lower_case(words[i].substr(0, equals));
    const bool bare = equals == std::string::npos;
    const std::string value = bare ? words[i] : unquoted(words[i].substr(equals + 1));
    if (bare && (key == "where" || key == "set")) {
      setting = verb == "add" || key == "set";
    } else if (bare || std::string_view("names").starts_with(key)) {
      for (std::string& name : split_list(value)) out.names.push_back(std::move(name));
    } else if (key.size() >= 2 && std::string_view("clusters").starts_with(key)) {
      for (std::string& name : split_list(value)) out.clusters.push_back(std::move(name));
    } else if (key == "server" || key == "servers") {
      out.server = value;
    } else if (!setting) {
      return fail(ErrorCode::usage, fmt::format(" Unknown condition: {}", words[i]));
    } else if (auto read = read_resource_setting(key, value, out); !read) {
      return tl::unexpected(read.error());
    }
  }
  if (out.names.empty())
    return fail(ErrorCode::usage, verb == "add" ? " Need name of resource to add."
                                                : " No conditions given to remove, not executing.");
  if (verb == "modify" && !out.has_settings())
    return fail(ErrorCode::usage, " You didn't give me anything to set");
  return out;
}

class Resources {
 public:
  explicit Resources(const proto::TenancyDocuments& documents) {
    changes_.base_revision = documents.revision;
    changes_.comment = "sacctmgr";
    for (const tenancy::Document& document : documents.documents)
      if (const auto* one = std::get_if<LicenseResource>(&document)) all_[one->name] = *one;
  }

  Result<std::string> add(const ResourceWords& words) {
    const std::string server = words.server.empty() ? kDefaultServer : words.server;
    std::string text;
    for (const std::string& name : words.names) {
      const std::string whole = name + "@" + server;
      const bool fresh = !all_.contains(whole);
      if (!fresh && words.clusters.empty()) continue;
      if (fresh && !words.count)
        return fail(ErrorCode::usage, " Need to give a count when adding a resource.");
      LicenseResource& one = all_[whole];
      one.name = whole;
      if (fresh) put(words, one);
      text += fmt::format("  {}\n", whole);
      for (const std::string& cluster : words.clusters) {
        one.percent[cluster] = words.percent.value_or("0");
        text += fmt::format("   Cluster - {}\t{}%\n", cluster, one.percent[cluster]);
      }
      changes_.documents.emplace_back(one);
    }
    return text.empty() ? text : " Adding Resource(s)\n" + text;
  }

  std::string modify(const ResourceWords& words) {
    std::string text;
    each(words, [&](LicenseResource& one) {
      put(words, one);
      if (words.percent)
        for (auto& [cluster, percent] : one.percent)
          if (words.clusters.empty() || has(words.clusters, cluster)) percent = *words.percent;
      text += fmt::format("  {}\n", one.name);
      changes_.documents.emplace_back(one);
    });
    return text.empty() ? text : " Modified server resource ...\n" + text;
  }

  std::string remove(const ResourceWords& words) {
    std::string text;
    each(words, [&](LicenseResource& one) {
      if (words.clusters.empty()) {
        text += fmt::format("  {}\n", one.name);
        changes_.removals.push_back({std::string(LicenseResource::kName), one.name});
        return;
      }
      std::size_t gone = 0;
      for (const std::string& cluster : words.clusters) gone += one.percent.erase(cluster);
      if (gone == 0) return;
      text += fmt::format("  {}\n", one.name);
      changes_.documents.emplace_back(one);
    });
    return text.empty() ? text : " Deleting resource(s)...\n" + text;
  }

  [[nodiscard]] const proto::ApplyTenancy& changes() const { return changes_; }

 private:
  static bool has(const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  }
  static void put(const ResourceWords& words, LicenseResource& one) {
    if (words.count) one.count = words.count;
    if (words.description) one.description = *words.description;
    if (words.server_type) one.server_type = *words.server_type;
  }
  template <class F>
  void each(const ResourceWords& words, F&& f) {
    for (auto& [whole, one] : all_) {
      const std::string name = whole.substr(0, whole.find('@'));
      const std::string server = whole.substr(whole.find('@') + 1);
      if ((has(words.names, name) || has(words.names, whole)) &&
          (words.server.empty() || words.server == server))
        f(one);
    }
  }

  std::map<std::string, LicenseResource> all_;
  proto::ApplyTenancy changes_;
};

}  // namespace

bool names_resources(const std::vector<std::string>& words) {
  const std::string word = words.empty() ? "" : lower_case(words.front());
  return word.size() >= 3 && std::string_view("resources").starts_with(word);
}

Result<int> change_resources(const Invocation& call, std::string_view verb,
                             const std::vector<std::string>& words, bool immediate) {
  const auto read = read_resource_words(verb, words);
  if (!read) return say_refusal(read.error());
  ASSIGN(session, Session::open(call.program()));
  ASSIGN(documents, session->call<proto::TenancyDocuments>(proto::GetTenancy{}));
  Resources resources(*documents);
  const auto text = verb == "add"      ? resources.add(*read)
                    : verb == "modify" ? Result<std::string>(resources.modify(*read))
                                       : Result<std::string>(resources.remove(*read));
  if (!text) return say_refusal(text.error());
  if (text->empty()) {
    fmt::print("{}\n", verb == "add"      ? " Nothing new added."
                       : verb == "modify" ? " Nothing modified"
                                          : " Nothing deleted");
    return verb == "add" ? 0 : 1;
  }
  fmt::print("{}", *text);
  if (!immediate && !person_agrees()) {
    fmt::print(" Changes Discarded\n");
    return 0;
  }
  const auto done = session->call<proto::TenancyPlanned>(resources.changes());
  if (!done) return say_refusal(done.error());
  return 0;
}

std::vector<Entry> resource_entries(const proto::TenancyDocuments& documents, bool with_clusters,
                                    const std::vector<std::string>& clusters) {
  std::vector<Entry> out;
  for (const tenancy::Document& document : documents.documents) {
    const auto* one = std::get_if<LicenseResource>(&document);
    if (one == nullptr) continue;
    Entry entry;
    const std::size_t at = one->name.find('@');
    entry.name = one->name.substr(0, at);
    entry.host = one->name.substr(at + 1);
    entry.type = "License";
    entry.description = one->description;
    entry.reason = one->server_type;
    entry.limits["Count"] = std::to_string(one->count.value_or(0));
    std::int64_t sum = 0;
    for (const auto& [cluster, percent] : one->percent)
      sum += parse_integer("", percent, 0, 100).value_or(0);
    entry.limits["Allocated"] = std::to_string(sum);
    if (!with_clusters) {
      out.push_back(std::move(entry));
      continue;
    }
    for (const auto& [cluster, percent] : one->percent) {
      if (!clusters.empty() &&
          std::find(clusters.begin(), clusters.end(), cluster) == clusters.end())
        continue;
      entry.cluster = cluster;
      entry.limits["Allowed"] = percent;
      out.push_back(entry);
    }
  }
  return out;
}

}  // namespace gantry::cli::slurm
